"""`--memory`: contents of each bank, weights that are copied ahead, refusals that name what would fit, and the check
that finds misplaced sections."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from compiler_modules import modules
from cross_compilers import cross_compiler
from executors import assert_exact, plan_of
from host_program import WARNINGS, compile_c
from known_architectures import FAMILIES
from random_graphs import Sketch
from stream_models import STREAM_MODELS

from tinyfuse.banks import parse_banks
from tinyfuse.cli.main import main
from tinyfuse.emit import emit
from tinyfuse.emit.forms import make_delivery
from tinyfuse.errors import DoesNotFit, EmulationFailed, InternalFault, UsageError
from tinyfuse.plan import Memory, Plan
from tinyfuse.plan.check.player import verify_plan
from tinyfuse.profile.image import open_elf
from tinyfuse.report.memory import memory_json
from tinyfuse.report.pareto import pareto_json, uncopied_ram_bytes
from tinyfuse.schedule.banks.assign import plan_in_banks
from tinyfuse.targets import load_target
from tinyfuse.verify.emulation import find_emulator
from tinyfuse.verify.emulation import module as emulated_module
from tinyfuse.verify.emulation.inputs import input_set
from tinyfuse.verify.emulation.module import build_module

needs_cross = pytest.mark.skipif(
    shutil.which("arm-none-eabi-gcc") is None or shutil.which("qemu-system-arm") is None,
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)
needs_gcc = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")

#: RAM that all small models fit into, and flash that is slow
PLENTY = ("dtcm=64K", "qspi=1M:slow")


def small() -> bytes:
    sketch = Sketch(7)
    x = sketch.value((1, 12, 12, 3))
    y = sketch.conv(sketch.conv(x, 6, (3, 3), activation="RELU"), 16, (1, 1))
    y = sketch.conv(sketch.depthwise(y, (3, 3), (2, 2)), 16, (1, 1))
    return sketch.build([x], [sketch.fully_connected(sketch.mean(y), 5)])


# --- what is typed -----------------------------------------------------------------------------


def test_banks_are_read_and_typed_again() -> None:
    typed = ("DTCM=64K", "qspi=8M:slow", "sdram=1M:slow", "spi_ram=2048:ram", "bank2=1000:flash:slow", "itcm=1K:code")
    banks = parse_banks(typed)
    assert [(b.name, b.bytes, b.flash, b.slow) for b in banks] == [
        ("DTCM", 65536, False, False), ("qspi", 8 << 20, True, True), ("sdram", 1 << 20, False, True),
        ("spi_ram", 2048, False, False), ("bank2", 1000, True, True), ("itcm", 1024, False, False),
    ]  # fmt: skip
    assert parse_banks(map(str, banks)) == banks


@pytest.mark.parametrize(
    "typed",
    [
        *([text] for text in (
            "dtcm", "dtcm=", "=64K", "dtcm=0", "dtcm=-1", "dtcm=1.5K", "dtcm=64K:quick", "dtcm=64K:fast:slow",
            "dtcm=64K:", "dtcm=64K:slow:slow", "dtcm=64K:ram:flash", "dtcm=64K:slow:code", "d tcm=64K", "9=1K",
            "a;b=1K", 'a"=1K', "ü=1K", "_a=1K", f"{'a' * 33}=1K", "",
        )),
        ["a=1K", "A=1K"], ["a=1K:code", "b=1K:code"], [f"b{n}=1K" for n in range(9)],
    ],
)  # fmt: skip
def test_what_is_no_bank_is_refused(typed: list[str]) -> None:
    with pytest.raises(UsageError, match="--memory|is not a size"):
        parse_banks(typed)


def test_a_blob_lies_where_the_firmware_puts_it() -> None:
    words = ["report", "m.tflite", "--target", "host", "--weights-blob", "--memory", "qspi=1M"]
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 2 and "with --weights-blob the firmware places the weights" in done.output


# --- where things go ---------------------------------------------------------------------------


def places(plan: Plan) -> Memory:
    assert plan.memory is not None
    return plan.memory


def test_what_is_loaded_most_has_the_first_choice() -> None:
    plan = plan_of(small(), "cortex-m4", memory=("sdram=64K:slow", "dtcm=8K", "qspi=64K:slow", "flash=700"))
    memory, told = places(plan), memory_json(plan)
    assert memory.arena == "dtcm" and memory.state is None
    banks = {bank["name"]: bank for bank in told["banks"]}
    assert banks["flash"]["used_bytes"] <= 700 and banks["flash"]["layers"] and banks["qspi"]["layers"]
    assert {layer["copied"] for layer in banks["flash"]["layers"]} == {False}
    fast = min(layer["loads"] / layer["bytes"] for layer in banks["flash"]["layers"])
    slow = [layer["loads"] / layer["bytes"] for layer in banks["qspi"]["layers"] if layer["bytes"] <= 100]
    assert all(density <= fast for density in slow)
    assert banks["qspi"]["weight_loads"] < banks["qspi"]["uncopied_weight_loads"]
    assert sum(bank["weight_bytes"] for bank in banks.values()) == plan.weight_bytes


def test_a_smaller_arena_is_taken_for_a_fast_bank() -> None:
    large = plan_of(FAMILIES["mobilenet_v2"](), "cortex-m4", optimize="speed")
    least = plan_of(FAMILIES["mobilenet_v2"](), "cortex-m4", optimize="ram", recompute=1.0)  # speed has no tiles
    assert least.arena_bytes < large.arena_bytes
    banks = (f"sdram={large.arena_bytes}:slow", f"dtcm={least.arena_bytes}")
    plan = plan_of(FAMILIES["mobilenet_v2"](), "cortex-m4", optimize="speed", memory=banks)
    assert places(plan).arena == "dtcm" and plan.options.max_ram is None
    plan = plan_of(FAMILIES["mobilenet_v2"](), "cortex-m4", optimize="speed", memory=(banks[0], "dtcm=32"))
    assert places(plan).arena == "sdram" and plan.arena_bytes == large.arena_bytes


def test_arena_and_state_have_banks_of_their_own_where_one_is_too_small() -> None:
    data = STREAM_MODELS["every kind of state"]
    alone = plan_of(data, "cortex-m4")
    banks = (f"a={alone.state_bytes}", f"b={alone.arena_bytes}")
    assert (places(plan_of(data, "cortex-m4", memory=banks)).arena, alone.state_bytes > 0) == ("b", True)
    together = plan_of(data, "cortex-m4", memory=("a=64K", "b=64K"))
    assert (places(together).arena, places(together).state) == ("a", "a")


def test_copies_are_begun_ahead_where_there_is_room() -> None:
    alone = plan_of(small(), "cortex-m4", fusion="none")
    ahead = plan_of(small(), "cortex-m4", fusion="none", memory=PLENTY)
    assert any(staged.begun < staged.group for staged in places(ahead).staged)
    assert ahead.arena_bytes > alone.arena_bytes == places(ahead).uncopied_arena_bytes
    counts = []
    for room in range(alone.arena_bytes, ahead.arena_bytes + 32, 128):
        plan = plan_of(small(), "cortex-m4", fusion="none", memory=(f"dtcm={room}", PLENTY[1]))
        assert plan.arena_bytes <= room
        counts.append(len(places(plan).copied))
    assert counts == sorted(counts) and len(set(counts)) > 1, "more copies where there is more room"


@pytest.mark.parametrize("options", [{"step": True}, {"feed_rows": True}, {"feed_rows": True, "slide": 2}])
def test_an_inference_that_may_be_left_copies_nothing(options: dict[str, int]) -> None:
    assert places(plan_of(small(), "cortex-m4", memory=PLENTY, **options)).staged == ()


def test_max_ram_holds_for_copies_too() -> None:
    alone = plan_of(small(), "cortex-m4")
    plan = plan_of(small(), "cortex-m4", memory=PLENTY, max_ram=alone.arena_bytes)
    assert plan.arena_bytes <= alone.arena_bytes


# --- what doesn't fit --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "banks", [["dtcm=100"], ["flash=100"], ["flash=500", "qspi=700:slow"], ["ram1=64", "flash=64:slow"]]
)
def test_the_hint_of_a_refusal_works(banks: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.tflite").write_bytes(small())
    tried = dict(text.split("=", 1) for text in banks)
    for _ in range(3):
        words = [word for name, rest in tried.items() for word in ("--memory", f"{name}={rest}")]
        done = CliRunner().invoke(main, ["gen", "m.tflite", "--target", "cortex-m4", *words])
        if done.exit_code == 0:
            break
        assert done.exit_code == 1 and not Path("m_tinyfuse").exists(), done.output
        (hint,) = re.findall(r"--memory (\S+) would fit", done.output)
        name, rest = hint.split("=", 1)
        assert int(rest.partition(":")[0]) > int(tried[name].partition(":")[0])
        tried[name] = rest
    assert done.exit_code == 0, done.output


def test_state_counts_where_there_is_one_bank() -> None:
    data = STREAM_MODELS["every kind of state"]
    alone = plan_of(data, "cortex-m4", optimize="ram")
    with pytest.raises(DoesNotFit, match="arena and state take"):
        plan_of(data, "cortex-m4", memory=(f"dtcm={alone.ram_bytes - 1}",))


# --- the check ---------------------------------------------------------------------------------


def _banks(plan: Plan, **changes: object) -> Plan:
    return replace(plan, memory=replace(places(plan), **changes))


def _staged(plan: Plan, **changes: object) -> Plan:
    first, *others = places(plan).staged
    return _banks(plan, staged=(replace(first, **changes), *others))


def _arrays(plan: Plan, offset: Callable[[int], int]) -> Plan:
    arrays = places(plan).staged[0].arrays
    return _staged(plan, arrays=tuple(replace(array, offset=offset(array.offset)) for array in arrays))


def _weights(plan: Plan, bank: str | None) -> Plan:
    """The first weights array in another bank, or in no bank."""
    first, *others = places(plan).weights
    found = {} if bank is None else {first: bank}
    return _banks(plan, weights=found | {key: places(plan).weights[key] for key in others})


FAULTS: dict[str, Callable[[Plan], Plan]] = {
    "the arena in flash": lambda p: _banks(p, arena="qspi"),
    "no bank for the arena": lambda p: _banks(p, arena=None),
    "a state that isn't there": lambda p: _banks(p, state="dtcm"),
    "an array without a bank": lambda p: _weights(p, None),
    "an array in RAM": lambda p: _weights(p, "dtcm"),
    "a bank that is full": lambda p: _banks(p, banks=parse_banks(["dtcm=64K", "qspi=600:slow"])),
    "an arena too large": lambda p: _banks(p, banks=parse_banks([f"dtcm={p.arena_bytes - 4}", "qspi=1M:slow"])),
    "a copy that begins before its buffer lives": lambda p: _staged(p, begun=-1),
    "a copy for another group": lambda p: _staged(p, group=places(p).staged[0].group + 1),
    "arrays that share bytes": lambda p: _arrays(p, lambda offset: 0),
    "a copy off its line": lambda p: _arrays(p, lambda offset: offset + 4),
    "two copies for one group": lambda p: _banks(p, staged=places(p).staged[:1] * 2),
}


@pytest.fixture(scope="module")
def unfused() -> Plan:
    return plan_of(small(), "cortex-m4", fusion="none", memory=PLENTY)


@pytest.mark.parametrize("fault", FAULTS)
def test_the_check_finds(fault: str, unfused: Plan) -> None:
    verify_plan(unfused)
    with pytest.raises(InternalFault, match="banks"):
        verify_plan(FAULTS[fault](unfused))


def test_the_checker_finds_a_copy_over_what_is_still_read(unfused: Plan) -> None:
    """Every other place of a copied buffer that shares bytes with what lives meanwhile; its lifetime in the plan says
    nothing of it, so that the bytes alone tell."""
    staged = next(s for s in places(unfused).staged if s.begun < s.group)
    buffers = tuple(b for b in unfused.buffers if b.name != staged.buffer)
    (own,) = (b for b in unfused.buffers if b.name == staged.buffer)
    below = replace(own, first_step=staged.begun, last_step=staged.group, live_sets=frozenset({99}))
    meanwhile = [b for b in buffers if b.first_step <= staged.group and b.last_step >= staged.begun and b.bytes]
    assert meanwhile
    for other in meanwhile:
        offsets = {**unfused.placement.offsets, own.name: unfused.placement.offsets[other.name] // 32 * 32}
        moved = replace(unfused, buffers=(*buffers, below), placement=replace(unfused.placement, offsets=offsets))
        with pytest.raises(InternalFault):
            verify_plan(moved)


# --- the same results --------------------------------------------------------------------------

WAYS = {
    "unfused": (small, {"memory": PLENTY, "fusion": "none"}),
    "two flashes": (small, {"memory": ("RAM=8K", "FLASH=700", "bulk=64K:flash:slow"), "fusion": "none"}),
    "state": (lambda: STREAM_MODELS["every kind of state"], {"memory": PLENTY}),
    "state apart": (lambda: STREAM_MODELS["every kind of state"], {"memory": ("a=64K:slow", "b=64K", "qspi=1M:slow")}),
}  # fmt: skip


@needs_gcc
@pytest.mark.parametrize("way", ["state"])
def test_modules_are_exact_on_the_host(way: str) -> None:
    make, options = WAYS[way]
    assert_exact(plan_of(make(), "cortex-m4", kernels="tinyfuse", **options), on_host=True)


@needs_cross
@pytest.mark.emulated
@pytest.mark.parametrize(
    ("way", "target"), [("unfused", "cortex-m55"), ("state apart", "cortex-m7"), ("two flashes", "cortex-m0plus")]
)
def test_modules_are_exact_on_a_core(way: str, target: str) -> None:
    make, options = WAYS[way]
    assert_exact(plan_of(make(), target, kernels="tinyfuse", **options))


@needs_cross
@pytest.mark.emulated
def test_banks_lie_apart_and_faults_in_them_are_seen(
    unfused: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bank by bank at addresses of their own; what a module does to them, or forgets, is found."""
    inputs, emulator = input_set(unfused.source, 4, 0), find_emulator("qemu", unfused.context.target)
    symbol = re.search(r"net_stage\(\w+ \+ \d+u, (\w+),", emit(unfused)["net.c"])[1]

    def run(name: str, change: Callable[[str], str]) -> object:
        def changed(plan: Plan, *arguments: object) -> dict[str, str]:
            files = emit(plan, *arguments)
            return {**files, "net.c": change(files["net.c"])}

        monkeypatch.setattr(emulated_module, "emit", changed)
        return emulator.run(build_module(unfused, None, inputs, "qemu", "O1", tmp_path / name, debug=False), 30)

    right = run("right", lambda c: c)
    with (tmp_path / "right" / "build" / "net.elf").open("rb") as file:
        elf = open_elf(file)
        at = {name: elf.get_section_by_name(name)["sh_addr"] for name in (".net.qspi", ".arena", ".text")}
    assert at[".net.qspi"] >= 0x21000000 > at[".arena"] >= 0x20000000 > at[".text"]
    assert not right.guards
    for fault, change in {
        "no wait": lambda c: c.replace("net_stage_wait();", ""),
        "half a copy": lambda c: re.sub(
            r"(net_stage\(\w+ \+ \d+u, \w+), (\d+)u", lambda m: f"{m[1]}, {int(m[2]) // 2}u", c
        ),
    }.items():
        assert run(fault, change).outputs != right.outputs, fault
    writing = f"\n{{\n    ((volatile int8_t *)(uintptr_t){symbol})[0] += 3;\n    uint8_t *const bytes"
    with pytest.raises(EmulationFailed, match="an access to memory that is not the module's"):
        run("written", lambda c: c.replace("\n{\n    uint8_t *const bytes", writing, 1))


