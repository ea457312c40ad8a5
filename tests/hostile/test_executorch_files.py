"""ExecuTorch programs that are damaged, absurd or not supported: one clear refusal, never a traceback.

The campaign reads 100,000 mutants: pytest --campaign tests/hostile/test_executorch_files.py
"""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest
from tflite_mutations import mutants, patch, sites

from tinyfuse.compiler import check_graph
from tinyfuse.errors import CompileError
from tinyfuse.frontend.read_model import read_model

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


def place(data: bytes, field: str, value: int | None = None) -> str:
    """The place of the first number of that name, with that value."""
    for site in sites(data, "Program"):
        number = int.from_bytes(data[site.position : site.position + site.size], "little")
        if site.place.endswith(field) and (value is None or number == value):
            return site.place
    raise AssertionError(field)


def test_dynamic_shapes_are_refused() -> None:
    data = program("attention")
    # the type of a tensor's fields: no flag is written where it is 0, so that another byte stands for it
    first = next(s.place for s in sites(data, "Program") if s.place.endswith("].val.dim_order"))
    vtable = f"the vtable of {first.removesuffix('.dim_order')}"
    entries = [s.position for s in sites(data, "Program") if s.place == vtable]
    changed = bytearray(data)
    if len(entries) > 9:  # size, then the fields by slot: shape_dynamism takes requires_grad's place or scalar_type's
        changed[entries[9] : entries[9] + 2] = changed[entries[1] : entries[1] + 2]
        assert any("its shape is dynamic (hint: export the module with inputs of a fixed shape" in text
                   for text in refusals(bytes(changed)))  # fmt: skip


def test_every_operator_that_is_not_supported_is_named() -> None:
    data = program("residual")
    changed = data.replace(b"cortex_m::quantized_add", b"aten::_some_unknown_add").replace(
        b"cortex_m::pad", b"aten::no_pad1"
    )
    texts = refusals(changed)
    assert len(texts) == 4
    assert sum("aten::_some_unknown_add.out: this operator is not supported" in text for text in texts) == 2
    assert all("Cortex-M dialect" in text for text in texts)


def test_multipliers_that_are_not_normalized_are_refused() -> None:
    data = program("separable")
    number = place(data, ".val.int_val", 127)
    changed = patch(data, {number: 300}, "Program")
    assert any("127" in text or "300" in text for text in refusals(changed))


def test_delegates_are_named() -> None:
    """Where a delegate's name stands in the place of the list of operators."""
    data = program("separable")
    site = next(s for s in sites(data, "Program") if s.place == "Program.execution_plan[0].operators")
    entries = [s for s in sites(data, "Program") if s.place == "the vtable of Program.execution_plan[0]"]
    changed = bytearray(data)
    if len(entries) <= 8:
        pytest.skip("the plan has no room for delegates")
    position = entries[8].position  # slot 7: delegates; it gets the place of the operators, slot 6
    changed[position : position + 2] = changed[entries[7].position : entries[7].position + 2]
    assert site.position
    texts = refusals(bytes(changed))
    assert any(
        "a part of it is compiled for the delegate" in text and "without a partitioner" in text for text in texts
    )
