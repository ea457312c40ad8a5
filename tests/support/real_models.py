"""Models with the layers, sizes and quantization of those in use: the digits example's, which a converter made, those of
examples/models, and MLPerf Tiny's where ../shared/models has them."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ORIGINALS = ROOT.parent / "shared" / "models"
ORIGINAL_NAMES = (
    "ad01_int8", "kws_ref_model", "pretrainedResnet_quant", "str_ww_ref_model", "vww_96_int8",
)  # fmt: skip
#: files that every checkout has
OWN_MODELS = (ROOT / "examples" / "digits" / "digits.tflite", *sorted((ROOT / "examples" / "models").glob("*.tflite")))
ORIGINAL_MODELS = tuple(path for name in ORIGINAL_NAMES if (path := ORIGINALS / f"{name}.tflite").exists())

#: paths for parametrize. A test of one of ORIGINAL_MODELS that is not here would only repeat one of ours of its kind
REAL_MODELS = [pytest.param(path, id=path.stem) for path in (*OWN_MODELS, *ORIGINAL_MODELS)]