# --- generated files ---------------------------------------------------------------------------


@needs_cross
@pytest.mark.campaign
@pytest.mark.parametrize(("target", "compiler"), [("cortex-m4", "clang"), ("cortex-m55", "gcc")])
def test_every_kernel_takes_copied_weights(target: str, compiler: str, tmp_path: Path) -> None:
    """No module has a constant of its code made of an address in the arena; and no warning comes of sections."""
    banks = ("ram=16M", "qspi=64M:slow")
    plans = [plan_in_banks(lambda options, p=p: p, replace(p.options, memory=banks)) for p in modules(target)]
    assert sum(bool(places(plan).staged) for plan in plans) > len(plans) / 4
    for plan in plans:
        verify_plan(plan)
        for file, text in emit(plan).items():
            (tmp_path / file).write_text(text)
    source = tmp_path / "all.c"
    source.write_text("".join(f'#include "{p.options.name}.c"\n#include "{p.options.name}_weights.c"\n' for p in plans))
    compile_c([*cross_compiler(compiler, load_target(target)), "-std=c99", *WARNINGS, "-fsyntax-only", source])


@needs_cross
def test_the_c_is_c_plus_plus_and_the_firmware_may_copy(unfused: Plan, tmp_path: Path) -> None:
    """With and without the firmware's hook; sections are those of the linker fragment."""
    for file, text in emit(unfused).items():
        (tmp_path / file).write_text(text)
    (tmp_path / "all.cpp").write_text(
        '#include "net.c"\n#include "net_weights.c"\nextern NET_DEFINE_ARENA(arena);\nNET_DEFINE_ARENA(arena);\n'
    )
    warnings = [word for word in WARNINGS if "pedantic" not in word]
    flags = unfused.context.target.flags
    for hook in ((), ("-DNET_STAGE",)):
        compile_c(
            [
                "arm-none-eabi-g++",
                *flags,
                "-std=c++17",
                *warnings,
                *hook,
                "-c",
                tmp_path / "all.cpp",
                "-o",
                tmp_path / "all.o",
            ]
        )
        with (tmp_path / "all.o").open("rb") as file:
            elf = open_elf(file)
            names = {section.name for section in elf.iter_sections() if section["sh_size"]}
            wanted = [
                symbol.name
                for symbol in elf.get_section_by_name(".symtab").iter_symbols()
                if symbol["st_shndx"] == "SHN_UNDEF"
            ]
            assert elf.get_section_by_name(".bss.dtcm.net_arena")["sh_type"] == "SHT_NOBITS"
        assert {".bss.dtcm.net_arena", ".rodata.qspi.net_weights"} <= names
        assert {"net_stage", "net_stage_wait"} & set(wanted) == ({"net_stage", "net_stage_wait"} if hook else set())


