"""CMake: a library target for add_subdirectory."""

from __future__ import annotations

from tinyfuse.emit.forms.base import Form

FORM = Form(
    "cmake",
    "CMakeLists.txt: a library target for add_subdirectory",
    {"CMakeLists.txt": "CMakeLists.txt.j2"},
    cmsis_nn="bundle or target",
)
