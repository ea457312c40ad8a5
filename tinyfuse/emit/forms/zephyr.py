"""Zephyr: a module with a switch in Kconfig, a sample, and a test that twister runs on emulated boards.

Sources: scripts/zephyr_module.py (keys of module.yml) and the boards of Zephyr 4 (names in three parts).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tinyfuse.emit.forms.base import Form
from tinyfuse.targets import Target

#: boards that run any module if portable kernels are allowed
_ANY = ("native_sim", "qemu_riscv32", "qemu_cortex_m3", "qemu_xtensa/dc233c")
#: bytes of main's stack besides an inference: printing and the test's frames
_STACK_BESIDE = 2048


def _boards(target: Target) -> tuple[str, ...]:
    """QEMU boards whose core has exactly the extensions that the plan relies on. Zephyr has no QEMU board with a
    Cortex-M33 that has the DSP extension."""
    if target.cpu is None:
        return _ANY
    if target.mve:
        return ("mps3/corstone300/an547",)
    return ("mps2/an386", "mps2/an500") if target.dsp else ("mps2/an385",)


def _weights_file(sources: Sequence[str]) -> str | None:
    """File with the weights: NAME_weights.c, or the only C file."""
    return next((file for file in sources if file.endswith("_weights.c")), sources[0] if sources else None)


def _context(known: Mapping[str, Any]) -> Mapping[str, Any]:
    return {
        "boards": _boards(known["target"]),
        "any_boards": _ANY if known["target"].cpu is not None and known["cmsis_nn"] is None else (),
        "main_stack": _STACK_BESIDE + -(-known["unoptimized_stack_bytes"] // 256) * 256,
        "code_file": next((file for file in known["sources"] if file.endswith(f"{known['name']}.c")), None),
        "weights_file": _weights_file(known["sources"]),
        "symbol": f"TINYFUSE_{known['macro']}",
    }


_TEST = "zephyr/tests/selftest"
_SAMPLE = "zephyr/samples/inference"

FORM = Form(
    "zephyr",
    "a module for Zephyr, with a sample and a self-test for twister",
    {
        "zephyr/module.yml": "forms/zephyr.module.yml.j2",
        "zephyr/CMakeLists.txt": "forms/zephyr.CMakeLists.txt.j2",
        "zephyr/Kconfig": "forms/zephyr.Kconfig.j2",
    },
    samples={
        f"{_SAMPLE}/CMakeLists.txt": "forms/zephyr.app.CMakeLists.txt.j2",
        f"{_SAMPLE}/prj.conf": "forms/zephyr.sample.conf.j2",
        f"{_SAMPLE}/sample.yaml": "forms/zephyr.sample.yaml.j2",
        f"{_SAMPLE}/src/main.c": "forms/zephyr.sample.c.j2",
    },
    programs={
        f"{_TEST}/CMakeLists.txt": "forms/zephyr.app.CMakeLists.txt.j2",
        f"{_TEST}/Kconfig": "forms/zephyr.test.Kconfig.j2",
        f"{_TEST}/prj.conf": "forms/zephyr.test.conf.j2",
        f"{_TEST}/testcase.yaml": "forms/zephyr.testcase.yaml.j2",
        f"{_TEST}/src/main.c": "forms/zephyr.test.c.j2",
    },
    cmsis_nn="package",
    context=_context,
)