def test_no_copy_goes_on_when_an_inference_ends_early() -> None:
    """A DMA would write to an arena that is the application's again. Kernels of CMSIS-NN may refuse what they get."""
    text = emit(plan_of(small(), "cortex-m4", memory=PLENTY, fusion="none", kernels="cmsis-nn"))["net.c"]
    body = text[text.index("int net_run(void *arena)") :]
    ends = re.findall(r"if \(status != NET_OK\) \{\n((?: {8}.*\n)+)", body)
    assert ends and all(end.split() == ["net_stage_wait();", "return", "status;"] for end in ends)
    assert any(
        staged.begun < staged.group
        for staged in places(plan_of(small(), "cortex-m4", memory=PLENTY, fusion="none")).staged
    )


def test_files_are_the_same_each_time_and_stand_beside_forms() -> None:
    plan = plan_of(small(), "cortex-m4", memory=PLENTY, kernels="tinyfuse")
    assert emit(plan) == emit(plan_of(small(), "cortex-m4", memory=PLENTY, kernels="tinyfuse"))
    for form in ("zephyr", "single-file"):
        files = emit(plan, None, make_delivery([form], {}))
        assert "> qspi" in files["net_memory.ld"] and "*(.bss.dtcm.net_arena)" in files["net_memory.ld"]
        assert files["net_memory.ld"].startswith("/* SPDX-License-Identifier: ")
        assert any("NET_WEIGHTS_QSPI_ATTR NET_ALIGNED" in text for text in files.values())
    assert "net_memory.ld" not in emit(plan_of(small(), "cortex-m4", kernels="tinyfuse"))


