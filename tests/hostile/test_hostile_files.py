"""Damaged, absurd or malicious files give one clear CompileError, quickly, or a sound Graph.

The fuzzer makes some files of each model, for test_hostile_compile.py reads such files too; TINYFUSE_FUZZ_FILES=50000
makes a campaign, and TINYFUSE_FUZZ_SEED=7 gives it other files than the ones that every run sees.
"""

from __future__ import annotations

import math
import os
import resource
from collections.abc import Callable
from functools import cache, partial
from itertools import islice, pairwise
from typing import Any

import flatbuffers
import numpy as np
import pytest
from call_limit import at_most
from real_models import ORIGINAL_MODELS, OWN_MODELS, REAL_MODELS
from tflite_builder import ModelBuilder, Outside, write_numbers, write_offsets, write_table
from tflite_mutations import mutants, patch, sites

from tinyfuse.errors import CompileError
from tinyfuse.frontend.reader import MAX_FILE_BYTES, read_tflite
from tinyfuse.frontend.tensors import HINT_UNSOUND, MAX_PROBLEMS, MAX_TENSOR_BYTES
from tinyfuse.ir import FLOAT16, INT4, ITEM_BYTES, Graph
from tinyfuse.ir.text import graph_text

FILES = int(os.environ.get("TINYFUSE_FUZZ_FILES", "120"))
SEED = int(os.environ.get("TINYFUSE_FUZZ_SEED", "0"))


@cache
def sample() -> bytes:
    """A small file with most structures that the reader examines; tests change its numbers one by one. Tensors: 0 x, 1
    weights, 2 bias, 3 y, 4 shape, 5 z. Operators: CONV_2D, RESHAPE, CUSTOM.

    Tensors: 0 x, 1 weights, 2 bias, 3 y, 4 shape, 5 z. Operators: CONV_2D, RESHAPE, CUSTOM.
    """
    model = ModelBuilder()
    signature = (-1, 4, 4, 2)
    x = model.tensor("x", (1, 4, 4, 2), scale=0.5, zero_point=3, shape_signature=signature)
    filters = np.arange(54, dtype=np.int8).reshape(3, 3, 3, 2)
    w = model.tensor("w", (3, 3, 3, 2), scale=[1, 2, 3], zero_point=[0, 0, 0], data=filters)
    b = model.tensor("b", (3,), "int32", [0.5, 1, 2], data=np.array([1, 2, 3], np.int32))
    y = model.tensor("y", (1, 4, 4, 3), scale=0.25, zero_point=-128)
    model.op("CONV_2D", [x, w, b], [y], stride_h=1, stride_w=1, padding="SAME")
    shape = model.tensor("shape", (2,), "int32", data=np.array([1, 48], np.int32))
    z = model.tensor("z", (1, 48), scale=0.25, zero_point=-128)
    model.op("RESHAPE", [y, shape], [z], new_shape=(1, 48))
    out = model.tensor("out", (2, 2), "float32")
    flags = model.tensor("flags", (2,), "bool", data=np.array([True, False]))
    model.op("CUSTOM", [z, -1, flags], [out], custom_code="mine", version=2)
    return model.build([x], [out, y], force_defaults=True)


def problems(data: bytes) -> list[str]:
    """Problems of a file, not counting operators that this version of tinyfuse doesn't know."""
    with pytest.raises(CompileError) as caught:
        read_tflite("m.tflite", data)
    assert_clear(caught.value)
    told = caught.value.problems
    return [str(problem) for problem in told if "operator is not supported" not in problem.message]


def assert_clear(error: CompileError) -> None:
    assert error.problems
    for problem in error.problems:
        assert str(problem).isprintable()
        assert len(str(problem)) < 2000
        assert problem.hint or "more problems" in problem.message or "not supp" in problem.message


def assert_sound(graph: Graph) -> None:
    """Checks what the rest of tinyfuse assumes about a graph that was read."""
    known = set(graph.inputs)
    assert graph.ops and graph.outputs
    for op in graph.ops:
        assert known.issuperset(op.activations)
        assert known.isdisjoint(op.outputs)
        known.update(op.outputs)
    assert all(tensor in known or tensor.is_constant for tensor in graph.outputs)
    copies = {op.output for op in graph.ops if op.kind == "CONSTANT_OUTPUT"}  # a rule refuses dtypes without a C type
    for tensor in known | {t for op in graph.ops for t in op.inputs if t is not None}:
        constant = tensor.is_constant or tensor in copies
        assert tensor.dtype in ITEM_BYTES or (constant and tensor.dtype in (INT4, FLOAT16))
        assert all(dim > 0 for dim in tensor.shape)
        assert len(tensor.shape) <= 8 and tensor.bytes <= MAX_TENSOR_BYTES
        if tensor.data is not None:
            assert (
                tensor.data.dtype == ("int8" if tensor.dtype == INT4 else tensor.dtype)
                and tensor.data.shape == tensor.shape
            )
            assert not tensor.data.flags.writeable
        if tensor.quant is not None:
            quant = tensor.quant
            assert len(quant.scale) == len(quant.zero_point)
            least = 0 if tensor.is_constant else math.ulp(0)  # a constant of zeros may have scale 0, as in TFLM
            assert all(least <= scale < math.inf for scale in quant.scale)
    assert graph_text(graph)


