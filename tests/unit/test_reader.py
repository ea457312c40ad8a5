"""The .tflite reader: the content of a sound file arrives in the Graph, complete and exact."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
import tflite
from real_models import REAL_MODELS
from tflite_builder import ModelBuilder, Outside, camel_case, options_table
from tflite_mutations import patch

from tinyfuse.errors import CompileError
from tinyfuse.frontend.reader import read_tflite, unsupported
from tinyfuse.frontend.schema import TABLES, UNIONS, enumerators
from tinyfuse.ir import ITEM_BYTES, Array, Graph, Op, Quant
from tinyfuse.ir.text import graph_text
from tinyfuse.ops import FAMILIES
from tinyfuse.ops.core.family import OpFamily

OPTION_TABLES = {kind: family.options_table for kind, family in FAMILIES.items() if family.options_table}


class Echo(OpFamily):
    """A family whose attributes are the options that the reader passes."""

    def __init__(self, kind: str) -> None:
        self.kind, self.options_table = kind, OPTION_TABLES.get(kind)

    def attributes(self, options: Mapping[str, Any]) -> dict[str, Any]:
        return dict(options)

    def reference(self, op: Op, *inputs: Array | None) -> tuple[Array, ...]:
        raise NotImplementedError


@pytest.fixture
def echo(monkeypatch):
    """Registers operator kinds with their options as attributes."""

    def install(*kinds: str) -> None:
        for kind in kinds:
            monkeypatch.setitem(FAMILIES, kind, Echo(kind))

    return install


def read(model: ModelBuilder, inputs: list[int], outputs: list[int], **layout: Any) -> Graph:
    return read_tflite("m.tflite", model.build(inputs, outputs, **layout))


def conv_model() -> tuple[ModelBuilder, list[int], list[int]]:
    model, rng = ModelBuilder(), np.random.default_rng(1)
    x = model.tensor("x", (1, 5, 4, 3), scale=0.5, zero_point=3, shape_signature=(-1, 5, 4, 3))
    weights = rng.integers(-128, 128, (2, 3, 3, 3), dtype=np.int8)
    w = model.tensor("w", (2, 3, 3, 3), scale=[0.1, 0.2], zero_point=[0, 0], data=weights)
    b = model.tensor("b", (2,), "int32", [0.05, 0.1], data=np.array([-7, 1 << 30], np.int32))
    y = model.tensor("y", (1, 5, 4, 2), scale=0.7, zero_point=-5)
    options = {"padding": "SAME", "stride_h": 1, "stride_w": 1}
    model.op("CONV_2D", [x, w, b], [y], fused_activation_function="RELU6", **options)
    return model, [x], [y]


def int4_model(data: bytes, count: int = 15) -> bytes:
    """A fully connected layer whose weights are `count` int4 values in `data`."""
    model = ModelBuilder()
    x = model.tensor("x", (1, count), scale=0.5, zero_point=3)
    w = model.tensor("w", (1, count), "int4", scale=0.25, data=data)
    y = model.tensor("y", (1, 1), scale=0.5, zero_point=0)
    model.op("FULLY_CONNECTED", [x, w, -1], [y])
    return model.build([x], [y])


def test_int4_is_nibbles_the_low_one_first_and_an_odd_count_leaves_one_out():
    graph = read_tflite("m.tflite", int4_model(bytes([0x10, 0x32, 0x54, 0x76, 0x98, 0xBA, 0xDC, 0xFE])))
    weights = graph.ops[0].inputs[1]
    assert (weights.dtype, weights.bytes, weights.data.dtype) == ("int4", 8, np.int8)
    assert weights.data.tolist() == [[0, 1, 2, 3, 4, 5, 6, 7, -8, -7, -6, -5, -4, -3, -2]]


def test_int4_needs_a_byte_for_an_odd_last_value():
    with pytest.raises(CompileError, match="needs 8 bytes of data, but there are 7"):
        read_tflite("m.tflite", int4_model(bytes(7)))


def test_every_field_of_tensors_and_graph():
    model, inputs, outputs = conv_model()
    data = model.build(inputs, outputs)
    graph = read_tflite("some/m.tflite", data)
    assert (graph.path, graph.sha256) == ("some/m.tflite", hashlib.sha256(data).hexdigest())
    (op,) = graph.ops
    assert (op.kind, op.index, len(op.inputs)) == ("CONV_2D", 0, 3)
    x, w, b = op.inputs
    assert (x,) == graph.inputs and op.outputs == graph.outputs
    assert (x.name, x.shape, x.dtype, x.index) == ("x", (1, 5, 4, 3), "int8", 0)
    assert x.quant == Quant((0.5,), (3,)) and x.data is None
    assert w.quant == Quant(tuple(map(float, np.float32([0.1, 0.2]))), (0, 0), 0)
    expected = np.random.default_rng(1).integers(-128, 128, (2, 3, 3, 3), dtype=np.int8)
    np.testing.assert_array_equal(w.data, expected)
    assert (b.dtype, b.data.tolist()) == ("int32", [-7, 1 << 30])
    assert not w.data.flags.writeable and not b.data.flags.writeable
    assert graph.warnings == ()
    assert graph.notes == ("tensor 0 'x' int8[1,5,4,3]: the batch is open (-1); it is taken as 1",)


@pytest.mark.parametrize("dtype", [dtype for dtype in ITEM_BYTES if dtype != "uint8"])  # stored as int8: test_uint8.py
def test_constants_of_every_dtype(dtype):
    values = np.array([[0, 1], [1, 0]]).astype(dtype)
    model = ModelBuilder()
    x, y = model.tensor("x", (2, 2), dtype), model.tensor("y", (2, 2), dtype)
    c = model.tensor("c", (2, 2), dtype, data=values)
    model.op("ADD", [x, c], [y])
    constant = read(model, [x], [y]).ops[0].inputs[1]
    assert constant.data.dtype == dtype and constant.bytes == constant.data.nbytes
    np.testing.assert_array_equal(constant.data, values)


def test_axis_scalars_and_absent_inputs():
    model = ModelBuilder()
    x, y = model.tensor("x", (1, 2)), model.tensor("y", (1, 1, 1, 2))
    w = model.tensor("w", (1, 1, 2), scale=[1, 2], axis=2, data=np.ones((1, 1, 2), np.int8))
    scalar = model.tensor("s", (), "int32", data=np.array(7, np.int32))
    model.op("CUSTOM", [x, -1, w, scalar], [y], custom_code="mine")
    (op,) = read(model, [x], [y]).ops
    assert op.inputs[1] is None
    assert op.inputs[2].quant == Quant((1.0, 2.0), (0, 0), 2)
    assert op.inputs[3].shape == () and op.inputs[3].data.shape == () and op.inputs[3].data == 7
    assert op.input.quant is None


def test_one_zero_point_for_all_channels():
    model = ModelBuilder()
    x, y = model.tensor("x", (2,)), model.tensor("y", (2,), scale=[1, 2], zero_point=3)
    model.op("RELU", [x], [y])
    assert read(model, [x], [y]).outputs[0].quant == Quant((1.0, 2.0), (3, 3))


def test_several_inputs_and_outputs_keep_their_order():
    model = ModelBuilder()
    a, b, c, d = (model.tensor(name, (1, 2)) for name in "abcd")
    model.op("RELU", [a], [c])
    model.op("RELU", [b], [d])
    graph = read(model, [b, a], [d, c])
    assert [t.name for t in graph.inputs + graph.outputs] == ["b", "a", "d", "c"]


# VAR_HANDLE and CALL_ONCE are taken out when a file is read: tests/unit/test_variables.py
@pytest.mark.parametrize("kind", sorted(OPTION_TABLES.keys() - {"VAR_HANDLE", "CALL_ONCE"}))
def test_every_option_arrives(kind, echo):
    """Tests values other than the schema's defaults, and the defaults themselves."""
    echo(kind)
    fields = [field for field in TABLES[OPTION_TABLES[kind]] if field.type != "-"]
    given: dict[str, Any] = {}
    for number, field in enumerate(fields, start=3):
        if field.enum:
            given[field.name] = list(enumerators(field.enum).values())[-1]
        elif field.type == "[int]":
            given[field.name] = (number, -1)
        else:
            given[field.name] = {"bool": True, "int": -number, "float": number + 0.5}[field.type]
    for options in (given, {}):
        model = ModelBuilder()
        x, y = model.tensor("x", (1, 2)), model.tensor("y", (1, 2))
        model.op(kind, [x], [y], **options)
        attributes = read(model, [x], [y]).ops[0].attributes
        assert set(attributes) == set(given)
        if options:
            assert attributes == given
        for name, value in attributes.items():
            assert type(value) is type(given[name])


