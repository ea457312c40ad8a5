"""Functions of runtime_c/tinyfuse_math.h: the C and tinyfuse/ir/float_math.py agree in every bit, for every compiler,
its flags and core. Measures the distance of both from correctly rounded results."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from cross_compilers import cross_compiler
from host_program import WARNINGS, compile_c

from tinyfuse.ir import float_math
from tinyfuse.resources import resource_dir
from tinyfuse.targets import load_target

_RUNTIME = resource_dir("runtime_c")
_FIRMWARE = Path(__file__).resolve().parents[2] / "tinyfuse" / "verify" / "emulation" / "firmware"
_EXACT: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "exp": np.exp,
    "expm1": np.expm1,
    "log": np.log,
    "tanh": np.tanh,
    "sin": np.sin,
    "cos": np.cos,
}
_NAMES = tuple(float_math.FUNCTIONS)


def _arguments(count: int) -> np.ndarray:
    """float32 of either sign: both ends of every exponent, specials, random bits, and neighbours of the functions'
    borders: multiples of ln(2) / 2 and pi / 4, and small integers."""
    exponents = (np.arange(256, dtype=np.uint32) << 23)[:, None] | np.uint32([0, 1, 2, 0x3504F3, 0x400000, 0x7FFFFF])
    drawn = np.random.default_rng(1).integers(0, 1 << 31, count, np.uint32)
    near = np.concatenate(
        [np.arange(1, 400) * np.log(2) / 2, np.arange(1, 400) * np.pi / 4, np.arange(1, 130) / 2, 2.0 ** np.arange(100)]
    )
    bits = near.astype(np.float32).view(np.uint32)[:, None] + np.arange(-3, 4).astype(np.uint32)
    sizes = np.concatenate([exponents.reshape(-1), drawn, bits.reshape(-1)])
    return np.concatenate([sizes, sizes | np.uint32(1 << 31)]).view(np.float32)


def _canonical(values: np.ndarray) -> np.ndarray:
    """Bits of the values, with one bit pattern for every NaN."""
    return np.where(np.isnan(values), np.uint32(0x7FC00000), values.view(np.uint32))


_HOST = """\
#include <stdio.h>
#include "tinyfuse_math.h"
int main(void)
{
    float x;
    while (fread(&x, sizeof x, 1, stdin) == 1) {
        const float results[] = {%s, tinyfuse_sqrt_f32(x), tinyfuse_sqrt_in_integers(x)};
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
        "clang -std=c99 -O2 -ffast-math -march=haswell -ffp-contract=fast",
        "g++ -std=c++17 -O2",
        "gcc -std=c99 -O2 -m32 -mfpmath=387",
    ],
)
def test_c_and_reference_agree_in_every_bit(compiler: str, tmp_path: Path) -> None:
    """FMA, reassociation and excess precision are there for the asking; -ffast-math is not asked to link, for then the
    program sets the processor to flush denormal numbers, which no source can undo."""
    source, program = tmp_path / "functions.c", tmp_path / "functions"
    source.write_text(_HOST % ", ".join(f"tinyfuse_{name}_f32(x)" for name in _NAMES))
    language = ["-x", "c++"] if compiler.startswith("g++") else []
    tool, *flags = compiler.split()
    try:
        compile_c([tool, *flags, *WARNINGS, f"-I{_RUNTIME}", *language, "-c", source, "-o", tmp_path / "functions.o"])
        link = [flag for flag in flags if flag.startswith(("-fsanitize", "-m32"))]
        compile_c([tool, *link, tmp_path / "functions.o", "-o", program])
    except AssertionError:
        if "-m32" not in flags:
            raise
        pytest.skip("no libraries of 32 bits here")
    arguments = _arguments(30_000)
    done = subprocess.run([program], input=arguments.tobytes(), capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr.decode()[:2000]
    computed = np.frombuffer(done.stdout, np.float32).reshape(len(arguments), -1)
    with np.errstate(invalid="ignore"):
        roots = np.sqrt(arguments)
    expected = [*(function(arguments) for function in float_math.FUNCTIONS.values()), roots, roots]
    for name, column, wanted in zip((*_NAMES, "sqrt", "sqrt in integers"), computed.T, expected, strict=True):
        wrong = _canonical(np.ascontiguousarray(column)) != _canonical(wanted)
        assert not wrong.any(), (name, arguments[wrong][:5], column[wrong][:5], wanted[wrong][:5])


@pytest.mark.parametrize("name", _NAMES)
def test_results_are_within_their_bound(name: str) -> None:
    """Measures the distance to the exact value, for which float64 is close enough."""
    arguments = _arguments(1_000_000)
    with np.errstate(all="ignore"):
        exact = _EXACT[name](arguments.astype(np.float64))
        nearest = exact.astype(np.float32)
    computed = float_math.FUNCTIONS[name](arguments)
    special = ~np.isfinite(nearest) | ~np.isfinite(computed)
    assert np.array_equal(computed[special], nearest[special], equal_nan=True)
    assert np.array_equal(np.signbit(computed[exact == 0]), np.signbit(nearest[exact == 0]))
    normal = np.maximum(np.abs(exact[~special]), np.finfo(np.float32).tiny)
    ulp = np.exp2(np.floor(np.log2(normal)) - 23)
    distance = np.abs(computed[~special] - exact[~special]) / ulp
    assert distance.max() <= float_math.ULP[name]
    assert distance.max() > 0.75 * float_math.ULP[name]  # the bound is told as it is


_EMULATED = """\
#include "port.h"
#include "tinyfuse_math.h"

static uint32_t mixed(uint32_t hash, float value)
{
    uint32_t bits = tinyfuse_bits_of_f32(value);
    if ((bits & 0x7FFFFFFFu) > TINYFUSE_BITS_OF_INFINITY) {
        bits = TINYFUSE_BITS_OF_NAN;
    }
    return (hash ^ bits) * 16777619u;
}

int main(void)
{
    static const char digits[] = "0123456789abcdef";
    uint32_t hashes[] = {%(zeros)s, 0}, i, j;
    for (i = 0; i < %(count)uu; ++i) {
        const float x = tinyfuse_f32_of_bits(i * %(step)uu);
        %(body)s
        hashes[%(functions)u] = mixed(hashes[%(functions)u], tinyfuse_sqrt_f32(x));
    }
    for (i = 0; i < sizeof hashes / sizeof *hashes; ++i) {
        char text[9];
        for (j = 0; j < 8; ++j) {
            text[j] = digits[hashes[i] >> (28 - 4 * j) & 15u];
        }
        text[8] = '\\n';
        port_write(text, sizeof text);
    }
    port_exit(0);
}
"""


@pytest.mark.parametrize(
    ("core", "compiler"),
    [("cortex-m0plus", "gcc -Os"), ("cortex-m4", "gcc -O3 -ffast-math"), ("cortex-m55", "clang -O2 -ffast-math")],
)
def test_emulated_cores_compute_the_same_bits(core: str, compiler: str, tmp_path: Path) -> None:
    count, step = 4096, (1 << 32) // 4096 + 12345
    target, (tool, *flags) = load_target(core), compiler.split()
    body = "\n        ".join(f"hashes[{i}] = mixed(hashes[{i}], tinyfuse_{n}_f32(x));" for i, n in enumerate(_NAMES))
    (tmp_path / "functions.c").write_text(
        _EMULATED
        % {
            "zeros": ", ".join("0" for _ in _NAMES),
            "count": count,
            "step": step,
            "body": body,
            "functions": len(_NAMES),
        }
    )
    (tmp_path / "memory.ld").write_text(
        f"MEMORY {{ FLASH (rx) : ORIGIN = {target.flash[0]}, LENGTH = {target.flash[1]}\n"
        f"RAM (rwx) : ORIGIN = {target.ram[0]}, LENGTH = {target.ram[1]} }}\n"
        'REGION_ALIAS("CONSTANTS", RAM)\nREGION_ALIAS("BULK", RAM)\n'
    )
    common = ["-std=gnu99", f"-I{_RUNTIME}", f"-I{_FIRMWARE}"]
    built, elf = tmp_path / "functions.o", tmp_path / "functions.elf"
    compile_c([*cross_compiler(tool, target), *flags, *common, *WARNINGS, "-c", tmp_path / "functions.c", "-o", built])
    port = [built, _FIRMWARE / "port_cortex_m.c", "-nostartfiles", "--specs=nano.specs", "-T"]
    places = [_FIRMWARE / "sections.ld", f"-L{tmp_path}", "-o", elf]
    compile_c([*cross_compiler("gcc", target), "-O2", *common, "-w", *port, *places])
    command = ["qemu-system-arm", "-machine", target.qemu_machine, "-display", "none", "-monitor", "none"]
    command += ["-serial", "none", "-semihosting-config", "enable=on,target=native", "-kernel", str(elf)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)
    arguments = ((np.arange(count, dtype=np.uint64) * np.uint64(step)) & np.uint64(0xFFFFFFFF)).astype(np.uint32)
    with np.errstate(invalid="ignore"):
        functions = [*(f(arguments.view(np.float32)) for f in float_math.FUNCTIONS.values())]
        functions.append(np.sqrt(arguments.view(np.float32)))
    assert (done.stdout + done.stderr).split() == [_hash(values) for values in functions]


def _hash(values: np.ndarray) -> str:
    state = 0
    for bits in _canonical(values).tolist():
        state = (state ^ bits) * 16777619 & 0xFFFFFFFF
    return f"{state:08x}"