# --- files that are no models ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: None, "no such file"),
        (lambda path: path.mkdir(), "not a regular file"),
        (lambda path: os.mkfifo(path), "not a regular file"),
        (lambda path: path.write_bytes(b""), "empty"),
        (lambda path: path.write_bytes(b"TFL3"), "not a TensorFlow Lite model"),
        (lambda path: path.write_bytes(b"PK\x03\x04" + bytes(100)), "not a TensorFlow Lite model"),
        (lambda path: path.symlink_to(path), "can't be read"),
        (lambda path: path.touch() or os.truncate(path, MAX_FILE_BYTES + 1), "more than"),
    ],
)
def test_no_model(tmp_path, make, message):
    path = tmp_path / "m.tflite"
    make(path)
    with pytest.raises(CompileError, match=message) as caught:
        read_tflite(path)
    assert caught.value.model == str(path)
    assert_clear(caught.value)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_no_permission(tmp_path):
    path = tmp_path / "m.tflite"
    path.write_bytes(sample())
    path.chmod(0)
    with pytest.raises(CompileError, match="Permission denied"):
        read_tflite(path)


def test_a_path_that_can_t_be():
    for path in ("a\0b", "x" * 10_000):
        with pytest.raises(CompileError, match="can't be read"):
            read_tflite(path)


# --- single faults ---------------------------------------------------------------------------

SUBGRAPH = "Model.subgraphs[0]"
QUANTIZATION = f"{SUBGRAPH}.tensors[1].quantization"


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("Model.version", 4, "schema version 4 is not 3"),
        ("Model.operator_codes", 1 << 31, "damaged file: Model.operator_codes lies outside"),
        ("Model.subgraphs", 1 << 30, "damaged file: Model.subgraphs lies outside the file"),
        ("the vtable of Model", 5, "the vtable of Model has an impossible size (5)"),
        ("the vtable of Model", 0xFFFE, "the vtable of Model lies outside the file"),
        ("Model", 0xFFFFFFFF, "damaged file: Model"),
        (f"{SUBGRAPH}.tensors[3]", 0x7FFFFFF0, "damaged file: Model.subgraphs[0].tensors[3]"),
        (f"{SUBGRAPH}.tensors[3].name", 0xFFFFFF00, "tensors[3].name lies outside the file"),
        (f"{SUBGRAPH}.inputs[0]", 99, "an input of the graph is tensor 99, of 8"),
        (f"{SUBGRAPH}.inputs[0]", -1, "an input of the graph is tensor -1, of 8"),
        (f"{SUBGRAPH}.inputs[0]", 1, "is an input of the graph, but has constant data"),
        (f"{SUBGRAPH}.outputs[0]", 8, "an output of the graph is tensor 8, of 8"),
        (f"{SUBGRAPH}.operators[0].opcode_index", 3, "operator code 3 is out of range"),
        (f"{SUBGRAPH}.operators[0].inputs[1]", -2, "an input is tensor -2, of 8"),
        (f"{SUBGRAPH}.operators[0].inputs[0]", 5, "is read before it is computed"),
        (f"{SUBGRAPH}.operators[0].outputs[0]", -1, "an output is tensor -1, of 8"),
        (f"{SUBGRAPH}.operators[0].outputs[0]", 2, "is computed, but has constant data"),
        (f"{SUBGRAPH}.operators[1].outputs[0]", 3, "is computed a second time"),
        (f"{SUBGRAPH}.operators[0].outputs[0]", 0, "is computed a second time"),
        (f"{SUBGRAPH}.tensors[1].type", 18, "bfloat16 is not supported (only bool, int8"),
        (f"{SUBGRAPH}.tensors[3].type", 17, "int4 is supported for constant weights alone"),
        (f"{SUBGRAPH}.tensors[1].type", 99, "type 99 is not supported"),
        (f"{SUBGRAPH}.tensors[1].buffer", 5, "refers to buffer 5, of 5"),
        (f"{SUBGRAPH}.tensors[1].buffer", 2, "needs 54 bytes of data, but there are 12"),
        (f"{SUBGRAPH}.tensors[6].buffer", 3, "needs 16 bytes of data, but there are 8"),
        (f"{SUBGRAPH}.tensors[3].is_variable", 1, "is computed, but a variable"),
        (f"{SUBGRAPH}.tensors[3].shape[2]", -1, "dimension 2 is -1 (hint: give the model a fixed"),
        (f"{SUBGRAPH}.tensors[3].shape[0]", 0, "dimension 0 is 0"),
        (f"{SUBGRAPH}.tensors[3].shape[3]", 1 << 30, f"has more than {MAX_TENSOR_BYTES:,} bytes"),
        (f"{SUBGRAPH}.tensors[0].shape_signature[2]", -1, "dimension 2 is open (-1)"),
        (f"{QUANTIZATION}.scale[1]", math.nan, "a scale is nan"),
        (f"{QUANTIZATION}.scale[1]", math.inf, "a scale is inf"),
        (f"{SUBGRAPH}.tensors[3].quantization.scale[0]", 0.0, "a scale is 0.0; it must be positive and finite"),
        (f"{QUANTIZATION}.scale[1]", -1.0, "a scale is -1.0"),
        (f"{QUANTIZATION}.zero_point[2]", 128, "a zero point is 128; it must be in -128..127"),
        (f"{QUANTIZATION}.zero_point[2]", -(1 << 63), "a zero point is -9223372036854775808"),
    ],
)  # fmt: skip
def test_one_wrong_number(place, value, message):
    # what sort of model it is comes first, where the number makes it one
    told = [text for text in problems(patch(sample(), {place: value})) if not text.startswith("this is a model")]
    assert message in told[0], told
    # nothing else is told, but what follows from it for the tensor that is now missing
    assert all("is read before" in t or "nothing computes" in t for t in told[1:]), told