def test_an_absent_option_table_is_empty(echo):
    echo("SOFTMAX")
    model = ModelBuilder()
    x, y = model.tensor("x", (1, 2)), model.tensor("y", (1, 2))
    model.op("SOFTMAX", [x], [y], table=False)
    assert read(model, [x], [y]).ops[0].attributes == {}


def test_option_tables_are_those_of_their_kinds():
    assert {kind: options_table(kind) for kind in OPTION_TABLES} == OPTION_TABLES


def test_families_that_read_options_name_their_table():
    reads = {
        kind
        for kind, family in FAMILIES.items()
        if type(family).attributes is not OpFamily.attributes and family.in_files and not kind.startswith("CUSTOM ")
    }
    assert reads == set(OPTION_TABLES)
    assert set(OPTION_TABLES.values()) <= TABLES.keys()


class Recorder:
    """A stand-in for flatbuffers.Builder that keeps the last call."""

    call: tuple[Any, ...]

    def __getattr__(self, method: str) -> Any:
        return lambda *args: setattr(self, "call", (method, *args))


#: tables of other schemas, which the package lacks: tests/exact/test_decode.py, tests/product/test_labels.py
_OF_OTHERS = {"CompressionMetadata", "CompressedSubgraph", "LutTensor"}
_OF_OTHERS |= {"ModelMetadata", "SubGraphMetadata", "TensorMetadata", "AssociatedFile"}
# ExecuTorch's, from its first to the last
_OF_OTHERS |= set(list(TABLES)[list(TABLES).index("Program") :])


