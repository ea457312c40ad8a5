"""CMSIS-NN: its trees are found and read, and its functions, as our kernels call them, are exact."""

from __future__ import annotations

import shutil
import subprocess
import zipfile
from pathlib import Path

import numpy as np
import pytest
from cases import NAMED
from cmsis_harness import Case, cases_of, context_for, drawn, run_cases, tree_or_skip
from conv_cases import Shape, make_op, random_input, random_shape
from executors import assert_exact, plan_of
from known_architectures import FAMILIES as NETWORKS
from random_graphs import Sketch
from tflite_builder import ModelBuilder

from tinyfuse.cli.report import report
from tinyfuse.cli.request import Request
from tinyfuse.cli.verify import verify
from tinyfuse.errors import ToolMissing, UsageError
from tinyfuse.ir import Op, Quant, Tensor
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.registry import kernels_of
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.binary import Binary
from tinyfuse.ops.core.family import RowWindow
from tinyfuse.ops.pooling_reduce.pooling import Pool2D, pool_output_and_padding
from tinyfuse.ops.pooling_reduce.softmax import Softmax
from tinyfuse.options import VerifyOptions
from tinyfuse.resources import resource_dir
from tinyfuse.targets import load_target
from tinyfuse.toolchain.cmsis_nn import Tree, bundle, find_cmsis_nn

# --- finding trees ---------------------------------------------------------------------------


@pytest.fixture(autouse=True)
def nothing_around(monkeypatch: pytest.MonkeyPatch, request, tmp_path: Path) -> None:
    """Removes CMSIS-NN trees from the environment, so that tests find only their own."""
    if "tree" not in request.fixturenames and "target" not in request.fixturenames:
        for name in ("CMSIS_NN_PATH", "CMSIS_PATH", "CMSIS_PACK_ROOT", "LOCALAPPDATA"):
            monkeypatch.delenv(name, raising=False)
        for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME", "HOME"):
            monkeypatch.setenv(name, str(tmp_path / "home"))
        monkeypatch.setattr("tinyfuse.toolchain.cmsis_nn.find._bakenn", lambda: None)


_DECLARED = """\
arm_cmsis_nn_status arm_add(const int8_t *a); /* arm_gone(int a); */
int32_t arm_convolve_wrapper_s8_get_buffer_size_mve(int a);
arm_cmsis_nn_status arm_vector_sum_s8(int32_t *sums, const int32_t lhs_offset);
void arm_elsewhere(const cmsis_nn_dims *upscale_dims);
"""


def make_tree(root: Path, declared: str = _DECLARED, include: str = "") -> Path:
    (root / "Include").mkdir(parents=True)
    (root / "Source" / "Basic").mkdir(parents=True)
    (root / "Include" / "arm_nnfunctions.h").write_text(f'#include "arm_nn_types.h"\n{include}{declared}')
    (root / "Include" / "arm_nn_types.h").write_text("typedef int arm_cmsis_nn_status;\n")
    (root / "Source" / "Basic" / "arm_add.c").write_text(
        '#include "arm_nnfunctions.h"\n\nstatic int arm_own(int a)\n{\n    return a;\n}\n\n'
        "arm_cmsis_nn_status arm_add(const int8_t *a)\n{\n    return arm_own(table[help(*a)]);\n}\n"
    )
    (root / "Source" / "helpers.c").write_text(
        "// int arm_add(int a) { }\n#if A\nint help(int a)\n{\n    return a;\n}\n#endif\n"
    )
    (root / "Source" / "tables.c").write_text("const int16_t table[4] = {1, 2, 3, 4};\n")
    (root / "Source" / "unused.c").write_text("void arm_elsewhere(const int *a)\n{\n    (void)a;\n}\n")
    (root / "LICENSE").write_text("the licence\n")
    return root


def test_a_named_folder_holds_the_tree_in_many_ways(tmp_path: Path) -> None:
    for name, inside in (("plain", ""), ("cmsis5", "CMSIS/NN"), ("copy", "cmsis-nn"), ("pack", "7.0.0")):
        root = make_tree(tmp_path / name / inside)
        tree = find_cmsis_nn(str(tmp_path / name))
        assert (tree.path, tree.version, tree.found_by) == (root.resolve(), (7, 0), "--cmsis-nn")