def other_tensor(**fields: Any) -> bytes:
    """A RELU that reads a tensor with odd fields."""
    model = ModelBuilder()
    fields = {"name": "odd", "shape": (1, 2)} | fields
    x, y = model.tensor(**fields), model.tensor("y", (1, 2))
    model.op("RELU", [x], [y])
    return model.build([x], [y])


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"shape": (1,) * 9}, "rank 9 is more than 8"),
        ({"shape": (1 << 30,) * 8}, "has more than"),
        ({"external_buffer": 1}, "its data lies in another file"),
        ({"sparsity": lambda b: write_table(b, "SparsityParameters")}, "sparse tensors"),
        (
            {"quantization": lambda b: write_table(b, "QuantizationParameters", details_type=1)},
            "only affine quantization",
        ),
        ({"data": Outside(100, 1 << 40)}, "lies outside the file"),
        ({"data": Outside((1 << 64) - 1, (1 << 64) - 1)}, "lies outside the file"),
        ({"dtype": "bool", "data": b"\0\2"}, "a bool constant has values other than 0 and 1"),
        ({"dtype": "string"}, "string is not supported"),
        ({"name": "x" * (1 << 16 | 1)}, "the model is too large: Model.subgraphs[0].tensors[0].name has"),
    ],
)
def test_one_odd_tensor(fields, message):
    told = problems(other_tensor(**fields))
    assert any(message in problem for problem in told), told


def test_the_sample_is_sound():
    assert_sound(read_tflite("m", sample()))


def test_no_graph_no_operators_no_ends():
    model = ModelBuilder()
    x = model.tensor("x", (1,))
    assert problems(model.build([x], [x], subgraphs=0)) == [f"the file has no graph (hint: {HINT_UNSOUND})"]
    told = " ".join(problems(model.build([], [])))
    for message in ("no output", "no operators"):
        assert f"the graph has {message}" in told


def test_the_same_input_twice():
    model = ModelBuilder()
    x, y = model.tensor("x", (1,)), model.tensor("y", (1,))
    model.op("RELU", [x], [y])
    (told,) = problems(model.build([x, x], [y]))
    assert "is listed twice among the inputs of the graph" in told


def never_asked(kind: str, monkeypatch) -> None:
    """The family is known for its table of options alone: asked about what they mean, it fails."""

    def fail(self: object, options: object) -> None:
        raise AssertionError(f"{kind} was asked about {options}")

    monkeypatch.setattr(type(families()[kind]), "attributes", fail)


