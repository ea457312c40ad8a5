"""Networks of PyTorch that several exporters make files of: MobileNetV2 and V3, a detector's head, a transformer, 1-D."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def _conv(
    ins: int, outs: int, size: int, stride: int = 1, groups: int = 1, activation: type[nn.Module] | None = nn.ReLU6
) -> nn.Sequential:
    layers: list[nn.Module] = [
        nn.Conv2d(ins, outs, size, stride, size // 2, groups=groups, bias=False),
        nn.BatchNorm2d(outs),
    ]
    return nn.Sequential(*layers, *([activation()] if activation else []))


class InvertedResidual(nn.Module):
    """MobileNetV2's block: expansion, depthwise convolution, projection, and a sum where shapes allow it."""

    def __init__(self, ins: int, outs: int, stride: int, factor: int):
        super().__init__()
        inner = ins * factor
        self.layers = nn.Sequential(
            _conv(ins, inner, 1), _conv(inner, inner, 3, stride, inner), _conv(inner, outs, 1, activation=None)
        )
        self.adds = stride == 1 and ins == outs

    def forward(self, x: Tensor) -> Tensor:
        return x + self.layers(x) if self.adds else self.layers(x)


class MobileNetV2(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.features = nn.Sequential(
            _conv(3, 8, 3, 2),
            InvertedResidual(8, 8, 1, 2),
            InvertedResidual(8, 12, 2, 4),
            InvertedResidual(12, 12, 1, 4),
            InvertedResidual(12, 16, 2, 4),
            _conv(16, 32, 1),
        )
        self.pool, self.scores = nn.AdaptiveAvgPool2d(1), nn.Linear(32, 10)

    def forward(self, x: Tensor) -> Tensor:
        return self.scores(self.pool(self.features(x)).flatten(1))


class SqueezeExcitation(nn.Module):
    """MobileNetV3's factors of channels."""

    def __init__(self, channels: int):
        super().__init__()
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.down, self.up = nn.Conv2d(channels, 8, 1), nn.Conv2d(8, channels, 1)

    def forward(self, x: Tensor) -> Tensor:
        return F.hardsigmoid(self.up(F.relu(self.down(self.pool(x))))) * x


class MobileNetV3(nn.Module):
    def __init__(self) -> None:
        super().__init__()

        def block(ins: int, outs: int, inner: int, stride: int, act: type[nn.Module], squeezes: bool) -> nn.Sequential:
            parts: list[nn.Module] = [_conv(ins, inner, 1, activation=act), _conv(inner, inner, 5, stride, inner, act)]
            return nn.Sequential(
                *parts, *([SqueezeExcitation(inner)] if squeezes else []), _conv(inner, outs, 1, activation=None)
            )

        self.stem = _conv(3, 8, 3, 2, activation=nn.Hardswish)
        self.first, self.second, self.third = (
            block(8, 12, 16, 2, nn.ReLU, True),
            block(12, 12, 24, 1, nn.Hardswish, True),
            block(12, 16, 32, 2, nn.Hardswish, False),
        )
        self.last, self.pool = _conv(16, 32, 1, activation=nn.Hardswish), nn.AdaptiveAvgPool2d(1)
        self.hidden, self.scores = nn.Linear(32, 24), nn.Linear(24, 10)

    def forward(self, x: Tensor) -> Tensor:
        x = self.first(self.stem(x))
        x = self.third(x + self.second(x))
        x = self.pool(self.last(x)).flatten(1)
        return self.scores(F.hardswish(self.hidden(x)))


class Detector(nn.Module):
    """A feature pyramid of three levels, with heads of classes and boxes that all levels share."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = _conv(3, 8, 3, 2, activation=nn.ReLU)
        self.levels = nn.ModuleList(_conv(i, o, 3, 2, activation=nn.ReLU) for i, o in ((8, 12), (12, 16), (16, 24)))
        self.lateral = nn.ModuleList(nn.Conv2d(i, 16, 1) for i in (12, 16, 24))
        self.smooth = nn.ModuleList(nn.Conv2d(16, 16, 3, padding=1) for _ in range(2))
        self.tower = nn.Conv2d(16, 16, 3, padding=1)
        self.classes, self.boxes = nn.Conv2d(16, 2 * 3, 3, padding=1), nn.Conv2d(16, 2 * 4, 3, padding=1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x, levels = self.stem(x), []
        for level in self.levels:
            x = level(x)
            levels.append(x)
        first, second, third = (lateral(level) for lateral, level in zip(self.lateral, levels, strict=True))
        second = second + F.interpolate(third, scale_factor=2.0, mode="nearest")
        first = first + F.interpolate(second, scale_factor=2.0, mode="nearest")
        scores, boxes = [], []
        for level in (self.smooth[0](first), self.smooth[1](second), third):
            shared = F.relu(self.tower(level))
            scores.append(self.classes(shared).contiguous().permute(0, 2, 3, 1).reshape(1, -1, 3))
            boxes.append(self.boxes(shared).contiguous().permute(0, 2, 3, 1).reshape(1, -1, 4))
        return torch.sigmoid(torch.cat(scores, 1)), torch.cat(boxes, 1)


class Transformer(nn.Module):
    """A block of self-attention with two heads and one of dense layers, each behind a LayerNorm."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.LayerNorm(16), nn.LayerNorm(16)
        self.query, self.key, self.out = (nn.Linear(16, 16) for _ in range(3))
        self.grow, self.shrink, self.scores = nn.Linear(16, 32), nn.Linear(32, 16), nn.Linear(16, 4)

    def heads(self, x: Tensor) -> Tensor:
        """[heads, steps, 8] of [1, steps, 16]."""
        return x.reshape(-1, 2, 8).permute(1, 0, 2)

    def forward(self, x: Tensor) -> Tensor:
        y = self.first(x)
        q, k = self.heads(self.query(y)), self.heads(self.key(y))
        v = self.heads(y)  # executorch 1.5 can't lower torch.bmm of weights and a layer's result
        weights = torch.softmax(torch.bmm(q, k.permute(0, 2, 1)) * 8**-0.5, -1)
        x = x + self.out(torch.bmm(weights, v).permute(1, 0, 2).reshape(1, -1, 16))
        x = x + self.shrink(F.gelu(self.grow(self.second(x))))
        return self.scores(x.mean(1))


class Waves(nn.Module):
    """A network of sequences: 1-D convolutions, one of them depthwise, pools and a dense layer.

    With `images` the sequence is an image of one row: executorch 1.5 leaves 1-D convolutions in float32.
    """

    def __init__(self, images: bool = False) -> None:
        super().__init__()

        def conv(ins: int, outs: int, size: int, stride: int = 1, groups: int = 1) -> nn.Sequential:
            if images:
                layer: nn.Module = nn.Conv2d(ins, outs, (1, size), (1, stride), (0, size // 2), groups=groups)
                return nn.Sequential(layer, nn.BatchNorm2d(outs), nn.ReLU())
            layer = nn.Conv1d(ins, outs, size, stride, size // 2, groups=groups)
            return nn.Sequential(layer, nn.BatchNorm1d(outs), nn.ReLU())

        pool = (lambda: nn.MaxPool2d((1, 2))) if images else (lambda: nn.MaxPool1d(2))
        self.features = nn.Sequential(
            conv(2, 8, 5, 2), pool(), conv(8, 8, 5, 1, 8), conv(8, 16, 1), pool(), conv(16, 16, 3)
        )
        self.pool, self.scores = (nn.AdaptiveAvgPool2d(1) if images else nn.AdaptiveAvgPool1d(1)), nn.Linear(16, 5)

    def forward(self, x: Tensor) -> Tensor:
        return self.scores(self.pool(self.features(x)).flatten(1))


#: name -> (module, shape of its input)
NETWORKS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "mobilenet_v2": (MobileNetV2, (1, 3, 32, 32)),
    "mobilenet_v3": (MobileNetV3, (1, 3, 32, 32)),
    "detector": (Detector, (1, 3, 32, 32)),
    "transformer": (Transformer, (1, 12, 16)),
    "waves": (Waves, (1, 2, 64)),
    "waves_row": (lambda: Waves(True), (1, 2, 1, 64)),
}


def network(name: str) -> nn.Module:
    """A network in eval mode, with weights and statistics that its name determines."""
    torch.manual_seed(sum(name.encode()))
    module = NETWORKS[name][0]()
    for part in module.modules():
        if isinstance(part, (nn.BatchNorm1d, nn.BatchNorm2d)):
            part.running_mean.normal_(0, 0.1)
            part.running_var.uniform_(0.5, 1.5)
    return module.eval()


def calibration(name: str, count: int = 16) -> list[Tensor]:
    torch.manual_seed(1)
    return [torch.randn(NETWORKS[name][1]) for _ in range(count)]
