"""Every kernel compiles with every flag that a firmware may choose: gcc and clang, each warning an error.

CI takes the flags pairwise: for any two choices (two flags, a flag and a core, a level and a compiler ...) one
compilation has both, of a part of the modules, and every part is compiled so; every core's compiler reads all of them
without any flag. --campaign does so for every core and compiler by itself, with all modules and the MLPerf models, so that each
sees every level with every flag.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations, product
from math import prod
from pathlib import Path

import pytest
from compiler_modules import modules
from cross_compilers import NAMES, cross_compiler
from executors import plan_of
from host_program import WARNINGS, compile_c
from random_graphs import Sketch
from real_models import ORIGINAL_MODELS, OWN_MODELS

from tinyfuse.emit import emit
from tinyfuse.emit.runtime import runtime_files
from tinyfuse.kernels.registry import kernels_of
from tinyfuse.ops import FAMILIES
from tinyfuse.options import COMPILER_OPTS
from tinyfuse.plan import Plan
from tinyfuse.resources import resource_dir
from tinyfuse.targets import load_target

pytestmark = pytest.mark.skipif(shutil.which("arm-none-eabi-gcc") is None, reason="needs arm-none-eabi-gcc")

CORES = ("cortex-m0plus", "cortex-m4", "cortex-m33", "cortex-m55")
ALL_CORES = ("cortex-m0plus", "cortex-m3", "cortex-m4", "cortex-m7", "cortex-m33", "cortex-m55", "cortex-m85")
LEVELS = (*COMPILER_OPTS, "Ofast")
#: a flag in the words of each compiler; where one lacks it, (): it is never chosen there
FLAGS: dict[str, dict[str, tuple[str, ...]]] = {
    "frame pointer": dict.fromkeys(NAMES, ("-fno-omit-frame-pointer",)),
    "link-time": {"gcc": ("-flto", "-ffat-lto-objects"), "clang": ("-flto",)},  # see `compile_modules`
    "position-independent": {"gcc": ("-fPIC",), "clang": ("-fropi",)},
    "fixed r9": dict.fromkeys(NAMES, ("-ffixed-r9",)),
    "instrumented": dict.fromkeys(NAMES, ("-finstrument-functions",)),
    "sanitizer traps": {"gcc": ("-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"),
                        "clang": ("-fsanitize=undefined", "-fsanitize-trap=undefined")},
    "stack protector": dict.fromkeys(NAMES, ("-fstack-protector-all",)),
    "Thumb frames": {"gcc": ("-mtpcs-frame",), "clang": ()},
}  # fmt: skip
#: a compilation of CI takes one of so many parts of the modules
PARTS = 32
#: about how many times as long as without a compiler takes with each
SLOWNESS = {
    "O0": 0.5,
    "O1": 0.8,
    "O3": 1.5,
    "Ofast": 1.5,
    "clang": 1.5,
    "sanitizer traps": 4,
    "link-time": 1.5,
    "instrumented": 2,
}

Choice = tuple[object, ...]
CHOICES: tuple[Sequence[object], ...] = (CORES, NAMES, LEVELS, *((False, True) for _ in FLAGS))


def possible(choice: Choice) -> bool:
    """Tells whether the compiler has all chosen flags."""
    return all(not on or words[choice[1]] for words, on in zip(FLAGS.values(), choice[3:], strict=True))


def pairwise(choices: Sequence[Sequence[object]]) -> list[Choice]:
    """A small set of choices that covers each possible pair of values, always the same one. Each next choice starts
    with an uncovered pair and gets the values that cover most uncovered pairs."""
    lacking = {
        ((i, a), (j, b))
        for (i, of_i), (j, of_j) in combinations(enumerate(choices), 2)
        for a, b in product(of_i, of_j)
        if possible(_with(choices, {i: a, j: b}))
    }
    made = []
    while lacking:
        given = dict(min(lacking, key=lambda pair: (pair[0][0], pair[1][0], str(pair))))
        for place, values in enumerate(choices):
            if place not in given:
                fitting = [v for v in values if possible(_with(choices, given | {place: v}))]
                given[place] = max(fitting, key=lambda v: len(lacking & _pairs(given | {place: v})))
        made.append(_with(choices, given))
        lacking -= _pairs(given)
    return made


def _with(choices: Sequence[Sequence[object]], given: dict[int, object]) -> Choice:
    """The choice with the given values, and the first value of everything else."""
    return tuple(given.get(place, values[0]) for place, values in enumerate(choices))


def _pairs(given: dict[int, object]) -> set:
    return set(combinations(sorted(given.items(), key=lambda item: item[0]), 2))


def flags_of(choice: Choice) -> list[str]:
    compiler, level = choice[1:3]
    chosen = [words[compiler] for words, on in zip(FLAGS.values(), choice[3:], strict=True) if on]
    # Clang 19 warns of -Ofast, and names these
    optimized = ["-O3", "-ffast-math"] if (compiler, level) == ("clang", "Ofast") else [f"-{level}"]
    return [*optimized, *(word for words in chosen for word in words)]


def named(choice: Choice) -> str:
    return " ".join([*map(str, choice[:3]), *(name for name, on in zip(FLAGS, choice[3:], strict=True) if on)])


def write_modules(plans: Sequence[Plan], folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    files = {file: text for plan in plans for file, text in _emitted(plan).items()}  # most of them share headers
    for file, text in files.items():
        (folder / file).write_text(text)


def compile_modules(plans: Sequence[Plan], target: str, compiler: str, flags: Sequence[str], folder: Path) -> None:
    """Compiles all modules in one translation unit to machine code (-flto alone would leave that to the linker).
    AssertionError with the compiler's messages."""
    write_modules(plans, folder)
    (folder / "all.c").write_text("".join(f'#include "{plan.options.name}.c"\n' for plan in plans))
    command = [*cross_compiler(compiler, load_target(target)), "-std=c99", *WARNINGS, *flags]
    compile_c([*command, "-c", folder / "all.c", "-o", folder / "all.o"])
    if compiler == "clang" and "-flto" in flags:
        code = [flag for flag in flags if flag != "-flto"]
        translate = [*cross_compiler(compiler, load_target(target)), *code, "-Wno-unused-command-line-argument"]
        compile_c([*translate, "-x", "ir", "-c", folder / "all.o", "-o", folder / "code.o"])


