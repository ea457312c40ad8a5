"""Attention by rows: references against TFLM's interpreter, kernels alone, networks on the host and on cores."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from attention_cases import HEADS_SWAPPED, products, rows_of_layers
from attention_networks import FORMS, attention, attention_networks, decoder, feed_forward, text, vision
from campaigns import assert_batches_are_exact, assert_part_is_exact, drawn_plans
from cases.common import inputs_of
from core_rotation import on_one_core
from executors import assert_all_exact, assert_exact, assert_reference_is_tflm, plan_of
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from op_harness import TARGETS, cases_of
from op_harness import assert_exact as assert_cases_exact
from test_op_kernels import target_or_skip

from tinyfuse.ir import Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.ops import FAMILIES
from tinyfuse.options import OPTIMIZE

_SETTINGS = {"deadline": None, "suppress_health_check": list(HealthCheck)}
_DTYPES = ("int8", "float32", "int16")


def test_products_of_rows_are_those_of_matrices() -> None:
    found = list(products())
    assert len(found) == 16
    for before, after in found:
        for inputs in inputs_of(before):
            (wanted,) = FAMILIES[before.kind].reference(before, *_operands(before, inputs))
            swapped = [_swapped(data) for data in inputs]
            (got,) = FAMILIES[after.kind].reference(after, *_operands(after, swapped))
            np.testing.assert_array_equal(_swapped(wanted).reshape(got.shape), got)


def _swapped(data: np.ndarray) -> np.ndarray:
    return data.transpose(HEADS_SWAPPED) if data.ndim == 4 else data


def _operands(op: Op, activations: list[np.ndarray]) -> list[np.ndarray]:
    there = iter(activations)
    given = {t: next(there) for t in op.activations}
    return [t.data if t.is_constant else given[t].reshape(t.shape) for t in op.operands]


@pytest.mark.parametrize("target", TARGETS)
def test_rows_of_products_and_layers(target: str, tmp_path: Path) -> None:
    core = target_or_skip(target)
    cases = []
    for op in (*(after for _, after in products()), *rows_of_layers()):
        low, high, _, random, *_ = inputs_of(op)
        found = [list(cases_of(op, Context(core, kernels="tinyfuse"), inputs)) for inputs in (random, low, high)]
        cases += [*found[0], *found[1][:1], *found[2][:1]]
        assert any(case.how == "rings" for case in cases)
    assert_cases_exact(cases, core, tmp_path)


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_references_equal_tflm(form) -> None:
    assert_reference_is_tflm(text(10, 12, 3, form=form), runs=3)
    assert_reference_is_tflm(vision(3, 8, form=form), runs=2)


def test_blocks_are_exact() -> None:
    """Every form, dtype and objective, in one program."""
    how = {"target": "cortex-m4", "kernels": "tinyfuse"}
    models = [attention(form=form, dtype=dtype) for form, dtype in zip(FORMS[2:], _DTYPES, strict=True)]
    plans = [plan_of(data, optimize=o, **how) for data, o in zip(models, OPTIMIZE, strict=True)]
    plans += [plan_of(models[0], fusion="none", **how), plan_of(models[2], step=True, **how)]
    plans.append(plan_of(feed_forward(), **how))
    assert_all_exact(plans, on_host=True, runs=3)


@pytest.mark.emulated
@on_one_core()
def test_blocks_on_cores(target: str) -> None:
    target_or_skip(target)
    models = [attention(form=form, dtype=dtype) for form, dtype in zip(FORMS, _DTYPES, strict=False)]
    models[1:1] = [feed_forward(form=FORMS[1])] if target == "cortex-m4" else []
    assert_all_exact([plan_of(data, target, kernels="tinyfuse") for data in models], runs=3)


@pytest.mark.parametrize("dtype", ["int8", "float32"])
def test_a_decoder_keeps_keys_and_values(dtype: str) -> None:
    """Step after step, with both in variables."""
    data = decoder(dtype=dtype)
    assert_reference_is_tflm(data, runs=12)
    assert_exact(plan_of(data, "cortex-m4", kernels="tinyfuse"), runs=12, on_host=dtype == "float32")


@settings(max_examples=1, **_SETTINGS)
@given(st.lists(st.tuples(attention_networks(), st.sampled_from(OPTIMIZE)), min_size=3, max_size=3))
def test_networks_are_exact(models: list[tuple[bytes, str]]) -> None:
    plans = [plan_of(data, "cortex-m4", kernels="tinyfuse", optimize=o) for data, o in models]
    assert_all_exact(plans, on_host=True, runs=3)


@pytest.mark.campaign
@pytest.mark.parametrize("dtype", ["int8", "float32"])
@pytest.mark.parametrize("target", ["cortex-m0plus", "cortex-m4", "cortex-m55"])
def test_models_on_cores(target: str, dtype: str) -> None:
    models = [text(12, 16, 2, dtype, form) for form in FORMS] + [vision(3, 16, 2, dtype)]
    assert_all_exact([plan_of(data, target, kernels="tinyfuse") for data in models], runs=3)


@pytest.mark.campaign
@settings(max_examples=500, **_SETTINGS)
@given(attention_networks())
def test_many_references_equal_tflm(data: bytes) -> None:
    assert_reference_is_tflm(data, runs=3)


@pytest.mark.campaign
@pytest.mark.parametrize("number", range(5))
def test_many_networks_are_exact(number: int) -> None:
    assert_part_is_exact(attention_networks(), 240, number, runs=3)


@pytest.mark.campaign
@pytest.mark.parametrize("target", ["cortex-m0plus", "cortex-m4", "cortex-m55"])
def test_many_networks_are_exact_on_cores(target: str) -> None:
    assert_batches_are_exact(drawn_plans(attention_networks(), 48, 5, target), runs=3)
