"""Makes tests/support/executorch_models: small networks that ExecuTorch has quantized for Cortex-M (.pte).

Beside each, NAME.npz has inputs, and what ExecuTorch's operators compute of them. Needs executorch 1.5, torch 2.13 and
tosa-tools: python tests/support/make_executorch_models.py FOLDER [NAME ...]

Names of MLPERF (mlperf_networks.py) are made when they are given; NAME_int8 has int8 inputs and outputs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from mlperf_networks import MLPERF
from torch import Tensor, nn
from torch.nn import functional as F
from twin_networks import NETWORKS


class Separable(nn.Module):
    """Depthwise and pointwise convolutions of a strided image, an average pool and a linear layer."""

    def __init__(self) -> None:
        super().__init__()

        def block(ins: int, outs: int, size: int, stride: int, groups: int) -> nn.Sequential:
            conv = nn.Conv2d(ins, outs, size, stride, size // 2, groups=groups)
            return nn.Sequential(conv, nn.BatchNorm2d(outs), nn.ReLU())

        self.features = nn.Sequential(block(1, 6, 3, 2, 1), block(6, 6, 3, 1, 6), block(6, 8, 1, 1, 1))
        self.pool, self.scores = nn.AdaptiveAvgPool2d(1), nn.Linear(8, 5)

    def forward(self, x: Tensor) -> Tensor:
        return self.scores(self.pool(self.features(x)).flatten(1))


class Residual(nn.Module):
    """Sums, products, tables, pools, concatenation; int8 in and out of channels that are planes."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.first, self.second = (nn.Conv2d(i, 6, 3, padding=1) for i in (3, 6, 6))
        self.down, self.gate = nn.Conv2d(6, 8, 3, stride=2, dilation=1, bias=False), nn.Conv2d(8, 8, 1)
        self.up = nn.ConvTranspose2d(8, 4, 2, stride=2)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.stem(x))
        x = x + F.relu(self.first(x))
        x = x + self.second(x)
        x = F.max_pool2d(torch.tanh(x), 2)
        x = self.down(F.pad(x, (0, 1, 1, 0)))
        x = x * torch.sigmoid(self.gate(x))
        return F.avg_pool2d(self.up(x), 3, stride=2, padding=1)


class Attention(nn.Module):
    """A block of attention over a sequence, and a dense layer with one output."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.mix, self.last = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 1)

    def forward(self, x: Tensor) -> Tensor:
        scores = torch.softmax(torch.bmm(x, x.permute(0, 2, 1)), dim=-1)
        x = x + torch.bmm(scores, x)
        return self.last(F.gelu(self.mix(x)))


class Mixed(nn.Module):
    """Planes of channels that are turned, a factor a channel, the greater of two values, two tensors joined."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Conv2d(2, 4, 3, padding=1), nn.Conv2d(2, 4, 1)
        self.factors = nn.Conv2d(4, 4, 1)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        x = x.to(memory_format=torch.channels_last)
        left, right = self.left(x), self.right(x)
        left = left * torch.sigmoid(self.factors(F.avg_pool2d(left, (5, 6))))
        joined = torch.cat([torch.maximum(left, right), right], dim=1)
        return F.max_pool2d(joined, 3, stride=2, padding=1), right


#: name -> (module, shape of its input)
MODELS: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "separable": (Separable, (1, 1, 12, 10)),
    "residual": (Residual, (1, 3, 8, 10)),
    "attention": (Attention, (1, 5, 8)),
    "mixed": (Mixed, (1, 2, 5, 6)),
    "explicit": (Separable, (1, 1, 12, 10)),
    "stored": (Separable, (1, 1, 12, 10)),
    **NETWORKS,
}


def program(module: nn.Module, shape: tuple[int, ...], explicit: bool, stored: bool) -> bytes:
    """The .pte file of a module, calibrated with random inputs.

    explicit  its images have sizes [N, H, W, C]
    stored    its inputs and outputs are int8
    """
    from executorch.backends.cortex_m.edge_compile_config import cortex_m_edge_compile_config
    from executorch.backends.cortex_m.passes.cortex_m_pass_manager import CortexMPassManager
    from executorch.backends.cortex_m.quantizer.quantizer import CortexMQuantizer
    from executorch.exir import ExecutorchBackendConfig, to_edge
    from executorch.exir.passes.quantize_io_pass import QuantizeInputs, QuantizeOutputs
    from torchao.quantization.pt2e.quantize_pt2e import convert_pt2e, prepare_pt2e

    last = len(shape) == 4 and not isinstance(module, Mixed) and not explicit
    layout = torch.channels_last if last else torch.contiguous_format
    inputs = [torch.randn(shape).to(memory_format=layout) for _ in range(16)]
    exported = torch.export.export(module.eval(), (inputs[0],)).module(check_guards=False)
    prepared = prepare_pt2e(exported, CortexMQuantizer(use_explicit_layout=explicit))
    for x in inputs:
        prepared(x)
    quantized = torch.export.export(convert_pt2e(prepared), (inputs[0],))
    edge = to_edge(quantized, compile_config=cortex_m_edge_compile_config())
    if stored:
        outputs = range(len(edge.exported_program().graph_signature.user_outputs))
        edge = edge.transform([QuantizeInputs(edge, [0]), QuantizeOutputs(edge, list(outputs))])
    passes = CortexMPassManager(edge.exported_program(), use_explicit_layout=explicit)
    edge._edge_programs["forward"] = passes.transform()
    return bytes(edge.to_executorch(config=ExecutorchBackendConfig(extract_delegate_segments=False)).buffer)


def write_results(path: Path, data: bytes, shape: tuple[int, ...], stored: bool) -> None:
    """Write inputs [runs, elements in the order of memory], float32 or int8, and the results of each output."""
    from tinyfuse.verify.executorch_operators import program_inference

    infer = program_inference(data)
    inputs = np.random.default_rng(0).normal(0, 1.5, (6, int(np.prod(shape)))).astype(np.float32)
    if stored:
        inputs = (inputs * 40).clip(-128, 127).astype(np.int8)
    results = zip(*(infer([x]) for x in inputs), strict=True)
    np.savez_compressed(path, inputs=inputs, **{f"output_{i}": np.array(found) for i, found in enumerate(results)})


def main(folder: str, *names: str) -> None:
    for name in names or MODELS:
        torch.manual_seed(sum(name.encode()))
        stored = name == "stored" or name.endswith("_int8")
        make, shape = (MODELS | MLPERF)[name.removesuffix("_int8")]
        module = make()
        for part in module.modules():
            if isinstance(part, nn.BatchNorm2d):
                part.running_mean.normal_(0, 0.1)
                part.running_var.uniform_(0.5, 1.5)
        data = program(module, shape, name == "explicit", stored)
        Path(folder, f"{name}.pte").write_bytes(data)
        write_results(Path(folder, f"{name}.npz"), data, shape, stored)


if __name__ == "__main__":
    main(*sys.argv[1:])