@pytest.mark.parametrize("table", sorted(TABLES.keys() - _OF_OTHERS))
def test_our_schema_is_the_package_s(table):
    """Slots and widths of TABLES against the functions that write the same fields."""
    widths = {"Bool": "bool", "Int8": "byte", "Uint8": "ubyte", "Int32": "int", "Uint32": "uint"}
    widths |= {"Int64": "long", "Uint64": "ulong", "Float32": "float"}
    sizes = {1: ("[ubyte]",), 4: ("[int]", "[float]"), 8: ("[long]",)}
    for field in TABLES[table]:
        add = getattr(tflite, f"{table}Add{camel_case(field.name)}", None)
        if add is None:
            assert field.type == "-" or field.name == "external_buffer"
            continue
        recorder = Recorder()
        add(recorder, 0)
        method, slot, *_ = recorder.call
        assert slot == field.slot, field
        written = method.removeprefix("Prepend").removesuffix("Slot")
        if written != "UOffsetTRelative":
            underlying = {"BuiltinOperator": "int"}.get(field.type, "byte")
            expected = underlying if field.enum else field.type
            assert expected in ("-", widths[written]), field
        elif field.type.startswith("["):
            getattr(tflite, f"{table}Start{camel_case(field.name)}Vector")(recorder, 1)
            _, size, *_ = recorder.call
            assert field.type in sizes[size] or field.type[1:-1] in TABLES, field
        else:
            assert field.type in TABLES or field.type in ("-", "string", *UNIONS), field


@pytest.mark.parametrize("kind", ["ADD", "GELU", "STABLEHLO_CBRT"])
def test_builtin_codes_of_old_and_new_files(kind):
    model = ModelBuilder()
    x, y = model.tensor("x", (1, 2)), model.tensor("y", (1, 2))
    model.op(kind, [x, x], [y], table=False)
    data = model.build([x], [y], force_defaults=True)
    assert read_tflite("m", data).ops[0].kind == kind
    code = getattr(tflite.BuiltinOperator, kind)
    if code < 127:
        old = patch(data, {"Model.operator_codes[0].builtin_code": 0})
        assert read_tflite("m", old).ops[0].kind == kind
    unknown = patch(data, {"Model.operator_codes[0].builtin_code": 9999})
    assert read_tflite("m", unknown).ops[0].kind == "BUILTIN 9999"


def test_custom_operators_are_named():
    model = ModelBuilder()
    x, y, z = (model.tensor(name, (1, 2)) for name in "xyz")
    model.op("CUSTOM", [x], [y], custom_code="SignalFft")
    model.op("CUSTOM", [y], [z], custom_code=b"evil\n\x1b[31m\xff" + 100 * b"!")
    first, second = read(model, [x], [z]).ops
    assert first.kind == "CUSTOM SignalFft"
    assert second.kind == r"CUSTOM evil\n\x1b[31m" + "\N{REPLACEMENT CHARACTER}" + 53 * "!"
    assert "custom" in str(unsupported(first)) and "custom" in str(unsupported(second))