_known: dict[int, tuple[Plan, dict[str, str]]] = {}


def _emitted(plan: Plan) -> dict[str, str]:
    """The files of a plan, cached because many compilations use them."""
    if id(plan) not in _known:
        _known[id(plan)] = plan, emit(plan)
    return _known[id(plan)][1]


@pytest.mark.parametrize("target", ["cortex-m0plus", "cortex-m4", "cortex-m55"])
def test_every_kernel_is_cpp_too(target: str, tmp_path: Path) -> None:
    """Code and weights of every module as C++17, for projects that have no other compiler: among the rest, designated
    initializers name fields in the struct's order, and all of them."""
    write_modules(modules(target), tmp_path)
    names = [plan.options.name for plan in modules(target)]
    (tmp_path / "all.cpp").write_text("".join(f'#include "{n}.c"\n#include "{n}_weights.c"\n' for n in names))
    compiler, *flags = cross_compiler("gcc", load_target(target))
    warnings = [flag for flag in WARNINGS if flag != "-Wpedantic"]  # which has designated initializers in C++20 alone
    compile_c([compiler.replace("gcc", "g++"), *flags, "-std=c++17", *warnings, "-fsyntax-only", tmp_path / "all.cpp"])


@pytest.mark.parametrize("target", ["cortex-m0plus", "cortex-m4", "cortex-m55"])
def test_every_kernel_takes_its_weights_from_a_blob(target: str, tmp_path: Path) -> None:
    """No module has a constant of its code made of an address in the blob, which isn't known before it runs."""
    plans = [replace(plan, options=replace(plan.options, weights_blob=True)) for plan in modules(target)]
    write_modules(plans, tmp_path)
    (tmp_path / "all.c").write_text("".join(f'#include "{plan.options.name}.c"\n' for plan in plans))
    command = [*cross_compiler("gcc", load_target(target)), "-std=c99", *WARNINGS, "-fsyntax-only", tmp_path / "all.c"]
    compile_c(command)