@needs_cross
@pytest.mark.emulated
def test_profile_counts_by_bank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The arena's parts, which are what the prediction says, and weights."""
    monkeypatch.chdir(tmp_path)
    Path("m.tflite").write_bytes(small())
    banks = ("dtcm=1K", "sram=64K", "qspi=1M:slow")
    words = ["--target", "cortex-m4", *(w for bank in banks for w in ("--memory", bank)), "--fusion", "none", "--json"]
    done = CliRunner().invoke(main, ["profile", "m.tflite", *words], catch_exceptions=False)
    found, plan = json.loads(done.stdout), plan_of(small(), "cortex-m4", fusion="none", memory=banks)
    assert len(plan.arena_parts) == 2
    measured, (dtcm, sram, qspi) = found["bank_bytes"], memory_json(plan)["banks"]
    for what in ("loaded", "stored"):
        assert measured["dtcm"][what] + measured["sram"][what] == found[f"{what}_bytes"]["arena"] > 0
    traffic = [sum(measured[name].values()) for name in ("dtcm", "sram")]
    share = dtcm["arena_traffic"] / (dtcm["arena_traffic"] + sram["arena_traffic"])
    assert abs(traffic[0] / sum(traffic) - share) < 0.15, "as predicted, roughly"
    assert measured["qspi"]["stored"] == 0 < qspi["weight_loads"]
    assert abs(measured["qspi"]["loaded"] / qspi["weight_loads"] - 1) < 0.2, "as predicted"
    assert found["loaded_bytes"]["flash"] >= measured["qspi"]["loaded"]
    assert np.sum([group["bank_bytes"]["qspi"]["loaded"] for group in found["groups"]]) < measured["qspi"]["loaded"]


def test_choices_are_compared_before_copies() -> None:
    """Only the plan that is made has weights copied ahead: its point would lie behind plans that it is one with."""
    plan = plan_of(small(), "cortex-m4", memory=PLENTY)
    plain = {point["arena_bytes"] for point in pareto_json(plan_of(small(), "cortex-m4"))}
    assert plan.memory is not None and plan.memory.copied_bytes
    assert {point["arena_bytes"] for point in pareto_json(plan)} == plain
    assert uncopied_ram_bytes(plan) in plain, "--measure would measure this plan twice"
