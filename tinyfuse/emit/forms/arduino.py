"""Arduino: a library of format 1.5 (Arduino CLI, library specification, revision 2.2).

Such a library cannot set compiler flags, so its C sets the optimization level, and uses portable kernels on boards with
another core. All of src/ is compiled, and only src/ is on the include path, so headers of two modules do not collide.
"""

from __future__ import annotations

from tinyfuse.emit.forms.base import Form

FORM = Form(
    "arduino",
    "a library for Arduino's IDE and CLI, with a self-test sketch",
    {"library.properties": "forms/arduino.properties.j2"},
    programs={"examples/Selftest/Selftest.ino": "forms/arduino.ino.j2"},
    in_src=True,
    own_flags=True,
)
