"""POW and erfc, computed in double: C and tinyfuse/ir/double_math.py agree in every bit, and both agree with libm
within libm's own error."""

import math
import subprocess
from pathlib import Path

import numpy as np
import pytest
from host_program import WARNINGS, compile_c
from tflite_builder import ModelBuilder

import tinyfuse
from tinyfuse.ir import double_math
from tinyfuse.ops.elementwise.power import PowFamily
from tinyfuse.resources import resource_dir
from tinyfuse.verify.comparison import ulp_distance

_SPECIAL = np.array(
    [0, 1, 2, 3, 0.5, 1.5, np.inf, np.nan, 1e-45, 1e-38, 3e38, 8388607.5, 8388608, 8388609, 16777215, 16777216, 1e30],
    np.float32,
)


def _pairs() -> tuple[np.ndarray, np.ndarray]:
    """Argument pairs: all special numbers of either sign, random bits, and moderate bases with fractional and integer
    exponents."""
    rng = np.random.default_rng(3)
    special = np.concatenate([_SPECIAL, -_SPECIAL])
    bits = rng.integers(0, 1 << 32, 4000, np.uint32).view(np.float32)
    moderate = np.exp(rng.normal(0, 3, 4000)).astype(np.float32)
    whole = rng.integers(-9, 10, 4000).astype(np.float32)
    x = np.concatenate([np.repeat(special, special.size), bits, moderate, -moderate])
    y = np.concatenate([np.tile(special, special.size), rng.normal(0, 4, 8000).astype(np.float32), whole])
    return x, y


_HOST = """\
#include <stdio.h>
#include "tinyfuse_double.h"
int main(void)
{
    float pair[2];
    while (fread(pair, sizeof pair, 1, stdin) == 1) {
        const float results[] = {tinyfuse_power(pair[0], pair[1]), tinyfuse_erfc_f32(pair[1])};
        fwrite(results, sizeof results, 1, stdout);
    }
    return 0;
}
"""


@pytest.mark.parametrize(
    "compiler",
    [
        "gcc -std=c99 -O0 -fsanitize=address,undefined -fno-sanitize-recover=all",
        "gcc -std=c99 -O3 -ffast-math -march=haswell",
    ],
)
def test_c_and_reference_agree_in_every_bit(compiler: str, tmp_path: Path) -> None:
    x, y = _pairs()
    source, program = tmp_path / "functions.c", tmp_path / "functions"
    source.write_text(_HOST)
    tool, *flags = compiler.split()
    compile_c([tool, *flags, *WARNINGS, f"-I{resource_dir('runtime_c')}", "-c", source, "-o", f"{program}.o"])
    link = [flag for flag in flags if flag != "-ffast-math"]
    compile_c([tool, *link, f"{program}.o", "-o", program])
    done = subprocess.run([program], input=np.stack([x, y], 1).tobytes(), capture_output=True, check=True)
    found = np.frombuffer(done.stdout, np.float32).reshape(-1, 2)
    for got, wanted in zip(found.T, (double_math.power(x, y), double_math.erfc(y)), strict=True):
        same = (got.view(np.uint32) == wanted.view(np.uint32)) | (np.isnan(got) & np.isnan(wanted))
        assert same.all(), (x[~same][:5], y[~same][:5], got[~same][:5], wanted[~same][:5])


def test_powers_are_those_of_libm() -> None:
    x, y = _pairs()
    with np.errstate(all="ignore"):
        wanted = np.power(x.astype(np.float64), y.astype(np.float64)).astype(np.float32)
    got = double_math.power(x, y)
    assert np.array_equal(np.isnan(got), np.isnan(wanted))
    there = ~np.isnan(wanted)
    assert np.array_equal(np.signbit(got[there]), np.signbit(wanted[there]))
    assert ulp_distance(got, wanted).max() <= 1 and np.mean(got[there] != wanted[there]) < 1e-3


def test_powers_of_int32_end_where_it_has_no_room() -> None:
    """LiteRT has no one result there; and it stops at powers below 0."""
    model = ModelBuilder()
    a, b, y = (model.tensor(name, (8,), "int32") for name in "aby")
    model.op("POW", [a, b], [y])
    bases = np.array([2, -2, -2, 46341, -1, -(2**31), -(2**31), 3], np.int32)
    exponents = np.array([31, 31, 33, 2, 2**31 - 1, 1, 0, -1], np.int32)
    module = tinyfuse.compile(model.build([a, b], [y]), "host")
    found = module.run({"a": bases, "b": exponents}, emulator="host").in_order[0].reshape(-1)
    least = -(2**31)
    assert found.tolist() == [least, least, least, least, -1, least, 1, 0]
    power = PowFamily().function(module.plan.source.ops[0], bases, exponents)
    assert found.tolist() == power.tolist()


def test_erfc_is_that_of_libm() -> None:
    x = np.concatenate([np.linspace(-11, 11, 20001), [np.inf, -np.inf, 0.0, 1e-40]]).astype(np.float32)
    wanted = np.array([math.erfc(value) for value in x.tolist()], np.float32)
    got = double_math.erfc(x)
    assert ulp_distance(got, wanted).max() <= 1 and np.mean(got != wanted) < 1e-3
    assert np.isnan(double_math.erfc(np.array([np.nan], np.float32))).all()
