"""Models that a converter made: the digits example's, which is ours, and MLPerf Tiny's where ../shared/models
has them."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ORIGINALS = ROOT.parent / "shared" / "models"
ORIGINAL_NAMES = (
    "ad01_int8", "kws_ref_model", "pretrainedResnet_quant", "str_ww_ref_model", "vww_96_int8",
)  # fmt: skip


def _original(name: str):
    path = ORIGINALS / f"{name}.tflite"
    lacks = pytest.mark.skipif(not path.exists(), reason="needs MLPerf Tiny's models in ../shared/models")
    return pytest.param(path, id=name, marks=lacks)


#: for parametrize: paths; what is not here skips and says so
REAL_MODELS = [
    pytest.param(ROOT / "examples" / "digits" / "digits.tflite", id="digits"),
    *map(_original, ORIGINAL_NAMES),
]
