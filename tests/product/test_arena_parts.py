"""`--memory` with several writable banks: an arena in parts, the placement of buffers, its checks and its C."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from control_flow_models import MODELS
from executors import assert_exact, plan_of
from host_program import WARNINGS, compile_c
from known_architectures import FAMILIES
from linker_rules import armlink, iar
from sliding_models import wake_word
from stream_models import STREAM_MODELS
from test_memory_banks import needs_cross, needs_gcc

from tinyfuse.banks import parse_banks
from tinyfuse.cli.main import main
from tinyfuse.cost.activation_traffic import buffer_traffic
from tinyfuse.emit import emit
from tinyfuse.emit.forms import make_delivery
from tinyfuse.emit.memory import bank_sections
from tinyfuse.errors import DoesNotFit, InternalFault
from tinyfuse.plan import Memory, Plan
from tinyfuse.plan.check.player import verify_plan
from tinyfuse.report.memory import memory_json
from tinyfuse.schedule.banks.assign import plan_in_banks
from tinyfuse.verify.emulation import find_emulator
from tinyfuse.verify.emulation import module as emulated_module
from tinyfuse.verify.emulation.inputs import input_set
from tinyfuse.verify.emulation.module import build_module

BANKS = ("dtcm=1K", "sram=256K")


def network() -> bytes:
    return FAMILIES["mobilenet_v2"]()


@pytest.fixture(scope="module")
def plan() -> Plan:
    return plan_of(network(), "cortex-m7", memory=BANKS, kernels="tinyfuse")


@pytest.fixture(scope="module")
def whole() -> Plan:
    return plan_of(network(), "cortex-m4", kernels="tinyfuse")


def placed(plan: Plan, *banks: str) -> Plan:
    """The single plan that the memory banks allow."""
    return plan_in_banks(lambda options: plan, replace(plan.options, memory=banks))


def memory_of(plan: Plan) -> Memory:
    assert plan.memory is not None
    return plan.memory


# --- which banks -------------------------------------------------------------------------------


def test_names_and_words_tell_fast_banks() -> None:
    typed = ("DTCM=1K", "ccmram=1K", "sram=1K", "axi=1K:fast", "dtcm2=1K:slow", "itcm=1K:code")
    banks = parse_banks(typed)
    assert [bank.rank for bank in banks] == [0, 0, 1, 0, 2, 1]
    assert parse_banks(map(str, banks)) == banks


@pytest.mark.parametrize(
    ("banks", "arena", "parts"),
    [
        (("dtcm=64K", "sram=256K"), "dtcm", []),
        (("sram=256K", "dtcm=64K"), "dtcm", []),
        (("dtcm=1K", "sram=256K"), None, ["dtcm", "sram"]),
        (("sram=256K", "dtcm=1K"), None, ["dtcm", "sram"]),
        (("sram=1K", "sram2=256K"), "sram2", []),  # as fast, and holds all
        (("sram=256K:slow", "dtcm=64K:slow"), "sram", []),
        (("sram=1K", "sdram=8M:slow"), None, ["sram", "sdram"]),
        (("dtcm=16", "sram=256K"), "sram", []),  # next to nothing
        (("a=1856", "b=256"), None, ["a", "b"]),  # none holds all
        (("a=1856", "b=256", "sdram=1M:slow"), None, ["a", "b"]),
    ],
)
def test_an_arena_is_divided_where_that_pays(
    banks: tuple[str, ...], arena: str | None, parts: list[str], whole: Plan
) -> None:
    memory = memory_of(placed(whole, *banks))
    assert (memory.arena, [part.bank for part in memory.parts]) == (arena, parts)
    room = {bank.name: bank.bytes for bank in memory.banks}
    assert all(part.bytes <= room[part.bank] for part in memory.parts)


def test_what_is_used_most_lies_in_the_fast_bank(plan: Plan) -> None:
    told = memory_json(plan)
    assert told is not None
    (dtcm, sram), traffic = told["banks"], buffer_traffic(plan)
    assert dtcm["arena_traffic"] + sram["arena_traffic"] == sum(traffic.values())
    assert dtcm["arena_bytes"] + sram["arena_bytes"] == plan.arena_bytes
    assert dtcm["arena_traffic"] > 3 * sram["arena_traffic"]
    assert [part["bank"] for part in told["arena_parts"]] == ["dtcm", "sram"]


def test_a_larger_fast_bank_takes_more_traffic(whole: Plan) -> None:
    found = []
    for size in (512, 1024, 1536):
        told = memory_json(placed(whole, f"dtcm={size}", "sram=64K"))
        assert told is not None
        found.append(told["banks"][0]["arena_traffic"])
    assert found == sorted(found) and found[0] < found[-1]


def test_a_part_is_no_larger_than_what_was_found_for_it() -> None:
    """A search of all orders, cut short, may find less than the order in which buffers were chosen."""
    plan = plan_of(network(), "cortex-m0plus", kernels="tinyfuse", fusion="none")
    found = placed(plan, "b0=6469:slow", "b1=3034", "b2=3883:fast", "qspi=8M:slow")
    assert [part.bank for part in found.arena_parts] == ["b2", "b1"]
    verify_plan(found)


def test_max_ram_holds_for_all_parts() -> None:
    for limit in (2100, 2400):
        plan = plan_of(network(), "cortex-m4", memory=BANKS, max_ram=limit)
        assert plan.ram_bytes <= limit


def test_weights_are_copied_into_a_part() -> None:
    plan = plan_of(network(), "cortex-m4", memory=(*BANKS, "qspi=1M:slow"), fusion="none")
    assert memory_of(plan).copied and len(plan.arena_parts) == 2
    verify_plan(plan)


def test_a_state_shares_banks_with_parts() -> None:
    data = STREAM_MODELS["every kind of state"]
    alone = plan_of(data, "cortex-m4")
    for banks in (("a=256:fast", "b=256"), (f"a={alone.state_bytes + 31}", f"b={alone.arena_bytes - 8}", "c=64")):
        plan = plan_of(data, "cortex-m4", memory=banks)
        memory = memory_of(plan)
        assert memory.state is not None and (memory.arena or memory.parts)


@pytest.mark.parametrize("banks", [["a=1500", "b=1500", "c=1500"], ["a=100", "b=200:slow"]])
def test_a_refusal_says_what_would_fit(banks: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("m.tflite").write_bytes(network())
    words = [word for bank in banks for word in ("--memory", bank)]
    done = CliRunner().invoke(main, ["gen", "m.tflite", "--target", "cortex-m4", *words])
    assert done.exit_code == 1 and not Path("m_tinyfuse").exists() and "the largest buffer 1,728" in done.output
    (hint,) = re.findall(r"--memory (\S+) would fit", done.output)
    words[1] = hint
    assert CliRunner().invoke(main, ["gen", "m.tflite", "--target", "cortex-m4", *words]).exit_code == 0


def test_a_plan_that_takes_less_is_found_for_parts() -> None:
    """The banks hold a plan that takes less than the one that is asked for."""
    large = plan_of(network(), "cortex-m4", optimize="speed", fusion="none")
    least = plan_of(network(), "cortex-m4", optimize="ram")
    banks = (f"a={least.arena_bytes - 8}", "b=256")
    assert least.arena_bytes + 192 < large.arena_bytes
    assert plan_of(network(), "cortex-m4", optimize="speed", memory=banks).arena_parts
    with pytest.raises(DoesNotFit):
        plan_of(network(), "cortex-m4", optimize="speed", fusion="none", memory=banks)


# --- the check ---------------------------------------------------------------------------------


def _parts(plan: Plan, *changes: dict[str, object]) -> Plan:
    parts = tuple(replace(part, **change) for part, change in zip(plan.arena_parts, changes, strict=True))
    return replace(plan, memory=replace(memory_of(plan), parts=parts))


def _over_the_border(plan: Plan) -> Plan:
    """Moves the border between two arena parts into a buffer."""
    one, other = plan.arena_parts
    return _parts(plan, {"bytes": one.bytes - 32}, {"start": one.bytes - 32, "bytes": other.bytes + 32})


FAULTS: dict[str, Callable[[Plan], Plan]] = {
    "a buffer in two parts": _over_the_border,
    "a gap": lambda p: _parts(p, {}, {"start": p.arena_parts[1].start + 32}),
    "two parts in a bank": lambda p: _parts(p, {}, {"bank": "dtcm"}),
    "a part alone": lambda p: replace(p, memory=replace(memory_of(p), parts=p.arena_parts[:1])),
    "a bank for the whole, too": lambda p: replace(p, memory=replace(memory_of(p), arena="sram")),
    "a bank that is too small": lambda p: replace(
        p, memory=replace(memory_of(p), banks=parse_banks([f"dtcm={p.arena_parts[0].bytes - 4}", "sram=256K"]))
    ),
    "a part in flash": lambda p: replace(
        p, memory=replace(memory_of(p), banks=parse_banks(["dtcm=1K", "sram=256K:flash"]), weights={})
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_the_check_finds(fault: str, plan: Plan) -> None:
    verify_plan(plan)
    with pytest.raises(InternalFault, match="banks"):
        verify_plan(FAULTS[fault](plan))


# --- the same results --------------------------------------------------------------------------


@needs_gcc
@pytest.mark.campaign
def test_a_module_is_exact_on_the_host(plan: Plan) -> None:
    """Under sanitizers, each part between guards that may not be touched."""
    assert_exact(plan, runs=3, on_host=True)


@needs_cross
@pytest.mark.emulated
@pytest.mark.parametrize(
    ("target", "options"),
    [
        pytest.param("cortex-m7", {"step": True, "max_step": 20000}, marks=pytest.mark.campaign),
        ("cortex-m4", {"feed_rows": True, "memory": ("dtcm=256", "sram=64K")}),
        ("cortex-m55", {"memory": ("a=1024:fast", "b=2800", "c=4K:slow", "qspi=1M:slow"), "fusion": "none"}),
    ],
    ids=["step", "feed-rows", "three parts and copies"],
)
def test_modules_are_exact_on_a_core(target: str, options: dict[str, object]) -> None:
    plan = plan_of(network(), target, kernels="tinyfuse", **({"memory": BANKS} | options))
    assert len(plan.arena_parts) > 1
    assert_exact(plan, runs=3)


STATEFUL: dict[str, tuple[Callable[[], bytes], dict[str, object]]] = {
    "a state, in steps": (lambda: STREAM_MODELS["every kind of state"], {"step": True}),
    "a window row by row": (wake_word, {"slide": 3, "feed_rows": True}),
    "a window": (wake_word, {"slide": 3}),
    "a graph that runs another": (MODELS["a loop of five iterations"], {}),
}


@needs_cross
@pytest.mark.emulated
@pytest.mark.parametrize(
    "sort", [pytest.param(sort, marks=pytest.mark.campaign if n > 1 else ()) for n, sort in enumerate(STATEFUL)]
)
def test_every_sort_of_module_is_exact(sort: str) -> None:
    make, options = STATEFUL[sort]
    plan = plan_of(make(), "cortex-m4", kernels="tinyfuse", memory=("a=64:fast", "b=64K"), **options)
    assert plan.arena_parts
    assert_exact(plan, runs=4)


@needs_cross
@pytest.mark.emulated
def test_what_a_module_does_outside_of_a_part_is_seen(
    plan: Plan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Round each part, first and last; and parts lie in memories of their own."""
    inputs, emulator = input_set(plan.source, 2, 0), find_emulator("qemu", plan.context.target)
    body, sram = "\n{\n\n    if (arena == NULL)", plan.arena_parts[1].bytes
    assert emit(plan)["net.c"].count(body) == 1

    def spoilt(plan: Plan, *arguments: object) -> dict[str, str]:
        files = emit(plan, *arguments)
        faults = (f"((volatile uint8_t *)arena->{place} ^= 1u;" for place in (f"in_sram)[{sram}]", "in_dtcm)[-1]"))
        spoil = f"\n{{\n    if (arena != NULL) {{ {' '.join(faults)} }}\n    if (arena == NULL)"
        return {**files, "net.c": files["net.c"].replace(body, spoil)}

    monkeypatch.setattr(emulated_module, "emit", spoilt)
    found = emulator.run(build_module(plan, None, inputs, "qemu", "O1", tmp_path, debug=False), 30)
    for seen in (f"after the arena changed (arena[{sram}])", "before the arena changed (arena[-1])"):
        assert any(seen in text for text in found.guards), found.guards


