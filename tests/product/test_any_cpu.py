"""The module for a core, compiled for a 64-bit host (TINYFUSE_ANY_CPU), where firmware teams test it: runs under
sanitizers, in an arena no larger than the core's."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from compiler_modules import modules
from cross_compilers import cross_compiler
from executors import assert_all_exact, assert_exact, plan_of
from hypothesis import given, settings
from hypothesis import strategies as st
from known_architectures import FAMILIES
from random_graphs import Sketch, networks
from stream_program import assert_all_stream

from tinyfuse.emit import emit
from tinyfuse.options import OPTIMIZE
from tinyfuse.targets import load_target

pytestmark = pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
CORES = ("cortex-m0plus", "cortex-m4", "cortex-m55")


@pytest.mark.parametrize("target", CORES)
def test_every_kernels_portable_form_is_exact(target: str, pytestconfig: pytest.Config) -> None:
    """Operators side by side in one program, what has state in another; what is fed rows, or may have no result yet,
    each in one of its own. In CI the cores take turns: what differs between them, test_conv_kernels.py runs as twins."""
    plans = modules(target)
    if not pytestconfig.getoption("--campaign"):
        plans = plans[CORES.index(target) :: len(CORES)]
    together = [plan for plan in plans if not plan.states and plan.fed is None]
    streams = [plan for plan in plans if plan.states and (plan.source.window or not plan.awaits)]
    assert_all_exact(together, on_host=True)
    assert_all_stream(streams)
    for plan in plans:
        if plan not in together and plan not in streams:
            assert_exact(plan, on_host=True)


@pytest.mark.parametrize("target", CORES)
def test_networks_of_every_family_are_exact(target: str, pytestconfig: pytest.Config) -> None:
    """CI distributes the networks over the cores."""
    networks = [*FAMILIES.values()]
    if not pytestconfig.getoption("--campaign"):
        networks = networks[CORES.index(target) :: len(CORES)]
    assert_all_exact([plan_of(make(), target, kernels="tinyfuse") for make in networks], on_host=True)


#: what firmware teams build tests with: a unit a file, optimized
_RARER = (("clang", "-O1"), ("clang", "-O3"), ("gcc", "-O3"))
OPTIMIZED = (("clang", "-O2"), ("gcc", "-O2"), *(pytest.param(*words, marks=pytest.mark.campaign) for words in _RARER))


@pytest.mark.parametrize(("compiler", "level"), OPTIMIZED)
def test_optimized_modules_are_exact(compiler: str, level: str, pytestconfig: pytest.Config) -> None:
    """CI runs a third of the networks and distributes them over the cores."""
    if shutil.which(compiler) is None:
        pytest.skip(f"needs {compiler}")
    if pytestconfig.getoption("--campaign"):
        plans = [plan for core in CORES for plan in modules(core) if not plan.states and plan.fed is None]
        drawn = [(make, core, how) for make in FAMILIES.values() for core in CORES for how in OPTIMIZE]
    else:
        plans, few = [], [*FAMILIES.values()][("clang", "gcc").index(compiler) :: 3]
        drawn = [(make, CORES[i % 3], OPTIMIZE[i % len(OPTIMIZE)]) for i, make in enumerate(few)]
    plans += [plan_of(make(), core, kernels="tinyfuse", optimize=how) for make, core, how in drawn]
    assert_all_exact(plans, on_host=True, apart=True, compiler=compiler, flags=[level])


def test_gcc_warns_of_no_weights_behind_the_last_pair() -> None:
    """With an even number of channels nothing is read there; GCC knows this if it sees all constants."""
    sketch = Sketch(1)
    x = sketch.value((1, 5, 6, 16))
    data = sketch.build([x], [sketch.fully_connected(sketch.conv(sketch.conv(x, 7, (1, 1)), 3, (3, 3)), 8)])
    plan = plan_of(data, "cortex-m0plus", kernels="tinyfuse", weights="unpacked")
    assert "tinyfuse_dense_paired_s8" in emit(plan)["net.c"]
    assert_all_exact([plan], on_host=True, apart=True, compiler="gcc", flags=["-O2"])


def test_declarations_of_constants_have_the_alignment_of_their_definitions(tmp_path: Path) -> None:
    """clang for x86-64 assumes an alignment of 16 for arrays of 16 bytes or more, unless the declaration has another
    one."""
    if shutil.which("clang") is None:
        pytest.skip("needs clang")
    for name, text in emit(plan_of(FAMILIES["two_inputs"](), "cortex-m4", kernels="tinyfuse")).items():
        (tmp_path / name).write_text(text)

    def alignments(unit: str) -> dict[str, str]:
        command = ["clang", "-O0", "-DTINYFUSE_ANY_CPU", "-S", "-emit-llvm", "-o", "-", unit]
        said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
        return dict(re.findall(r"^@(net_g\w+) = .*constant .*, align (\d+)", said, re.MULTILINE))

    defined, declared = alignments("net_weights.c"), alignments("net.c")
    assert len(declared) > 5 and declared == {name: defined[name] for name in declared}


@settings(max_examples=2, deadline=None)
@given(st.lists(st.tuples(networks(), st.sampled_from(CORES), st.sampled_from(OPTIMIZE)), min_size=6, max_size=6))
def test_random_networks_are_exact(drawn: list[tuple[bytes, str, str]]) -> None:
    plans = [plan_of(data, core, kernels="tinyfuse", optimize=how) for data, core, how in drawn]
    assert_all_exact(plans, on_host=True)


@pytest.mark.parametrize(("target", "other", "lacks"), [
    ("cortex-m0plus", "cortex-m4", "without the DSP extension"), ("cortex-m4", "cortex-m0plus", "with the DSP extension"),
    ("cortex-m4", "cortex-m55", "without Helium"), ("cortex-m55", "cortex-m33", "with Helium"),
])  # fmt: skip
def test_another_core_is_refused_with_the_ways_out(tmp_path: Path, target: str, other: str, lacks: str) -> None:
    """Each of them works: the flags that are named, another --target, TINYFUSE_ANY_CPU."""
    if shutil.which("arm-none-eabi-gcc") is None:
        pytest.skip("needs arm-none-eabi-gcc")
    for name, text in emit(plan_of(FAMILIES["two_inputs"](), target, kernels="tinyfuse")).items():
        (tmp_path / name).write_text(text)

    def compiled(core: str, *flags: str) -> str:
        command = [*cross_compiler("gcc", load_target(core)), *flags, "-fsyntax-only", "net.c"]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True).stderr

    said = compiled(other)
    assert said.count("error: ") == 1 and f"generated for {target} {lacks}" in said, said
    for way in (" ".join(load_target(target).flags), "--target", "TINYFUSE_ANY_CPU"):
        assert way in said
    assert not compiled(target) and not compiled(other, "-DTINYFUSE_ANY_CPU")
