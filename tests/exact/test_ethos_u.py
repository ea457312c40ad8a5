"""A program for the Ethos-U NPU among operators of the CPU: a stub in the driver's place checks what it is given."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from executors import plan_of
from npu_models import COMMANDS, FAST, IMAGE_AT, RESULT, RESULT_AT, SCRATCH, SHAPE, WEIGHTS, npu_model

from tinyfuse.cli.main import main
from tinyfuse.emit import emit
from tinyfuse.errors import CompileError
from tinyfuse.frontend.reader import read_tflite
from tinyfuse.ops import FAMILIES
from tinyfuse.verify.emulation.code_size import measure_code
from tinyfuse.verify.oracle import make_oracle

_STUB = """
#include <stdio.h>
#include <string.h>
#include "net.h"

static _Alignas(16) NET_DEFINE_ARENA(arena);

#define CHECK(condition) do { if (!(condition)) { printf("wrong: %s\\n", #condition); return 1; } } while (0)

/* Makes value i of its inputs i, i + 8, i + 16, i + 24 together. */
int net_ethos_u(const void *commands, size_t bytes, const uint64_t *base_addresses, const size_t *sizes, int count)
{
    const uint8_t *const command = (const uint8_t *)commands;
    const uint8_t *const weights = (const uint8_t *)(uintptr_t)base_addresses[0];
    uint8_t *const scratch = (uint8_t *)(uintptr_t)base_addresses[1];
    CHECK(bytes == 24 && (uintptr_t)commands % 16 == 0 && command[0] == 0 && command[23] == 23);
    CHECK(count == 5 && sizes[0] == 40 && sizes[1] == SCRATCH && sizes[2] == FAST && sizes[3] == 32 && sizes[4] == 8);
    CHECK(base_addresses[0] % 16 == 0 && weights[0] == 100 && weights[39] == 139);
    CHECK(base_addresses[1] % 16 == 0 && scratch >= arena && scratch + SCRATCH <= arena + sizeof arena);
#if FAST != SCRATCH
    CHECK(base_addresses[2] % 16 == 0 && base_addresses[2] >= base_addresses[1] + SCRATCH);
    CHECK(base_addresses[2] + FAST <= (uintptr_t)arena + sizeof arena);
    memset((void *)(uintptr_t)base_addresses[2], 0xEE, FAST);
#else
    CHECK(base_addresses[2] == base_addresses[1]);
#endif
    CHECK(base_addresses[3] == base_addresses[1] + IMAGE_AT && base_addresses[4] == base_addresses[1] + RESULT_AT);
    for (int i = 0; i < 8; ++i) {
        uint8_t sum = 0;
        for (int j = i; j < 32; j += 8) {
            sum = (uint8_t)(sum + scratch[IMAGE_AT + j]);
        }
        scratch[RESULT_AT + i] = sum;
    }
    return FAILS;
}