# --- generated files ---------------------------------------------------------------------------

MAIN = """\
#include <string.h>
#include "net.h"
static NET_DEFINE_ARENA(arena);
static net_arena_dtcm_type dtcm;
static net_arena_sram_type sram;
int main(void)
{
    const net_arena_parts own = {dtcm.bytes, sram.bytes};
    net_arena_parts wrong = own;
    size_t i;

    wrong.in_sram = NULL;
    if (net_init(arena, sizeof arena) != NET_OK || net_init(&own, sizeof own) != NET_OK) {
        return 1;
    }
    if (net_init(&wrong, sizeof wrong) != NET_ERROR_NULL || net_init(&own, 1) != NET_ERROR_SIZE) {
        return 2;
    }
    for (i = 0; i < NET_INPUTS; ++i) {
        memset(net_input(arena, i), 1, net_input_bytes(i));
        memset(net_input(&own, i), 1, net_input_bytes(i));
    }
    if (net_run(arena) != NET_OK || net_run(&own) != NET_OK || net_input(NULL, 0) || net_output(NULL, 0)) {
        return 3;
    }
    for (i = 0; i < NET_OUTPUTS; ++i) {
        if (memcmp(net_output(arena, i), net_output(&own, i), net_output_bytes(i)) != 0) {
            return 4;
        }
    }
    return NET_ARENA_BYTES == NET_ARENA_DTCM_BYTES + NET_ARENA_SRAM_BYTES ? 0 : 5;
}
"""