def test_known_kinds_are_not_unsupported(echo):
    echo("RELU")
    model = ModelBuilder()
    x, y = model.tensor("x", (1, 2)), model.tensor("y", (1, 2))
    model.op("RELU", [x], [y])
    assert unsupported(read(model, [x], [y]).ops[0]) is None


def test_names_are_decoded_with_replacement():
    model = ModelBuilder()
    x = model.tensor(b"caf\xc3\xa9\n\xff*/", (1, 2))
    y = model.tensor("", (1, 2))
    model.op("RELU", [x], [y])
    graph = read(model, [x], [y])
    assert graph.inputs[0].name == "café\n\N{REPLACEMENT CHARACTER}*/"
    assert "\n" not in str(graph.inputs[0])
    assert graph.outputs[0].name == ""


def test_a_batch_of_minus_one_in_the_shape_is_one():
    model = ModelBuilder()
    x, y = model.tensor("x", (-1, 2)), model.tensor("y", (-1, 2))
    model.op("RELU", [x], [y])
    graph = read(model, [x], [y])
    assert graph.inputs[0].shape == graph.outputs[0].shape == (1, 2)
    assert graph.warnings == ()
    assert graph.notes == ("tensor 0 'x' int8[1,2]: the batch is open (-1); it is taken as 1",)


def test_signatures_of_inner_tensors_do_not_matter():
    model = ModelBuilder()
    x, y = model.tensor("x", (1, 2)), model.tensor("y", (2, 1), shape_signature=(2, -1))
    model.op("TRANSPOSE", [x], [y])
    assert read(model, [x], [y]).warnings == ()


def test_further_subgraphs_are_a_warning():
    model, inputs, outputs = conv_model()
    warnings = read(model, inputs, outputs, subgraphs=3).warnings
    assert warnings[-1] == "2 of 3 subgraphs are not read: nothing calls them"


def test_constants_behind_the_flatbuffer():
    def build(outside: Outside) -> bytes:
        model = ModelBuilder()
        x, y = model.tensor("x", (3,), "int32"), model.tensor("y", (3,), "int32")
        c = model.tensor("c", (3,), "int32", data=outside)
        model.op("ADD", [x, c], [y])
        return model.build([x], [y])

    values = np.array([1, -2, 1 << 20], np.int32)
    end = len(build(Outside(1 << 20, 12)))
    data = build(Outside(end + 1, 12)) + b"\0" + values.tobytes()  # unaligned, too
    constant = read_tflite("m", data).ops[0].inputs[1].data
    np.testing.assert_array_equal(constant, values)
    assert not constant.flags.writeable


def test_an_unused_tensor_is_not_read():
    model, inputs, outputs = conv_model()
    model.tensor("odd", (0, -7), "complex128", is_variable=True)
    read(model, inputs, outputs)


@pytest.mark.parametrize("data", [None, b""])
def test_the_shape_of_a_scalar_has_no_elements(data):
    """TensorFlow's converter writes this for tf.reshape(x, []); any other reader of such a tensor is refused."""
    model = ModelBuilder()
    x, shape = model.tensor("x", (1, 1)), model.tensor("shape", (0,), "int32", data=data)
    y, z = model.tensor("y", ()), model.tensor("z", (1, 0))
    model.op("RESHAPE", [x, shape], [y])
    assert [tensor.shape for tensor in read(model, [x], [y]).ops[0].inputs] == [(1, 1), (0,)]
    model.op("RELU", [z], [y])
    with pytest.raises(CompileError, match=r"'z' int8\[1,0\]: dimension 1 is 0"):
        read(model, [x], [y])


@pytest.mark.parametrize(
    ("dtype", "hint"), [("string", "leave text out"), ("complex64", "as real numbers"), ("float64", "in float32")]
)
def test_hints_of_dtypes_that_no_quantization_takes_away(dtype, hint):
    model = ModelBuilder()
    x, y = model.tensor("x", (1, 2), dtype), model.tensor("y", (1, 2))
    model.op("CAST", [x], [y])
    with pytest.raises(CompileError, match=hint):
        read(model, [x], [y])


