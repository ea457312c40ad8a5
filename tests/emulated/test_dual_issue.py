"""The assembly of cores that issue a load beside a product: Cortex-M7."""

from __future__ import annotations

from pathlib import Path

import pytest
from random_graphs import Sketch
from test_emulation import needs_qemu

from tinyfuse.cli.planning import make_plan
from tinyfuse.cli.request import Request
from tinyfuse.cli.verify import verify
from tinyfuse.options import VerifyOptions


@pytest.mark.emulated
@needs_qemu
def test_blocks_of_any_depth_and_of_one_or_two_pixels_are_exact(tmp_path: Path) -> None:
    """One step, a whole iteration of eight, one more, and many; an odd count of pixels and channels."""
    sketch = Sketch(11)
    x = y = sketch.value((1, 3, 5, 4))
    for channels in (32, 36, 68, 7):
        y = sketch.conv(y, channels, (1, 1), activation="RELU")
    y = sketch.conv(y, 9, (3, 3))
    path = tmp_path / "blocks.tflite"
    path.write_bytes(sketch.build([x], [y]))
    request = Request(str(path), "cortex-m7", optimize="speed", weights="unpacked", fusion="none")
    plan, _ = make_plan(request, lambda text: None, needs_tree=False)
    kernels = {stage.kernel.name for group in plan.groups for stage in group.stages}
    assert {"tinyfuse_pointwise_int16_weights_s8", "tinyfuse_conv_int16_weights_row_s8"} <= kernels
    answer = verify(request, lambda text: None, VerifyOptions(emulator="qemu", runs=4, timeout=60))
    assert answer.data["exact"]