def slowness(choice: Choice) -> float:
    words = (*choice[:3], *(name for name, on in zip(FLAGS, choice[3:], strict=True) if on))
    return prod(SLOWNESS.get(str(word), 1) for word in words)


@cache
def part(target: str, number: int) -> list[Plan]:
    """The modules of a part. Part 0 has those with the longest headers, which are most of what a compiler reads."""
    every = sorted(modules(target), key=lambda plan: -sum(map(len, runtime_files(plan).values())))
    return every[number * len(every) // PARTS : (number + 1) * len(every) // PARTS]


@pytest.mark.parametrize(
    ("choice", "number"),
    # what compiles fastest compiles most
    [(choice, turn % PARTS) for turn, choice in enumerate(sorted(pairwise(CHOICES), key=slowness))],
    ids=lambda it: it if isinstance(it, int) else named(it),
)
def test_every_pair_of_flags_compiles(choice: Choice, number: int, tmp_path: Path) -> None:
    target, compiler = choice[:2]
    compile_modules(part(str(target), number), target, compiler, flags_of(choice), tmp_path)


def test_all_parts_are_compiled() -> None:
    assert len(pairwise(CHOICES)) >= PARTS
    for core in CORES:
        assert sum(len(part(core, number)) for number in range(PARTS)) == len(modules(core))


def _of_each_core() -> Iterator[Choice]:
    for core, compiler in product(ALL_CORES, NAMES):
        yield from pairwise(((core,), (compiler,), *CHOICES[2:]))


@cache
def real_plans(target: str) -> list[Plan]:
    """Plans of the models in real_models.py."""
    paths = (*OWN_MODELS, *ORIGINAL_MODELS)
    return [plan_of(path.read_bytes(), target, path.stem, kernels="tinyfuse") for path in paths]


@pytest.mark.campaign
@pytest.mark.parametrize("choice", list(_of_each_core()), ids=named)
def test_every_flag_compiles_at_every_level_on_every_core(choice: Choice, tmp_path: Path) -> None:
    target, compiler = choice[:2]
    compile_modules([*modules(target), *real_plans(target)], target, compiler, flags_of(choice), tmp_path)


def test_no_warning_where_instrumented_calls_keep_their_arguments(tmp_path: Path) -> None:
    """gcc believed that a depthwise layer without tables reads them, from beyond the struct that it has instead."""
    sketch = Sketch(1)
    image = sketch.value((1, 6, 6, 8))
    data = sketch.build([image], [sketch.depthwise(sketch.depthwise(image, (3, 3)), (3, 3))])
    plan = plan_of(data, "cortex-m0plus", kernels="tinyfuse", weights="packed")
    assert {stage.kernel.name for group in plan.groups for stage in group.stages} == {"tinyfuse_depthwise_3x3_row_s8"}
    compile_modules([plan], "cortex-m0plus", "gcc", ["-O3", "-finstrument-functions"], tmp_path)


@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m33"])
def test_branches_over_checked_sums_are_in_range(target: str, tmp_path: Path) -> None:
    """gcc took sums of int32 whose overflow is checked for shorter than they are, and branched too far over them."""
    sketch = Sketch(1)
    image = sketch.value((1, 6, 6, 8))
    plan = plan_of(sketch.build([image], [sketch.conv(image, 5, (1, 1))]), target, kernels="tinyfuse", weights="packed")
    flags = ["-Og", "-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"]
    compile_modules([plan], target, "gcc", flags, tmp_path)


def test_the_pairs_are_all_there_and_few() -> None:
    made = pairwise(CHOICES)
    assert made == pairwise(CHOICES) and all(map(possible, made))
    there = set().union(*(_pairs(dict(enumerate(choice))) for choice in made))
    for (i, of_i), (j, of_j) in combinations(enumerate(CHOICES), 2):
        for a, b in product(of_i, of_j):
            assert ((i, a), (j, b)) in there or not possible(_with(CHOICES, {i: a, j: b})), (i, a, j, b)
    assert len(made) < 50


def test_the_modules_reach_every_kernel() -> None:
    """Every kernel of ours on some core; no header of runtime_c/ is left out but what calls to CMSIS-NN need."""
    plans = [plan for core in CORES for plan in modules(core)]
    called = {stage.kernel.name for plan in plans for group in plan.all_groups for stage in group.stages}
    families = [family for family in FAMILIES.values() if family.runs_here]  # an NPU's module lacks what firmware has
    assert called >= {k.name for family in families for k in kernels_of(family.kind) if k.library == "tinyfuse"}
    written = {file for plan in plans for file in emit(plan)}
    assert {path.name for path in resource_dir("runtime_c").glob("*.h")} - written == {"tinyfuse_window.h"}


def test_the_modules_reach_every_function(tmp_path: Path) -> None:
    """Each that the headers define is called, on some core, by a module or by one that is called."""
    defined, reached = set[str](), set[str]()
    for core in set(CORES) - {"cortex-m33"}:  # which has Cortex-M4's code
        plans, folder = modules(core), tmp_path / core
        write_modules(plans, folder)
        (folder / "all.c").write_text("".join(f'#include "{plan.options.name}.c"\n' for plan in plans))
        compile_c(
            [*cross_compiler("gcc", load_target(core)), "-std=c99", "-E", folder / "all.c", "-o", folder / "all.i"]
        )
        named, todo = functions((folder / "all.i").read_text())
        called = set[str]()
        while todo := (todo & named.keys()) - called:
            called |= todo
            todo = set().union(*(named[name] for name in todo))
        reached |= called
        defined |= named.keys()
    assert len(defined) > 300
    assert not defined - reached, " ".join(sorted(defined - reached))


_FUNCTION = re.compile(r"\b(tinyfuse_\w+)\((?:[^;{}()]|\([^()]*\))*\)\s*\{")


def functions(text: str) -> tuple[dict[str, set[str]], set[str]]:
    """Splits preprocessed C: the words of each of our functions, and the words outside of them."""
    named, outside, place = {}, set[str](), 0
    while found := _FUNCTION.search(text, place):
        outside |= _words(text[place : found.start()])
        end, depth = found.end(), 1
        while depth:
            brace = _BRACE.search(text, end)
            end, depth = brace.end(), depth + (1 if brace[0] == "{" else -1)
        named[found[1]], place = _words(text[found.end() : end]), end
    return named, outside | _words(text[place:])


_BRACE = re.compile(r"[{}]")


def _words(text: str) -> set[str]:
    return set(re.findall(r"\btinyfuse_\w+", text))


def test_functions_are_told_from_what_calls_them() -> None:
    text = """static int tinyfuse_a(int x);
    static int tinyfuse_b(void (*f)(int)) { if (f) { f(1); } return tinyfuse_a(2); } static int tinyfuse_c(void) { return 1; }
    int run(void) { return tinyfuse_b(tinyfuse_d); }"""
    named, outside = functions(text)
    assert named == {"tinyfuse_b": {"tinyfuse_a"}, "tinyfuse_c": set()}
    assert outside == {"tinyfuse_a", "tinyfuse_b", "tinyfuse_d"}
