"""Kernel of TFLite_Detection_PostProcess (runtime_c/tinyfuse_detection.h)."""

from __future__ import annotations

from typing import ClassVar

from tinyfuse.ir import Op
from tinyfuse.kernels.core.context import Context
from tinyfuse.kernels.core.kernel import CallSite
from tinyfuse.kernels.core.rows import KernelOfOperands
from tinyfuse.kernels.core.statements import Call, Let, Statement
from tinyfuse.ops.program.detection import Detection


class DetectionKernel(KernelOfOperands):
    """TFLite_Detection_PostProcess of constant or computed inputs. The outputs must not overlap the inputs."""

    name, unpredictable = "tinyfuse_detection", "how many boxes are compared depends on how they overlap"
    headers = ("tinyfuse_detection.h",)
    operands: ClassVar = {0: "boxes", 1: "scores", 2: "anchors"}

    def scratch(self, op: Op, context: Context) -> int:
        a = op.attributes_as(Detection)
        return 20 * op.input.shape[1] + (4 * a.most if a.by_class else 0)

    def call(self, op: Op, site: CallSite, context: Context) -> tuple[Statement, ...]:
        a = op.attributes_as(Detection)
        width = op.operand(1).shape[2]
        fields: dict[str, int | float] = {
            "boxes": op.input.shape[1], "box_step": op.input.shape[2],
            "classes": a.classes, "class_step": width, "background": width - a.classes,
            "most": a.most, "each_class": min(a.each_class, op.input.shape[1]) if a.by_class else 0,
            "score": a.score, "overlap": a.overlap,
        } | {f"{axis}_scale": scale for axis, scale in zip("yxhw", a.scales, strict=True)}  # fmt: skip
        inputs = self.pointers(site)
        outputs = (output.pointer for output in site.outputs)
        return (
            Let("tinyfuse_detection_params", "p", fields),
            Call(self.name, ("&p", *inputs, *outputs, site.scratch)),
        )