@needs_gcc
@pytest.mark.parametrize(("compiler", "end"), [("gcc", "c"), ("g++", "cpp")])
def test_an_application_defines_parts_by_macro_or_by_types(plan: Plan, compiler: str, end: str, tmp_path: Path) -> None:
    for file, text in emit(plan).items():
        (tmp_path / file).write_text(text)
    text = '#include "net.c"\n#include "net_weights.c"\n' + MAIN
    (tmp_path / f"all.{end}").write_text(text)
    standard = "-std=c99" if end == "c" else "-std=c++17"
    flags = [standard, *(w for w in WARNINGS if "pedantic" not in w), "-O1", "-DTINYFUSE_ANY_CPU"]
    compile_c([compiler, *flags, tmp_path / f"all.{end}", "-lm", "-o", tmp_path / "all"])
    compile_c([tmp_path / "all"])


def test_every_linker_is_told_of_every_part(plan: Plan, tmp_path: Path) -> None:
    if shutil.which("gcc") is None:
        pytest.skip("needs gcc")
    for file, text in emit(plan).items():
        (tmp_path / file).write_text(text)
    banks = bank_sections(plan)
    wanted = [((f".bss.{name}.net_arena",), size, True) for name, size in (("dtcm", 1024), ("sram", 256 << 10))]
    assert [(bank.inputs, bank.bytes, bank.kind == "ram") for bank in banks] == wanted
    starts = {"NET_DTCM_START": 0x2000_0000, "NET_SRAM_START": 0x2400_0000}
    assert [(each.sections, each.bytes, each.kept) for each in armlink(tmp_path / "net_memory.sct", starts)] == wanted
    assert [(each.sections, each.bytes, each.kept) for each in iar(tmp_path / "net_memory.icf")] == wanted
    gnu = (tmp_path / "net_memory.ld").read_text()
    assert all(f"*({bank.inputs[0]})" in gnu and f"}} > {bank.name}\n" in gnu for bank in banks)