@pytest.mark.parametrize(
    ("kind", "options", "message"),
    [
        ("CONV_2D", {"padding": 9}, "its option padding is 9, which means nothing"),
        ("CONV_2D", {"fused_activation_function": -1}, "its option fused_activation_function is -1"),
        ("SOFTMAX", {"beta": math.nan}, "its option beta is nan, which means nothing"),
    ],
)
def test_options_without_meaning(kind, options, message, monkeypatch):
    never_asked(kind, monkeypatch)
    model = ModelBuilder()
    x, y = model.tensor("x", (1,)), model.tensor("y", (1,))
    model.op(kind, [x], [y], **options)
    (told,) = problems(model.build([x], [y]))
    assert message in told and f"op 0 {kind} 'y'" in told


def test_options_of_another_kind(monkeypatch):
    never_asked("CONV_2D", monkeypatch)
    for number, name in ((5, "Pool2DOptions"), (250, "type 250")):
        place = f"{SUBGRAPH}.operators[0].builtin_options_type"
        (told,) = problems(patch(sample(), {place: number}))
        assert f"its options are of {name}, not of Conv2DOptions" in told


@pytest.mark.parametrize("kind", [0, 250])
@pytest.mark.parametrize("offset", [0xFFF0, 0x8000])
def test_options_outside_the_file_are_never_read_where_their_type_is_unknown(kind, offset):
    """The vtable says that they lie beyond the end."""
    model = ModelBuilder()
    x, y = model.tensor("x", (1, 2)), model.tensor("y", (1, 2))
    model.op("SOFTMAX", [x], [y], beta=1.0)
    data, op = bytearray(model.build([x], [y])), f"{SUBGRAPH}.operators[0]"
    numbers = sites(bytes(data))
    entry = [site for site in numbers if site.place == f"the vtable of {op}"][1 + 4]
    type_ = next(site for site in numbers if site.place == f"{op}.builtin_options_type")
    data[type_.position] = kind
    data[entry.position : entry.position + 2] = offset.to_bytes(2, "little")
    if kind == 0:
        assert read_tflite("m", bytes(data)).ops[0].kind == "SOFTMAX"
    else:
        (told,) = problems(bytes(data))
        assert "its options are of type 250, not of SoftmaxOptions" in told


def families() -> dict[str, Any]:
    from tinyfuse.ops import FAMILIES

    return FAMILIES


def test_every_problem_at_once_and_unknown_operators_too():
    changes = {f"{SUBGRAPH}.tensors[1].type": 18, f"{SUBGRAPH}.tensors[3].is_variable": 1}
    with pytest.raises(CompileError) as caught:
        read_tflite("m.tflite", patch(sample(), changes))
    told = str(caught.value)
    assert told.count("m.tflite: ") == len(caught.value.problems) >= 3
    for message in ("tensor 1 'w' bfloat16", "is computed, but a variable", "op 2 CUSTOM mine 'out': this operator"):
        assert message in told


# --- files that claim more than they hold ----------------------------------------------------


def shared(tensors: int, ops: int, inputs: int, name: bytes, scales: int, subgraphs: int = 1) -> bytes:
    """A file of few bytes whose tables are listed again and again."""
    builder = flatbuffers.Builder(1024)
    quantization = write_table(
        builder,
        "QuantizationParameters",
        scale=write_numbers(builder, [1] * scales, np.float32),
        zero_point=write_numbers(builder, [0], np.int64),
    )
    tensor = write_table(
        builder,
        "Tensor",
        shape=write_numbers(builder, [scales]),
        type=9,
        name=builder.CreateString(name),
        quantization=quantization,
    )
    indexes = write_numbers(builder, [0] * inputs)
    op = write_table(builder, "Operator", inputs=indexes, outputs=indexes)
    subgraph = write_table(
        builder,
        "SubGraph",
        tensors=write_offsets(builder, [tensor] * tensors),
        inputs=indexes,
        outputs=indexes,
        operators=write_offsets(builder, [op] * ops),
    )
    code = write_table(builder, "OperatorCode", builtin_code=0)
    model = write_table(
        builder,
        "Model",
        version=3,
        operator_codes=write_offsets(builder, [code]),
        subgraphs=write_offsets(builder, [subgraph] * subgraphs),
        buffers=write_offsets(builder, [write_table(builder, "Buffer")]),
    )
    builder.Finish(model, b"TFL3")
    return bytes(builder.Output())


def chain(length: int, faulty: bool = False) -> bytes:
    """A chain of RELUs; each tensor may have a fault."""
    model = ModelBuilder()
    names = [model.tensor("x" * 100, (1, 2), scale=-1 if faulty else 1) for _ in range(length + 1)]
    for source, result in pairwise(names):
        model.op("RELU", [source], [result])
    return model.build([names[0]], [names[-1]])