def test_files_from_disk(tmp_path):
    model, inputs, outputs = conv_model()
    data = model.build(inputs, outputs)
    path = tmp_path / "m.tflite"
    path.write_bytes(data)
    for given in (path, str(path)):
        graph = read_tflite(given)
        assert graph.path == str(path)
        assert graph_text(graph) == graph_text(read_tflite("m", data))


@pytest.mark.parametrize("path", REAL_MODELS)
def test_real_models_agree_with_litert(path):
    """Every tensor that is read, against another reader: LiteRT's interpreter."""
    litert = pytest.importorskip("ai_edge_litert.interpreter")
    graph = read_tflite(path)
    interpreter = litert.Interpreter(str(path))
    interpreter.allocate_tensors()
    details = {entry["index"]: entry for entry in interpreter.get_tensor_details()}
    tensors = {t for op in graph.ops for t in op.inputs + op.outputs if t is not None}
    for tensor in tensors:
        entry = details[tensor.index]
        assert tensor.name == entry["name"]
        assert tensor.shape == tuple(entry["shape"]) and tensor.dtype == entry["dtype"].__name__
        quant = entry["quantization_parameters"]
        assert (tensor.quant is None) == (quant["scales"].size == 0)
        if tensor.quant is not None:
            # preparing a fully connected layer, LiteRT repeats its one scale for every channel
            count = 1 if tensor.quant.per_channel else quant["scales"].size
            assert tensor.quant.scale * count == tuple(quant["scales"].tolist())
            assert tensor.quant.zero_point == tuple(quant["zero_points"].tolist())
            if tensor.quant.per_channel:
                assert tensor.quant.axis == quant["quantized_dimension"]
        if tensor.is_constant:
            np.testing.assert_array_equal(tensor.data, interpreter.get_tensor(tensor.index))
    assert [t.index for t in graph.inputs] == [d["index"] for d in interpreter.get_input_details()]
    assert [t.index for t in graph.outputs] == [d["index"] for d in interpreter.get_output_details()]
    # MLPerf's models have a batch of -1, digits has not
    open_batch = any(-1 in entry["shape_signature"] for entry in interpreter.get_input_details())
    assert ["batch" in note for note in graph.notes] == [True] * open_batch


def test_the_builder_s_files_run_in_tflm():
    """Convolution, addition and a fully connected layer without bias, through TFLM's interpreter."""
    runtime = pytest.importorskip("tflite_micro.python.tflite_micro.runtime")
    model, inputs, (y,) = conv_model()
    doubled = model.tensor("doubled", (1, 5, 4, 2), scale=1.4, zero_point=-5)
    model.op("ADD", [y, y], [doubled], fused_activation_function="NONE")
    weights = np.zeros((3, 40), np.int8)
    weights[0, 0] = weights[1, 7] = weights[2, 39] = 1
    w = model.tensor("fc", (3, 40), scale=1.0, zero_point=0, data=weights)
    out = model.tensor("out", (1, 3), scale=1.4, zero_point=-5)
    model.op("FULLY_CONNECTED", [doubled, w, -1], [out], weights_format="DEFAULT")
    interpreter = runtime.Interpreter.from_bytes(model.build(inputs, [out, y]))
    interpreter.set_input(np.arange(60, dtype=np.int8).reshape(1, 5, 4, 3), 0)
    interpreter.invoke()
    # doubling at twice the scale is the identity, and each row of weights picks one element
    picked = interpreter.get_output(1).ravel()[[0, 7, 39]]
    np.testing.assert_array_equal(interpreter.get_output(0), [picked])


@pytest.mark.parametrize("dtype", ["int4", "float16"])
@pytest.mark.parametrize("data", [None, np.zeros((1, 4))])
def test_a_variable_of_a_dtype_of_constants_is_refused(dtype: str, data: np.ndarray | None) -> None:
    """Mutated files had such, and ended in a traceback."""
    model = ModelBuilder()
    x, y = model.tensor("x", (1, 4), "float32"), model.tensor("y", (1, 4), "float32")
    stored = data if data is None else data.astype("int8" if dtype == "int4" else dtype)
    kept = model.tensor("kept", (1, 4), dtype, data=stored, is_variable=True)
    model.op("ADD", [x, kept], [y])
    with pytest.raises(CompileError, match="supported for constant weights alone|is a variable, but has constant data"):
        read_tflite("m.tflite", model.build([x], [y]))
