"""Arduino: a library of format 1.5 (Arduino CLI, library specification, revision 2.2).

A library has no flags there, so its C carries the optimization, and computes with portable kernels on boards of another
core. All below src/ is compiled, and only src/ is on the include path: the headers of two modules don't meet.
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
