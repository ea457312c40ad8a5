"""Lists a module's entry points, and lets the firmware check the registers of each call (firmware/checked_calls.c)."""

from __future__ import annotations

import re
from pathlib import Path

#: functions that an application calls, without the module's name in front; accessors by name also end with a tensor's
#: name
_ENTRY_POINTS = r"init|bind|reset|run|begin|feed_rows|finish|slide|step|strerror|(?:in|out)put(?:_\w+)?"

#: declares a function's two other names, and defines the checked one where verify.c asks for it
_ENTRY_POINT = """\
extern __typeof__({function}) checked_{function}, direct_{function} __asm__("{function}");
#define {function} checked_{function}
"""
_CODE = """\
__asm__(".pushsection .text.checked_{function}, \\"ax\\", %progbits\\n\\t"
        ".balign 4\\n\\t"
        ".globl checked_{function}\\n\\t"
        ".thumb_func\\n"
        "checked_{function}:\\n\\t"
        "push {{r0, r1, r2}}\\n\\t"
        "ldr r0, 1f\\n\\t"
        "mov r12, r0\\n\\t"
        "ldr r0, 2f\\n\\t"
        "str r0, [sp, #8]\\n\\t"
        "pop {{r0, r1, pc}}\\n\\t"
        ".balign 4\\n"
        "1: .word 3f\\n"
        "2: .word checked_call\\n"
        "3: .word {function}\\n\\t"
        ".asciz \\"{function}\\"\\n\\t"
        ".popsection");
"""


def entry_points(header: str, module: str) -> list[str]:
    """Functions that a module's header declares for applications, in its order."""
    found = re.findall(rf"^(?!static)[a-z][\w \*]*?\b({re.escape(module)}_(?:{_ENTRY_POINTS}))\(", header, re.M)
    return list(dict.fromkeys(found))


def write_entry_points(folder: Path, header: str, module: str, checked: bool) -> None:
    """Writes entry_points.h for verify.c and interface.c. It changes nothing unless `checked`."""
    functions = entry_points(header, module) if checked else []
    declared = "".join(_ENTRY_POINT.format(function=function) for function in functions)
    code = "".join(_CODE.format(function=function) for function in functions)
    text = f"#define CHECKED_CALLS 1\n{declared}#ifdef DEFINE_CHECKED_CALLS\n{code}#endif\n" if checked else ""
    guard = "#ifndef ENTRY_POINTS_H\n#define ENTRY_POINTS_H\n"  # tests include it twice in one unit
    (folder / "entry_points.h").write_text(f"{guard}{text}#endif\n", encoding="utf-8")