def test_the_order_of_places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert find_cmsis_nn(None) is None
    cache = tmp_path / "home" / "cmsis-pack-manager" / "ARM" / "CMSIS-NN"
    source = make_tree(tmp_path / "source")
    cache.mkdir(parents=True)
    for version in ("7.0.0", "10.0.0", "4.1.0"):
        with zipfile.ZipFile(cache / f"{version}.pack", "w") as pack:
            for path in source.rglob("*.*"):
                pack.write(path, path.relative_to(source).as_posix())
            pack.writestr("Documentation/page.html", "")
    tree = find_cmsis_nn(None)
    assert tree.found_by == "CMSIS-Pack" and tree.path.name.startswith("CMSIS-NN-10.0.0")
    assert not (tree.path / "Documentation").exists()
    assert find_cmsis_nn(str(cache / "7.0.0.pack")).path.name.startswith("CMSIS-NN-7.0.0")
    monkeypatch.setenv("CMSIS_PACK_ROOT", str(tmp_path / "packs"))
    unpacked = make_tree(tmp_path / "packs" / "ARM" / "CMSIS-NN" / "6.0.0")
    assert find_cmsis_nn(None).path == unpacked.resolve()
    monkeypatch.setenv("CMSIS_NN_PATH", str(source))
    assert find_cmsis_nn(None).path == source.resolve()
    assert find_cmsis_nn(str(unpacked)).path == unpacked.resolve()


def test_what_is_no_tree_is_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no Include/arm_nnfunctions.h"):
        find_cmsis_nn(str(tmp_path))
    (tmp_path / "x.pack").write_text("no archive")
    with pytest.raises(UsageError, match="not a CMSIS-Pack"):
        find_cmsis_nn(str(tmp_path / "x.pack"))
    with pytest.raises(UsageError, match="before 4.0"):
        find_cmsis_nn(str(make_tree(tmp_path / "old", "arm_status arm_add(const q7_t *a);\n")))


def test_core_headers_are_looked_for_where_4_0_needs_them(tmp_path: Path, monkeypatch) -> None:
    root = make_tree(tmp_path / "a" / "CMSIS-NN", "arm_cmsis_nn_status arm_add(int a);\n",
                     '#include "cmsis_compiler.h"\n')  # fmt: skip
    with pytest.raises(ToolMissing, match="CMSIS core"):
        find_cmsis_nn(str(root))
    core = tmp_path / "core" / "CMSIS" / "Core" / "Include"
    core.mkdir(parents=True)
    (core / "cmsis_compiler.h").write_text('#include "m-profile/gcc.h"\n')
    (core / "unused.h").write_text("")
    (core / "m-profile").mkdir()
    (core / "m-profile" / "gcc.h").write_text("")
    monkeypatch.setenv("CMSIS_PATH", str(tmp_path / "core"))
    tree = find_cmsis_nn(str(root))
    assert tree.version == (4, 0) and tree.core_include == core.resolve()
    assert {name for name in bundle(tree, ["arm_add"]) if "/core/" in name} == {
        "cmsis-nn/core/cmsis_compiler.h", "cmsis-nn/core/m-profile/gcc.h"
    }  # fmt: skip
    (tmp_path / "a" / "CMSIS" / "Core").mkdir(parents=True)
    shutil.copytree(core, tmp_path / "a" / "CMSIS" / "Core" / "Include")
    assert "core" not in find_cmsis_nn(str(root)).core_include.parts  # beside the tree comes first


def test_closure_and_bundle(tmp_path: Path) -> None:
    tree = find_cmsis_nn(str(make_tree(tmp_path / "tree")))
    assert tree.functions() == {"arm_add", "arm_elsewhere"}
    assert tree.missing(["arm_add", "arm_gone"]) == {"arm_gone"}
    names = [path.relative_to(tree.path / "Source").as_posix() for path in tree.closure(["arm_add"])]
    assert names == ["Basic/arm_add.c", "helpers.c", "tables.c"]
    with pytest.raises(UsageError, match="has no arm_gone"):
        tree.closure(["arm_gone", "arm_add"])
    files = bundle(tree, ["arm_add"])
    assert sorted(files) == [
        "cmsis-nn/Include/arm_nn_types.h", "cmsis-nn/Include/arm_nnfunctions.h", "cmsis-nn/LICENSE",
        "cmsis-nn/Source/Basic/arm_add.c", "cmsis-nn/Source/helpers.c", "cmsis-nn/Source/tables.c",
    ]  # fmt: skip
    assert files["cmsis-nn/LICENSE"].read_text() == "the licence\n"


