"""The calls to CMSIS-NN 4.0 to 7.0, without its tree: which functions a plan takes, and that their C can be printed.
What they compute is tested where a tree is (test_cmsis_nn.py, test_cmsis_dtypes.py, test_streams.py)."""

from __future__ import annotations

import re

import numpy as np
import pytest
from conv_cases import Shape, make_op, model_of, of_int4
from executors import plan_of
from other_dtypes import other_dtype
from stream_models import STREAM_MODELS, lstm

from tinyfuse.emit import emit
from tinyfuse.plan import Plan

#: what the hidden state adds to a gate stays in int16: others are ours (kernels/cmsis/sequence.py)
MILD = {
    "one step": lstm((1, 1, 8), 6, recurrent=0.005),
    "steps and batches": lstm((2, 3, 17), 7, recurrent=0.005),
    "by time": lstm((3, 2, 4), 19, time_major=True, recurrent=0.002),
}


def functions(plan: Plan) -> set[str]:
    """The CMSIS-NN functions that the printed module calls, which are those of the plan."""
    (source,) = (text for name, text in emit(plan).items() if name == "net.c")
    called = set(re.findall(r"\b(arm_\w+)\(", source))
    assert called >= plan.cmsis_nn_functions
    return called


def planned(data: bytes, version: str, target: str = "cortex-m4") -> Plan:
    return plan_of(data, target, kernels="cmsis-nn", cmsis_nn_version=version)


@pytest.mark.parametrize("name", MILD)
def test_lstm(name: str) -> None:
    assert functions(planned(MILD[name], "7.0")) == {"arm_nn_lstm_step_s8"}
    assert not functions(planned(MILD[name], "5.0"))


@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m55"])
def test_svdf(target: str) -> None:
    assert functions(planned(STREAM_MODELS["svdf of int8"], "7.0", target)) == {"arm_svdf_s8"}


#: the function of int8, by shape; those of one row take MVE's own path
LAYERS = {
    Shape("CONV_2D", 4, 5, 8, 6): "arm_convolve_wrapper_s8",
    Shape("CONV_2D", 4, 5, 8, 6, (3, 3)): "arm_convolve_wrapper_s8",
    Shape("CONV_2D", 1, 12, 8, 6, (1, 3), padding="VALID"): "arm_convolve_wrapper_s8",
    Shape("CONV_2D", 1, 12, 8, 6, (1, 3)): "arm_convolve_wrapper_s8",
    Shape("DEPTHWISE_CONV_2D", 5, 6, 8, 8, (3, 3)): "arm_depthwise_conv_wrapper_s8",
    Shape("FULLY_CONNECTED", 2, 1, 36, 9, per_channel=False): "arm_fully_connected_s8",
}


@pytest.mark.parametrize("version", ["4.0", "4.1", "5.0", "6.0", "7.0"])
@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m55"])
def test_layers(target: str, version: str) -> None:
    """Every version computes int8 layers; one padded row with MVE only by versions that read it right."""
    for shape, function in LAYERS.items():
        called = functions(planned(model_of(make_op(shape, np.random.default_rng(1))), version, target))
        own = target == "cortex-m55" and shape.height == 1
        assert called == {function} or (own and not called), (shape, called)


@pytest.mark.parametrize("version", ["6.0", "7.0"])
@pytest.mark.parametrize("shape", list(LAYERS))
def test_layers_of_int16_and_int4(shape: Shape, version: str) -> None:
    rng = np.random.default_rng(2)
    wide = functions(planned(model_of(other_dtype(make_op(shape, rng), "int16", "int64")), version))
    narrow = functions(planned(model_of(make_op(of_int4(shape), rng)), version))
    assert all(name.endswith("_s16") for name in wide), wide
    # 6.0 has none of int4: these are widened
    assert all(name.endswith("_s4" if version == "7.0" else "_s8") for name in narrow), narrow