def test_words_of_c_plus_plus_and_of_headers_are_names_of_banks(tmp_path: Path) -> None:
    """A member is not the bank's name alone."""
    plan = plan_of(network(), "host", memory=("new=1K:fast", "NULL=256K"))
    assert len(plan.arena_parts) == 2
    if shutil.which("g++") is None:
        pytest.skip("needs g++")
    for file, text in emit(plan).items():
        (tmp_path / file).write_text(text)
    (tmp_path / "all.cpp").write_text(
        '#include "net.c"\nstatic NET_DEFINE_ARENA(arena);\nint main() { return net_run(arena); }\n'
    )
    compile_c(["g++", "-std=c++17", "-Wall", "-Werror", "-fsyntax-only", tmp_path / "all.cpp"])


def test_every_form_has_an_application_of_parts(plan: Plan) -> None:
    """The applications define an arena as usual: the macro makes the parts."""
    for form in ("zephyr", "arduino", "single-file"):
        files = emit(plan, None, make_delivery([form], {}))
        assert any("NET_ARENA_DTCM_ATTR" in text for text in files.values())
    relocated = emit(plan, None, make_delivery(["zephyr"], {}))["zephyr/CMakeLists.txt"]
    assert relocated.count("LOCATION dtcm_BSS") == relocated.count("LOCATION sram_BSS") == 1
