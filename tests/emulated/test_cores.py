"""Every core and variant of targets/: exact on its emulator, and of its instruction set.

CI runs one target of each instruction set; --campaign runs all of them, floating-point variants included.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from docs_blocks import ROOT
from executors import assert_all_exact, assert_exact, plan_of
from host_program import WARNINGS, compile_c
from random_graphs import Sketch
from test_ops_network import network
from toy_module import toy_inputs, write_toy

from tinyfuse.emit import emit
from tinyfuse.errors import EmulationFailed, UsageError
from tinyfuse.targets import all_targets, load_target, target_of_core
from tinyfuse.toolchain.cmsis_nn import find_cmsis_nn
from tinyfuse.verify.emulation import build_firmware, find_emulator
from tinyfuse.verify.emulation.elf import open_elf
from tinyfuse.verify.emulation.inputs import input_set
from tinyfuse.verify.emulation.module import build_module

pytestmark = pytest.mark.skipif(
    not (shutil.which("arm-none-eabi-gcc") and shutil.which("qemu-system-arm")),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)

#: Cortex-M4 and M55 run in many other tests
IN_CI = ("cortex-m0plus", "cortex-m3", "cortex-m7+nofp", "cortex-m33", "cortex-m33+nodsp", "cortex-m55+nomve",
         "cortex-m55+nofp", "cortex-m85")  # fmt: skip
CORES = [
    pytest.param(name, marks=[] if name in IN_CI else [pytest.mark.campaign])
    for name, target in all_targets().items()
    if target.cpu is not None
]
DOCUMENTED = (ROOT / "docs" / "targets.md").read_text()
_ISA_FLAGS = re.compile(r"-m(cpu|arch|fpu|float-abi)=(.+)")


def convolutions() -> bytes:
    """A network with a convolution, depthwise and pointwise ones, a residual, pooling and two dense layers."""
    sketch = Sketch(5)
    x = sketch.value((1, 9, 7, 3))
    y = sketch.conv(x, 8, (3, 3), (2, 2), activation="RELU6")
    z = sketch.conv(sketch.depthwise(y, (3, 3), activation="RELU"), 8, (1, 1))
    joined = sketch.add(y, z)
    y = sketch.fully_connected(sketch.conv(joined, 5, (5, 2), padding="VALID"), 11, "RELU")
    return sketch.build([x], [sketch.fully_connected(y, 4), joined])


@pytest.mark.emulated
@pytest.mark.parametrize("name", CORES)
def test_networks_are_exact(name: str) -> None:
    """Integer operators of every family, convolutions, and a float input and output."""
    assert_all_exact([plan_of(data, name, kernels="tinyfuse") for data in (network(), convolutions())], runs=2)


@pytest.mark.emulated
@pytest.mark.parametrize("name", ["cortex-m0plus", "cortex-m33+nodsp"])
def test_cmsis_nn_without_dsp(name: str) -> None:
    tree = find_cmsis_nn(None)
    if tree is None or tree.version != (4, 0):
        pytest.skip("needs CMSIS-NN 4.0, which PyPI's bakenn carries")
    options = {"kernels": "cmsis-nn", "cmsis_nn_version": "4.0"}
    lacks = tree.missing(plan_of(convolutions(), name, **options).cmsis_nn_functions)
    plan = plan_of(convolutions(), name, **options, cmsis_nn_lacks=tuple(sorted(lacks)))
    assert {"arm_convolve_wrapper_s8", "arm_depthwise_conv_wrapper_s8"} <= plan.cmsis_nn_functions
    assert_exact(plan, tree=tree)


# --- instruction sets ------------------------------------------------------------------------


def firmware(name: str, folder: Path, data: bytes) -> Path:
    plan = plan_of(data, name, kernels="tinyfuse")
    return build_module(plan, None, input_set(plan.source, 2, 0), "qemu", "O2", folder).elf


def instructions(elf: Path) -> list[tuple[int, str]]:
    """(bytes, mnemonic) of every instruction of an ELF file; data between them is left out."""
    text = subprocess.run(["arm-none-eabi-objdump", "-d", elf], capture_output=True, text=True, check=True).stdout
    lines = re.findall(r"^ +[0-9a-f]+:\t([0-9a-f]{4}(?: [0-9a-f]{4})?) *\t(\S+)", text, re.M)
    return [(len(code.replace(" ", "")) // 2, name) for code, name in lines if not name.startswith(".")]


def test_code_for_m0plus_has_no_instruction_that_armv6_m_lacks(tmp_path: Path) -> None:
    """Armv6-M has the 16-bit Thumb instructions but CBZ, CBNZ and IT; of the 32-bit ones only BL, MRS,
    MSR and the barriers (Armv6-M Architecture Reference Manual, A5)."""
    for number, data in enumerate((network(), convolutions())):
        elf = firmware("cortex-m0plus", tmp_path / str(number), data)
        found = instructions(elf)
        assert len(found) > 1000
        assert {name for size, name in found if size == 4} <= {"bl", "mrs", "msr", "dmb", "dsb", "isb"}
        assert not {name for _, name in found if re.fullmatch(r"cbn?z|i[te]+", name)}
        with elf.open("rb") as file:
            tags = open_elf(file).get_section_by_name(".ARM.attributes").subsections[0]
            attributes = {a.tag: a.value for a in tags.subsubsections[0].attributes}
        assert attributes["TAG_CPU_ARCH"] in (11, 12)  # v6-M, v6S-M


#: core without a target of its own -> its flags, where GCC 12 has some, and the target whose code it runs
OTHER_CORES = {
    "Cortex-M23": ("-mcpu=cortex-m23", "cortex-m0plus"),
    "Cortex-M35P": ("-mcpu=cortex-m35p", "cortex-m33"),
    "Cortex-M35P without DSP": ("-mcpu=cortex-m35p+nodsp", "cortex-m33+nodsp"),
    "Cortex-M52": ("-march=armv8.1-m.main+mve.fp+fp.dp", "cortex-m55"),
    "SC300": ("-march=armv7-m", "cortex-m3"),
}


@pytest.mark.parametrize("core", OTHER_CORES)
def test_other_cores_compile_the_code_of_their_target(core: str, tmp_path: Path) -> None:
    """Also checks that docs/targets.md names both."""
    flag, name = OTHER_CORES[core]
    rows = (load_target(name).name in row for row in DOCUMENTED.splitlines() if core.split()[0] in row)
    assert any(rows) and target_of_core(core.split()[0]) == name.split("+")[0]
    abi = "hard" if "m35p" in flag or "mve" in flag else "soft"
    command = ["arm-none-eabi-gcc", flag, "-mthumb", f"-mfloat-abi={abi}", "-std=c99", "-O1", *WARNINGS, "-c"]
    for file, text in emit(plan_of(convolutions(), name, kernels="tinyfuse")).items():
        (tmp_path / file).write_text(text)
    compile_c([*command, tmp_path / "net.c", "-o", tmp_path / "net.o"])


@pytest.mark.emulated
def test_code_for_m0plus_is_exact_as_armv8_m_baseline() -> None:
    """Compiled for Cortex-M23, on a Cortex-M33, which runs all of its instructions; unaligned accesses are trapped."""
    board = load_target("cortex-m33")
    target = replace(
        load_target("cortex-m0plus"), flags=("-mcpu=cortex-m23", "-mthumb", "-mfloat-abi=soft"),
        qemu_machine=board.qemu_machine, qemu_tick_ns=board.qemu_tick_ns, flash=board.flash, ram=board.ram, bulk=None,
    )  # fmt: skip
    plan = plan_of(convolutions(), "cortex-m0plus", kernels="tinyfuse")
    assert_exact(replace(plan, context=replace(plan.context, target=target)))


def test_the_search_for_instructions_finds_them(tmp_path: Path) -> None:
    found = instructions(firmware("cortex-m3", tmp_path, convolutions()))
    assert {(2, "cbz"), (2, "it"), (4, "smlal"), (4, "ldr.w")} <= set(found)


@pytest.mark.emulated
@pytest.mark.parametrize("code", ["return *(volatile int32_t *)(void *)(arena + 1) * 0;",
                                  "return *(volatile int16_t *)(void *)(arena + 1) * 0;"])  # fmt: skip
def test_unaligned_access_is_a_crash_on_m0plus_alone(tmp_path: Path, code: str) -> None:
    module, library, headers = write_toy(tmp_path / "module", run=code)
    for name in ("cortex-m3", "cortex-m0plus"):
        target = load_target(name)
        built = build_firmware(module, toy_inputs(2), target, [library], [headers], tmp_path / name, "qemu")
        if name == "cortex-m3":
            assert not find_emulator("qemu", target).run(built, 30).guards
        else:
            with pytest.raises(EmulationFailed, match="cfsr=01000000"):  # UNALIGNED
                find_emulator("qemu", target).run(built, 30)


@pytest.mark.parametrize("name", [name for name, target in all_targets().items() if target.cpu])
def test_a_target_is_what_its_flags_say(name: str) -> None:
    """dsp and mve agree with the compiler's macros, a variant's name with its flags."""
    target = load_target(name)
    command = ["arm-none-eabi-gcc", *target.flags, "-dM", "-E", "-x", "c", "/dev/null"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    macros = set(re.findall(r"^#define (\w+)", text, re.M))
    assert target.dsp == ("__ARM_FEATURE_DSP" in macros)
    assert target.mve == ("__ARM_FEATURE_MVE" in macros)
    core, *without = name.split("+")
    assert target.cpu == core
    assert ("__ARM_FP" in macros) == ("nofp" not in without and core not in ("cortex-m0plus", "cortex-m3"))
    assert ("-mfloat-abi=softfp" in target.flags) == ("softfp" in without)
    assert any(_ISA_FLAGS.fullmatch(flag) for flag in target.flags)


def test_unknown_targets_and_variants_are_refused() -> None:
    for name, said in {
        "cortex-m1000": "known targets: .*cortex-m33, cortex-m33.nofp",
        "cortex-m4+nodsp": r"cortex-m4 has the variants \+nofp, \+softfp$",
        "cortex-m4+": r"cortex-m4 has the variants \+nofp, \+softfp$",
        "cortex-m3+nofp": "cortex-m3 has no variants$",
    }.items():
        with pytest.raises(UsageError, match=said):
            load_target(name)
