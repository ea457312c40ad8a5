"""`verify --thorough` also sees faults of builds that an ordinary verification does not make."""

from __future__ import annotations

import pytest
from test_mutations import HAS_QEMU
from test_verify_can_fail import corrupt, model

from tinyfuse.cli.request import Request
from tinyfuse.cli.terminal import Answer
from tinyfuse.cli.verify import verify
from tinyfuse.errors import EmulationFailed
from tinyfuse.options import VerifyOptions

pytestmark = pytest.mark.skipif(not HAS_QEMU, reason="needs arm-none-eabi-gcc and qemu-system-arm")

__all__ = ["model"]  # a fixture


def verified(model: str, *, thorough: bool) -> Answer:
    request = Request(model, "cortex-m4", name="net", kernels="tinyfuse")
    return verify(request, lambda text: None, VerifyOptions(emulator="qemu", oracle="tflm", runs=4, thorough=thorough))


def test_each_build_is_listed(model) -> None:
    answer = verified(model, thorough=True)
    builds = answer.data["builds"]
    assert answer.exact
    assert [(build["emulator"].split()[0], build["compiler_opt"]) for build in builds] == [
        *(("qemu", opt) for opt in ("O2", "O0", "Os", "O3")),
        ("host", "O1"),
    ]
    assert answer.data["outputs"] == sum(build["elements"] for build in builds)
    assert sum(line.startswith("build -") for line in answer.lines) == 5
    assert len(verified(model, thorough=False).data["builds"]) == 1


@pytest.mark.parametrize(
    ("condition", "seen"),
    [
        ("!defined(__OPTIMIZE__) && !defined(TINYFUSE_ANY_CPU)", "O0"),
        pytest.param("defined(__OPTIMIZE_SIZE__)", "Os", marks=pytest.mark.campaign),
        ("defined(TINYFUSE_ANY_CPU)", "O1"),
    ],
)
def test_a_fault_of_one_build_is_seen(model, monkeypatch, condition: str, seen: str) -> None:
    fault = f"#if {condition}\n    bytes[-1] ^= 1;\n#endif\n    NET_GROUP_END(0);"
    corrupt(monkeypatch, "net.c", lambda text: text.replace("    NET_GROUP_END(0);", fault))
    assert verified(model, thorough=False).exact
    if seen == "O1":  # the sanitizer ends the run
        with pytest.raises(EmulationFailed, match="AddressSanitizer"):
            verified(model, thorough=True)
        return
    answer = verified(model, thorough=True)
    assert not answer.exact
    assert any(text.startswith(f"{seen} on qemu: ") for text in answer.data["problems"])