@pytest.mark.parametrize("target", ["cortex-m4"])
@pytest.mark.parametrize("wanted", ["4.0", "newest"])
def test_the_bundle_compiles_and_links_alone(wanted: str, target: str, tmp_path: Path) -> None:
    tree = tree_or_skip(wanted)
    functions = tree.functions() & {kernel.name for family in FAMILIES.values() for kernel in kernels_of(family.kind)}
    assert {"arm_convolve_wrapper_s8", "arm_depthwise_conv_wrapper_s8", "arm_max_pool_s8"} <= functions
    for name, path in bundle(tree, functions).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(path.read_bytes())
    uses = ", ".join(f"(function){name}" for name in sorted(functions))
    (tmp_path / "main.c").write_text(
        "#include <arm_nnfunctions.h>\n#include <arm_nnsupportfunctions.h>\ntypedef void (*function)(void);\n"
        f"function volatile used[] = {{{uses}}};\nint main(void)\n{{\n    return 0;\n}}\n"
    )
    sources = sorted(str(path) for path in tmp_path.rglob("*.c"))
    done = subprocess.run(
        ["arm-none-eabi-gcc", "-O1", "-w", *load_target(target).flags, "-Icmsis-nn/Include", "-Icmsis-nn/core",
         *sources, "--specs=nosys.specs", "-o", "all.elf"],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[:2000]


# --- the row window --------------------------------------------------------------------------


def test_the_window_of_a_row_is_that_of_the_plan(tmp_path: Path) -> None:
    """tinyfuse_window_at against RowWindow, over every small window and row, padding beyond included; of several rows
    where each reads one that exists."""
    if shutil.which("gcc") is None:
        pytest.skip("needs gcc")
    (tmp_path / "window.c").write_text(
        '#include "tinyfuse_window.h"\n#include <stdio.h>\nint main(void)\n{\n'
        "    int32_t y, count, stride, pad, kernel, height;\n"
        "    for (kernel = 1; kernel < 5; ++kernel) for (stride = 1; stride < 4; ++stride)\n"
        "    for (pad = 0; pad < 7; ++pad) for (height = 1; height < 5; ++height)\n"
        "    for (y = 0; y < 9; ++y) for (count = 1; count < 4; ++count) {\n"
        "        const tinyfuse_window w = tinyfuse_window_at(y, count, stride, pad, kernel, height);\n"
        '        printf("%d %d %d %d %d %d %d %d %d\\n", (int)kernel, (int)stride, (int)pad, (int)height, (int)y,\n'
        "               (int)count, (int)w.first, (int)w.rows, (int)w.pad_top);\n    }\n    return 0;\n}\n"
    )
    subprocess.run(
        ["gcc", "-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Wno-misleading-indentation", "-Werror",
         "-I", str(resource_dir("runtime_c")), "window.c", "-o", "window"],
        cwd=tmp_path, check=True,
    )  # fmt: skip
    lines = subprocess.run([tmp_path / "window"], capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(lines) == 4 * 3 * 7 * 4 * 9 * 3
    compared = 0
    for line in lines:
        kernel, stride, pad, height, y, count, first, rows, pad_top = map(int, line.split())
        window = RowWindow(kernel, stride, pad)
        existing = [
            [r for r in range(row * stride - pad, row * stride - pad + kernel) if 0 <= r < height]
            for row in range(y, y + count)
        ]
        if count > 1 and not all(existing):
            continue
        compared += count > 1
        read = sorted({row for rows in existing for row in rows})
        assert first == min(window.first(y), height)
        assert rows == (read[-1] + 1 - read[0] if read else 0) and (not read or first == read[0])
        assert pad_top == min(kernel, max(0, pad - y * stride))
    assert compared > 500


# --- exactness -------------------------------------------------------------------------------


def random_convolutions(rng: np.random.Generator, context: Context, count: int) -> list[Case]:
    cases: list[Case] = []
    while len(cases) < count:
        kind = str(rng.choice(["CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED"]))
        shape = random_shape(kind, rng, explicit_padding=bool(rng.random() < 0.2))
        op = make_op(shape, rng, extreme=bool(rng.random() < 0.3))
        cases += cases_of(op, (random_input(op, rng, bool(rng.random() < 0.3)),), context)
    return cases


#: shapes at the edges of CMSIS-NN's paths
_EDGES = (
    Shape("CONV_2D", 1, 8, 4, 3, (1, 3)),  # 1xn
    Shape("CONV_2D", 6, 7, 4, 5, (1, 5), padding="VALID"),
    Shape("CONV_2D", 3, 7, 4, 5, (1, 5), (1, 2)),  # what 6.0 and 7.0 get wrong on MVE
    Shape("CONV_2D", 4, 4, 8, 6, (1, 1), (2, 2)),
    Shape("CONV_2D", 4, 4, 6, 4, groups=2),
    Shape("CONV_2D", 5, 5, 6, 9, (3, 3), groups=3),
    Shape("CONV_2D", 4, 3, 3, 2, (1, 1), padding=(1, 1, 0, 0)),  # rows of nothing but padding
    Shape("CONV_2D", 2, 2, 1, 1, (3, 3), padding=(4, 4, 4, 4)),
    Shape("CONV_2D", 7, 5, 3, 4, (3, 3), dilation=(2, 2)),
    Shape("CONV_2D", 1, 1, 200, 3),
    Shape("DEPTHWISE_CONV_2D", 5, 4, 123, 1, (3, 3)),  # a block of channels on MVE has 124
    Shape("DEPTHWISE_CONV_2D", 4, 3, 130, 1, (3, 3), (2, 2)),
    Shape("DEPTHWISE_CONV_2D", 6, 1, 5, 1, (3, 3)),
    Shape("DEPTHWISE_CONV_2D", 3, 3, 4, 1, (3, 3), padding=(1, 1, 1, 3)),  # 3x3 cannot
    Shape("DEPTHWISE_CONV_2D", 2, 3, 4, 1, (2, 2), padding=(0, 5, 0, 0)),  # damages memory on DSP
    Shape("DEPTHWISE_CONV_2D", 9, 5, 1, 1, (10, 4), (2, 2), multiplier=8),
    Shape("DEPTHWISE_CONV_2D", 1, 6, 1, 1, (1, 3), multiplier=4),
    Shape("DEPTHWISE_CONV_2D", 5, 5, 3, 1, (3, 3), multiplier=4),
    Shape("DEPTHWISE_CONV_2D", 6, 6, 5, 1, (3, 2), dilation=(1, 2)),
)


def edge_cases(rng: np.random.Generator, context: Context) -> list[Case]:
    cases = []
    for shape in _EDGES:
        op = make_op(shape, rng)
        cases += cases_of(op, (random_input(op, rng),), context)
    return cases


def _quant(rng: np.random.Generator) -> Quant:
    scale, zero_point = float(np.float32(10 ** rng.uniform(-2, 0))), int(rng.integers(-128, 128))
    return Quant((scale,), (zero_point,))


def _int8(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    return rng.integers(-128, 128, shape).astype(np.int8)


def random_pools(rng: np.random.Generator, context: Context, count: int) -> list[Case]:
    cases: list[Case] = []
    while len(cases) < count:
        height, width, *sizes = (int(v) for v in rng.integers(1, 6, 6))
        channels = int(rng.choice([1, 3, 4, 15, 16, 17, 33]))
        attributes = Pool2D(
            str(rng.choice(["SAME", "VALID"])), tuple(sizes[:2]), tuple(sizes[2:]), str(rng.choice(["NONE", "RELU6"]))
        )  # fmt: skip
        kind, quant = str(rng.choice(["AVERAGE_POOL_2D", "MAX_POOL_2D"])), _quant(rng)
        x = Tensor("x", (1, height + 4, width + 4, channels), "int8", quant, index=0)
        (rows, _), (columns, _) = pool_output_and_padding(Op(kind, (x,), (), attributes))
        y = Tensor("y", (1, rows, columns, channels), "int8", quant, index=1)
        cases += cases_of(Op(kind, (x,), (y,), attributes, index=0), (_int8(rng, x.shape),), context)
    return cases


def random_binaries(rng: np.random.Generator, context: Context, count: int) -> list[Case]:
    cases: list[Case] = []
    while len(cases) < count:
        shape = (1, *(int(v) for v in rng.integers(1, 6, 2)), int(rng.integers(1, 20)))
        constant = _int8(rng, shape) if rng.random() < 0.3 else None
        a = Tensor("a", shape, "int8", _quant(rng), index=0)
        b = a if rng.random() < 0.1 else Tensor("b", shape, "int8", _quant(rng), constant, index=1)
        y = Tensor("y", shape, "int8", _quant(rng), index=2)
        kind = str(rng.choice(["ADD", "MUL", "MAXIMUM", "MINIMUM"] if context.cmsis_nn >= (7, 0) else ["ADD", "MUL"]))
        attributes = Binary(str(rng.choice(["NONE", "RELU"]))) if kind in ("ADD", "MUL") else None
        op = Op(kind, (a, b), (y,), attributes, index=0)
        cases += cases_of(op, tuple(_int8(rng, shape) for _ in op.activations), context)
    return cases


def random_softmaxes(rng: np.random.Generator, context: Context, count: int) -> list[Case]:
    cases: list[Case] = []
    for _ in range(count):
        shape = (int(rng.integers(1, 4)), int(rng.choice([1, 3, 4, 10, 16, 17, 33])))
        quant = Quant((float(np.float32(10 ** rng.uniform(-6, 1))),), (int(rng.integers(-128, 128)),))
        x = Tensor("x", shape, "int8", quant, index=0)
        y = Tensor("y", shape, "int8", Quant((1 / 256,), (-128,)), index=1)
        op = Op("SOFTMAX", (x,), (y,), Softmax(1.0), index=0)
        cases += cases_of(op, (_int8(rng, shape),), context)
    return cases


#: kinds whose cases are those of every operator (tests/support/cases)
_OF_ALL = ("PAD", "PADV2", "TRANSPOSE", "BATCH_MATMUL", "TRANSPOSE_CONV", "MAXIMUM", "MINIMUM")


def named_and_random(rng: np.random.Generator, context: Context, count: int) -> list[Case]:
    """Returns the named cases of _OF_ALL and `count` random ones of each kind."""
    ops = [op for kind in _OF_ALL for op in NAMED[kind].values()]
    for kind in _OF_ALL:
        ops += drawn(kind, count)
    return [
        case
        for op in ops
        if all(t.dtype == "int8" for t in (*op.activations, op.output))
        for case in cases_of(op, tuple(_int8(rng, t.shape) for t in op.activations), context)
    ]


@pytest.mark.emulated
@pytest.mark.parametrize("target", ["cortex-m0plus", "cortex-m4", "cortex-m55"])
@pytest.mark.parametrize("wanted", ["4.0", "newest"])
def test_functions_are_exact(wanted: str, target: str, tmp_path: Path) -> None:
    """Every kernel against its operator's reference, with guards around output and scratch."""
    tree = tree_or_skip(wanted)
    context, rng = context_for(target, tree), np.random.default_rng(20)
    cases = random_convolutions(rng, context, 60) + edge_cases(rng, context)
    cases += random_pools(rng, context, 30) + random_binaries(rng, context, 30)
    cases += random_softmaxes(rng, context, 12)
    cases += named_and_random(rng, context, 25) if tree.version >= (7, 0) else []
    cases = [case for case in cases if not tree.missing([case.kernel.name])]
    assert {case.kernel.name for case in cases} == _kernels(context, tree)
    for case, result in zip(cases, run_cases(cases, context, tree, tmp_path), strict=True):
        how = "by rows" if case.by_row else "whole"
        shapes = [tensor.shape for tensor in (*case.op.inputs, *case.op.outputs) if tensor is not None]
        assert result.good, (result, case.kernel.name, how, shapes, case.op.attributes)
        assert result.stack <= case.kernel.stack_bytes, (result, case.kernel.name, shapes)


def _kernels(context: Context, tree: Tree) -> set[str]:
    """Kernels that call functions which the tree has and the target can use. SVDF and LSTM have states: see
    tests/exact/test_streams.py. For int16 and int4 see test_cmsis_dtypes.py."""
    kernels = [kernel for family in FAMILIES.values() for kernel in kernels_of(family.kind) if not family.updates]
    names = {kernel.name for kernel in kernels if kernel.library == "cmsis-nn" and kernel.name.endswith("_s8")}
    if tree.version < (7, 0):  # their arguments were others
        names -= {"arm_convolve_s8", "arm_transpose_conv_s8"}
    if context.target.mve and tree.version == (4, 0):
        names -= {"arm_softmax_s8"}
    return names & tree.functions()


@pytest.mark.emulated
@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m55"])
@pytest.mark.parametrize("wanted", ["4.0", "newest"])
def test_a_row_group_calls_cmsis_nn_row_by_row(wanted: str, target: str, tmp_path: Path) -> None:
    """Depthwise and pointwise convolutions with odd dimensions, strides and paddings, fused: some group's
    own code refers to both functions, and the firmware is exact."""
    tree = tree_or_skip(wanted)
    sketch = Sketch(6)
    x = sketch.value((1, 33, 7, 5))
    y = sketch.conv(sketch.depthwise(x, (3, 3), (2, 2)), 7, (1, 1))
    y = sketch.conv(sketch.depthwise(y, (5, 2), padding="VALID"), 3, (1, 1), activation="RELU")
    model = tmp_path / "rows.tflite"
    model.write_bytes(sketch.build([x], [y]))
    request = Request(str(model), target, kernels="cmsis-nn", optimize="ram", cmsis_nn_path=str(tree.path))
    how = VerifyOptions(emulator="qemu", oracle="tflm", runs=2, timeout=120.0)
    answer = verify(request, lambda text: None, how)
    assert answer.exact
    groups = list(answer.data["kernel_symbols"].values())
    functions = {"arm_depthwise_conv_wrapper_s8", "arm_convolve_wrapper_s8"}
    assert functions <= set().union(*groups) and any(functions <= set(symbols) for symbols in groups)


@pytest.mark.emulated
@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m55"])
@pytest.mark.parametrize(
    ("network", "fusion", "functions"),
    [
        # fused, products of rows take the place of transposed matrices: ours
        ("attention", "none", {"arm_transpose_s8", "arm_batch_matmul_s8", "arm_softmax_s8", "arm_elementwise_add_s8"}),
        ("attention", "rows", {"arm_fully_connected_s8", "arm_softmax_s8", "arm_elementwise_add_s8"}),
        ("u_net", "rows", {"arm_transpose_conv_s8", "arm_convolve_wrapper_s8", "arm_max_pool_s8"}),
    ],
)
def test_networks(network: str, fusion: str, functions: set[str], target: str) -> None:
    """Functions that 7.0 brought, compiled into a module with all warnings."""
    tree = tree_or_skip("newest")
    if tree.version < (7, 0):
        pytest.skip("needs CMSIS-NN 7.0 or later: CMSIS_NN_PATH names an older one")
    plan = plan_of(NETWORKS[network](), target, kernels="cmsis-nn", fusion=fusion)
    assert functions <= plan.cmsis_nn_functions
    assert_exact(plan, 2, tree=tree)


def test_no_group_takes_a_kernel_of_cmsis_nn_away() -> None:
    """After the transposed convolution, which CMSIS-NN computes whole, a QUANTIZE, as a table, would make a group."""
    ours, theirs = (
        plan_of(NETWORKS["u_net"](), "cortex-m4", kernels=k, fusion="basic") for k in ("tinyfuse", "cmsis-nn")
    )
    kinds = [[stage.op.kind for stage in group.stages] for group in ours.groups]
    assert ["TRANSPOSE_CONV", "TABLE"] in kinds
    assert "arm_transpose_conv_s8" in theirs.cmsis_nn_functions


def test_what_only_a_later_version_can_is_said(tmp_path: Path) -> None:
    """A grouped convolution: 6.0 is the first whose arm_convolve_wrapper_s8 takes groups."""
    model = ModelBuilder()
    x = model.tensor("x", (1, 4, 4, 4), scale=0.1, zero_point=0)
    w = model.tensor("w", (4, 3, 3, 2), scale=0.01, zero_point=0, data=np.ones((4, 3, 3, 2), np.int8))
    b = model.tensor("b", (4,), "int32", data=np.zeros(4, np.int32))
    y = model.tensor("y", (1, 4, 4, 4), scale=0.1, zero_point=0)
    model.op("CONV_2D", [x, w, b], [y], stride_h=1, stride_w=1, padding="SAME")
    (tmp_path / "m.tflite").write_bytes(model.build([x], [y]))

    def warnings(version: str, kernels: str = "cmsis-nn") -> list[str]:
        request = Request(str(tmp_path / "m.tflite"), "cortex-m4", kernels=kernels, cmsis_nn_version=version)
        return report(request, lambda text: None).data["warnings"]

    (told,) = warnings("5.0")
    assert told.startswith(
        "op 0 CONV_2D 'y': arm_convolve_wrapper_s8 of CMSIS-NN 5.0 cannot compute it, that of 6.0 can: tinyfuse_"
    )
    assert warnings("6.0") == warnings("5.0", "tinyfuse") == []
