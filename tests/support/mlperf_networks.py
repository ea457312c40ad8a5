"""The five networks of MLPerf Tiny in PyTorch, without their training: shapes and layers are those of the reference models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

from torch import Tensor, nn
from torch.nn import functional as F


def _block(
    ins: int, outs: int, size: int | tuple[int, int], stride: int | tuple[int, int] = 1,
    padding: int | tuple[int, int] = 0, groups: int = 1, active: bool = True,
) -> nn.Sequential:  # fmt: skip
    """A convolution, its normalization, and perhaps a ReLU."""
    layers = [nn.Conv2d(ins, outs, size, stride, padding, groups=groups, bias=False), nn.BatchNorm2d(outs)]
    return nn.Sequential(*layers, *([nn.ReLU()] if active else []))


def _separable(ins: int, outs: int, stride: int = 1) -> list[nn.Module]:
    return [_block(ins, ins, 3, stride, 1, groups=ins), _block(ins, outs, 1)]


class _Classifier(nn.Module):
    """Features of an image, their mean, and scores."""

    def __init__(self, features: Sequence[nn.Module], channels: int, classes: int):
        super().__init__()
        self.features, self.pool = nn.Sequential(*features), nn.AdaptiveAvgPool2d(1)
        self.scores = nn.Linear(channels, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.scores(self.pool(self.features(x)).flatten(1))


def keywords() -> nn.Module:
    """kws: a DS-CNN of spectra."""
    first = _block(1, 64, (10, 4), 2, (5, 1))
    return _Classifier([first, *(part for _ in range(4) for part in _separable(64, 64))], 64, 12)


def visual_wake_words() -> nn.Module:
    """vww: MobileNetV1 with a quarter of the channels."""
    wide = [(8, 16, 1), (16, 32, 2), (32, 32, 1), (32, 64, 2), (64, 64, 1), (64, 128, 2), *[(128, 128, 1)] * 5,
            (128, 256, 2), (256, 256, 1)]  # fmt: skip
    return _Classifier([_block(3, 8, 3, 2, 1), *(part for dims in wide for part in _separable(*dims))], 256, 2)


class _Residual(nn.Module):
    def __init__(self, ins: int, outs: int, stride: int):
        super().__init__()
        self.layers = nn.Sequential(_block(ins, outs, 3, stride, 1), _block(outs, outs, 3, 1, 1, active=False))
        self.beside = nn.Identity() if ins == outs else nn.Conv2d(ins, outs, 1, stride)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.layers(x) + self.beside(x))


def images() -> nn.Module:
    """ic: ResNet of eight layers."""
    parts = [_block(3, 16, 3, 1, 1), _Residual(16, 16, 1), _Residual(16, 32, 2), _Residual(32, 64, 2)]
    return _Classifier(parts, 64, 10)


def anomalies() -> nn.Module:
    """ad: an autoencoder of dense layers."""
    sizes = (640, 128, 128, 128, 128, 8, 128, 128, 128, 128, 640)
    layers: list[nn.Module] = []
    for i, (ins, outs) in enumerate(pairwise(sizes)):
        layers += [nn.Linear(ins, outs), *([nn.ReLU()] if i + 2 < len(sizes) else [])]
    return nn.Sequential(*layers)


def streaming_wake_words() -> nn.Module:
    """str_ww: separable convolutions of a sequence, as images of one row."""

    def part(ins: int, outs: int, size: int) -> list[nn.Module]:
        return [nn.Conv2d(ins, ins, (1, size), groups=ins), _block(ins, outs, 1)]

    return _Classifier([*part(40, 128, 3), *part(128, 128, 5), *part(128, 128, 10), *part(128, 32, 15)], 32, 3)


#: name -> (module, shape of its input)
MLPERF: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "kws": (keywords, (1, 1, 49, 10)),
    "vww": (visual_wake_words, (1, 3, 96, 96)),
    "ic": (images, (1, 3, 32, 32)),
    "ad": (anomalies, (1, 640)),
    "str_ww": (streaming_wake_words, (1, 40, 1, 30)),
}