int main(void)
{
    int status, i;
    if (net_init(arena, sizeof arena) != NET_OK) {
        return 2;
    }
    for (i = 0; i < 32; ++i) {
        net_input_x(arena)[i] = (int8_t)(i * 7 - 100);
    }
    status = net_run(arena);
    printf("%d", status);
    for (i = 0; i < 8; ++i) {
        printf(" %d", net_output_b(arena)[i]);
    }
    return 0;
}
"""


def _run(tmp_path: Path, data: bytes, fast: int = FAST, fails: int = 0) -> str:
    for name, text in emit(plan_of(data)).items():
        (tmp_path / name).write_text(text)
    (tmp_path / "main.c").write_text(_STUB)
    values = {"SCRATCH": SCRATCH, "FAST": fast, "IMAGE_AT": IMAGE_AT, "RESULT_AT": RESULT_AT, "FAILS": fails}
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-fsanitize=address,undefined"]
    flags += [f"-D{name}={value}" for name, value in values.items()]
    sources = ["main.c", "net.c", "net_weights.c"]
    subprocess.run(["gcc", *flags, *sources, "-o", "net"], cwd=tmp_path, check=True)
    return subprocess.run([tmp_path / "net"], check=True, capture_output=True, text=True).stdout


def _expected() -> list[int]:
    """Outputs that the module must compute with a stub instead of the NPU."""
    graph = read_tflite("model.tflite", npu_model())
    first, _, last = graph.ops
    image = (np.arange(32) * 7 - 100).astype(np.int8).reshape(SHAPE)
    (swished,) = FAMILIES["HARD_SWISH"].reference(first, image)
    made = swished.reshape(4, 8).sum(axis=0).astype(np.int8).reshape(RESULT)
    (result,) = FAMILIES["HARD_SWISH"].reference(last, made)
    return result.reshape(-1).tolist()


@pytest.mark.parametrize("fast", [True, False])
def test_the_driver_gets_what_tflm_gives_it(tmp_path: Path, fast: bool) -> None:
    told = _run(tmp_path, npu_model(fast), FAST if fast else SCRATCH)
    assert told == " ".join(map(str, [0, *_expected()]))


def test_a_program_that_fails_ends_the_inference(tmp_path: Path) -> None:
    assert _run(tmp_path, npu_model(), fails=1).startswith("4 ")


def test_all_of_it_lies_in_the_arena_and_the_weights() -> None:
    plan = plan_of(npu_model(), "cortex-m55")
    assert plan.arena_bytes >= SCRATCH + FAST
    assert COMMANDS.nbytes + WEIGHTS.nbytes <= plan.weight_bytes


@pytest.mark.skipif(not shutil.which("arm-none-eabi-gcc"), reason="needs arm-none-eabi-gcc")
def test_code_is_measured_without_the_driver(tmp_path: Path) -> None:
    """The driver's function stays undefined, which GNU ld 2.44 takes for an error."""
    assert 100 < measure_code(plan_of(npu_model(), "cortex-m55"), None, tmp_path).module < 1000


def test_nobody_says_what_it_computes() -> None:
    data = npu_model()
    with pytest.raises(CompileError, match=r"model\.tflite: op 1 .*: only the NPU runs this program"):
        make_oracle("auto", data, read_tflite("model.tflite", data))


@pytest.mark.parametrize("command", [["verify"], ["verify", "--oracle", "tflm"], ["profile"], ["gen", "--selftest"]])
def test_commands_say_that_it_runs_elsewhere(command: list[str], tmp_path: Path) -> None:
    """profile ended in the linker's words, verify named no file."""
    file = tmp_path / "npu.tflite"
    file.write_bytes(npu_model())
    ran = CliRunner().invoke(main, [*command, str(file), "--target", "cortex-m55", "--json"])
    assert ran.exit_code == 2
    error = json.loads(ran.stdout)["error"]
    (problem,) = error["problems"]
    assert problem["operator"].startswith("op 1 CUSTOM ethos-u") and "only the NPU" in problem["message"]
    assert error["message"].startswith(f"{file}: op 1")


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (lambda: npu_model(metadata=b""), "it has no sound metadata OfflineMemoryAllocation"),
        (lambda: npu_model(metadata=bytes(40)), "it has no sound metadata OfflineMemoryAllocation"),
        (lambda: npu_model(image_at=SCRATCH - 31), "lie inside the scratch memory"),
        (lambda: npu_model(image_at=-1), "lie inside the scratch memory"),
        (lambda: npu_model(options=b"\2\4\1"), "options are those that Vela writes"),
        (lambda: npu_model(inputs=3), "it has not the inputs that Vela gives it"),
        (lambda: npu_model(scratch_dtype="uint16"), "uint16 is not supported"),
    ],
)
def test_refused(data, told: str) -> None:
    with pytest.raises(CompileError) as refused:
        plan_of(data())
    assert told in str(refused.value)
