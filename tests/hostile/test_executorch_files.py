"""ExecuTorch programs that are damaged, absurd or not supported: one clear refusal, never a traceback.

The campaign reads 100,000 mutants: pytest --campaign tests/hostile/test_executorch_files.py
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest
from pte_builder import ProgramBuilder
from tflite_mutations import mutants

from tinyfuse.compiler import check_graph
from tinyfuse.errors import CompileError
from tinyfuse.frontend.executorch.arguments import Arguments
from tinyfuse.frontend.executorch.program import Call
from tinyfuse.frontend.read_model import read_model
from tinyfuse.frontend.tensors import Refused

MODELS = Path(__file__).parents[1] / "support/executorch_models"
NAMES = sorted(path.stem for path in MODELS.glob("*.pte"))


def program(name: str) -> bytes:
    return (MODELS / f"{name}.pte").read_bytes()


def refusals(data: bytes) -> list[str]:
    with pytest.raises(CompileError) as caught:
        check_graph(read_model("model.pte", data))
    return [str(problem) for problem in caught.value.problems]


def assert_read_or_refused(data: bytes) -> None:
    if data[4:8] != b"ET12":
        return
    try:
        check_graph(read_model("model.pte", data))
    except CompileError as refusal:
        assert refusal.problems
        assert all(problem.message for problem in refusal.problems)


@pytest.mark.parametrize("name", NAMES)
def test_mutants_are_read_or_refused(name: str) -> None:
    for data in islice(mutants(program(name), 1, "Program"), 300):
        assert_read_or_refused(data)


@pytest.mark.campaign
@pytest.mark.parametrize("part", range(20))
def test_many_mutants_are_read_or_refused(part: int) -> None:
    data = program(NAMES[part % len(NAMES)])
    for mutant in islice(mutants(data, 100 + part, "Program"), 5000):
        assert_read_or_refused(mutant)


@pytest.mark.parametrize("share", [0.01, 0.2, 0.5, 0.9, 0.999])
def test_files_that_end_early_are_refused(share: float) -> None:
    data = program("separable")
    cut = data[: max(8, int(share * len(data)))]
    assert all("damaged" in text or "data" in text or "cut" in text for text in refusals(cut))


def test_every_operator_that_is_not_supported_is_named() -> None:
    data = program("residual")
    changed = data.replace(b"cortex_m::quantized_add", b"aten::_some_unknown_add").replace(
        b"cortex_m::pad", b"aten::no_pad1"
    )
    texts = refusals(changed)
    assert len(texts) == 4
    assert sum("aten::_some_unknown_add.out: this operator is not supported" in text for text in texts) == 2
    assert all("Cortex-M dialect" in text for text in texts)


def test_names_do_not_reach_the_terminal_as_they_are() -> None:
    """A name that isn't text, or a very long one, was printed with its control characters, and once a call."""
    data = program("residual").replace(b"cortex_m::quantized_add", b"cortex_m::\x1b[31m\n\x00\xff\xe2\x80\xaead")
    texts = refusals(data)
    assert len(texts) == 2
    assert all(text.isprintable() and r"\x1b[31m\n\x00" in text for text in texts)
    p = ProgramBuilder()
    x = p.tensor((1, 6))
    p.call("y" * 5000, x, x)
    (text,) = refusals(p.build([x], [x], delegate="x\x1b" * 5000))[:1]
    assert text.isprintable()
    assert len(text) < 500


def one_call(kind: str, *arguments: int | float, **fields: int) -> bytes:
    """A program of one call from int8 [1, 6] to int8 [1, 6], with scalar arguments between them."""
    p = ProgramBuilder()
    x, y = p.tensor((1, 6), **fields), p.tensor((1, 6))
    numbers = [p.integer(n) if isinstance(n, int) else p.real(n) for n in arguments]
    p.call(kind, x, *numbers, y)
    return p.build([x], [y])


def test_other_methods_and_senseless_quantizations_of_borders_are_refused() -> None:
    data = program("stored")
    texts = refusals(data.replace(b"input0_scale", b"input7_scale"))
    assert {text.partition(" (hint")[0] for text in texts} == {
        "its methods do not give a valid quantization of input 0",
        "its methods do not give a valid quantization of input 7",
    }
    (text,) = refusals(data.replace(b"input0_scale", b"input0_score"))
    assert "the program has 2 methods: forward, input0_score" in text


def test_dynamic_shapes_are_refused() -> None:
    data = one_call("aten::abs.out", shape_dynamism=1)
    text, *_ = refusals(data)
    assert "value 0" in text
    assert "its shape is dynamic (hint: export the module with inputs of a fixed shape" in text


def product(multiplier: int, shift: int) -> bytes:
    p = ProgramBuilder()
    x, y = p.tensor((1, 6)), p.tensor((1, 6))
    zero = p.integer(0)
    p.call("cortex_m::quantized_mul.out", x, zero, x, zero, zero, p.integer(multiplier), p.integer(shift), y)
    return p.build([x], [y])


def test_multipliers_that_are_not_normalized_are_refused() -> None:
    check_graph(read_model("model.pte", product(2**30, -5)))
    for multiplier, shift in ((2**30 - 1, -5), (2**30, -32), (2**30, 31), (-(2**30), 0)):
        (text,) = refusals(product(multiplier, shift))
        assert "a multiplier or shift is not normalized" in text


def test_calls_of_other_releases_are_refused() -> None:
    (text,) = refusals(one_call("cortex_m::softmax.out", 1, 2))
    assert "it has 5 arguments, not 9 (hint: make the program with executorch 1.5)" in text


@pytest.mark.parametrize("count", [0, 1, 2, 5])
def test_calls_of_any_number_of_arguments_are_refused(count: int) -> None:
    with pytest.raises(Refused, match=f"it has {count} arguments, not 4"):
        Arguments(Call(0, "aten::relu.out", (None,) * count), ("input", "other", "out"))


def test_delegates_are_named() -> None:
    p = ProgramBuilder()
    x = p.tensor((1, 6))
    texts = refusals(p.build([x], [x], delegate="XnnpackBackend"))
    assert "a part of it is compiled for the delegate 'XnnpackBackend'" in texts[0]
    assert "without a partitioner" in texts[0]


def test_values_whose_memory_is_overwritten_are_refused() -> None:
    """The second call reads the input, where the first one's result lies by then."""
    p = ProgramBuilder()
    x = p.tensor((1, 6))
    p._end = 0
    first, second = p.tensor((1, 6)), p.tensor((1, 6))
    p.call("cortex_m::minimum.out", x, x, first)
    p.call("cortex_m::maximum.out", x, first, second)
    assert any("value 0" in text and "its bytes are not there" in text for text in refusals(p.build([x], [second])))