@pytest.mark.parametrize(
    ("make", "message"),
    [
        # beyond the limits
        (partial(shared, 9_999, 9_999, 1, b"x" * 60_000, 1), "more than 4194304 elements"),
        (partial(shared, 9_999, 9_999, 400_000, b"x", 1), "more than 4194304 elements"),
        (partial(shared, 9_999, 1, 1, b"x", 4_000_000), "more than 4194304 elements"),
        (partial(shared, 1, 1, 5_000_000, b"x", 1), "more than 4194304 elements"),
        (partial(shared, 10_001, 1, 1, b"x", 1), "tensors has 10001 elements, more than 10000"),
        (partial(shared, 1, 10_001, 1, b"x", 1), "operators has 10001 elements"),
        (partial(shared, 9_999, 9_999, 1, b"x", 1, subgraphs=3), "more than 60000 tables"),
        # just within
        (partial(shared, 1, 9_999, 20, b"x", 1), "more problems"),
        (partial(shared, 60, 9_999, 1, b"x" * 65_000, 1), "more problems"),
        (partial(shared, 9_999, 1, 1, b"x", 400), "is computed a second time"),
        (partial(shared, 1, 1, 1, b"x", 4_000_000), "is computed a second time"),
    ],
)
def test_small_files_with_large_claims(make, message):
    data = make()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with at_most(calls=10_000_000), pytest.raises(CompileError) as caught:
        read_tflite("m", data)
    assert_clear(caught.value)
    assert len(caught.value.problems) <= MAX_PROBLEMS + 1 and len(str(caught.value)) < 20 << 20
    assert message in str(caught.value)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert after - before < 1 << 20  # KiB


def test_a_large_file_is_read_in_time():
    """A third of what is allowed: what takes the square of it calls nine million functions."""
    with at_most(calls=4_000_000):
        assert_sound(read_tflite("m", chain(3_000)))


def test_the_problems_of_a_large_file_are_found_in_time():
    data = chain(3_000, faulty=True)
    with at_most(calls=4_000_000):
        told = problems(data)
    assert len(told) == MAX_PROBLEMS + 1 and "more problems" in told[-1]


def test_constants_that_share_a_buffer_count_each():
    model = ModelBuilder()
    size = 1 << 20
    x, y = model.tensor("x", (size,)), model.tensor("y", (size,))
    constants = [model.tensor("c", (size,), data=Outside(8, size)) for _ in range(300)]
    model.op("ADD_N", [x, *constants], [y])
    (told,) = problems(model.build([x], [y]) + bytes(size))
    assert f"all constants together have more than {MAX_TENSOR_BYTES:,} bytes" in told


# --- fuzzing ---------------------------------------------------------------------------------


def attempt(data: bytes) -> bool:
    """Tells whether a file was read; fails on anything but a sound Graph or a clear CompileError."""
    try:
        assert_sound(read_tflite("m.tflite", data))
        return True
    except CompileError as error:
        assert_clear(error)
        return False


def test_every_prefix_of_a_file():
    data = sample()
    # the file ends with the padding of its last buffer, and that isn't read
    accepted = [length for length in range(len(data)) if attempt(data[:length])]
    assert all(length > len(data) - 16 for length in accepted)


@pytest.mark.parametrize("path", REAL_MODELS)
def test_prefixes_of_real_models(path):
    data = path.read_bytes()
    for length in range(0, len(data) - 16, len(data) // 50):
        assert not attempt(data[:length])


def test_every_number_of_a_file_at_its_edges():
    data = sample()
    for site in sites(data):
        for value in (0, 1, 0x7F, 0x80, 0xFF):
            changed = bytearray(data)
            changed[site.position : site.position + site.size] = bytes([value]) * site.size
            attempt(bytes(changed))


STARTING_POINTS: dict[str, Callable[[], bytes]] = {"sample": sample, "chain": partial(chain, 5)}
STARTING_POINTS |= {path.stem: path.read_bytes for path in (*OWN_MODELS, *ORIGINAL_MODELS)}


@pytest.mark.parametrize("name", STARTING_POINTS)
def test_random_mutations(name, record_property, tmp_path):
    """A fixed sequence of files; a failing one is kept for the report."""
    read = 0
    for count, data in enumerate(islice(mutants(STARTING_POINTS[name](), SEED), FILES)):
        try:
            read += attempt(data)
        except BaseException:
            kept = tmp_path / f"{name}-{SEED}-{count}.tflite"
            kept.write_bytes(data)
            print(f"the offending file is {kept}")
            raise
    record_property("read", read)
    print(f"{name}: {FILES} files, {read} read")
    assert 0 < read < FILES
