"""Networks of convolutions, pooling and normalization."""
from __future__ import annotations

from typing import Any

import numpy as np

from networks import network


def _images(*shape: int) -> Any:
    return np.random.RandomState(0).uniform(-1, 1, shape).astype(np.float32)


@network
def depthwise() -> tuple[Any, Any, list[Any]]:
    """Depthwise and pointwise convolutions with batch normalization, as in MobileNet."""
    import torch
    from mindspore import nn

    def spore_block(inputs: int, outputs: int, stride: int) -> list[Any]:
        return [nn.Conv2d(inputs, inputs, 3, stride, "pad", 1, group=inputs), nn.BatchNorm2d(inputs), nn.ReLU6(),
                nn.Conv2d(inputs, outputs, 1), nn.BatchNorm2d(outputs), nn.ReLU6()]

    def torch_block(inputs: int, outputs: int, stride: int) -> list[Any]:
        return [torch.nn.Conv2d(inputs, inputs, 3, stride, 1, groups=inputs, bias=False), torch.nn.BatchNorm2d(inputs), torch.nn.ReLU6(),
                torch.nn.Conv2d(inputs, outputs, 1, bias=False), torch.nn.BatchNorm2d(outputs), torch.nn.ReLU6()]

    sizes = ((16, 32, 1), (32, 64, 2), (64, 64, 1), (64, 128, 2))

    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.stem = nn.SequentialCell(nn.Conv2d(3, 16, 3, 2, "pad", 1), nn.BatchNorm2d(16), nn.ReLU6())
            self.blocks = nn.SequentialCell([layer for size in sizes for layer in spore_block(*size)])
            self.head = nn.Dense(128, 10)

        def construct(self, x: Any) -> Any:
            return self.head(self.blocks(self.stem(x)).mean((2, 3)))

    class Module(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.stem = torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3, 2, 1, bias=False), torch.nn.BatchNorm2d(16), torch.nn.ReLU6())
            self.blocks = torch.nn.Sequential(*[layer for size in sizes for layer in torch_block(*size)])
            self.head = torch.nn.Linear(128, 10)

        def forward(self, x: Any) -> Any:
            return self.head(self.blocks(self.stem(x)).mean((2, 3)))

    return Net(), Module(), [_images(4, 3, 32, 32)]


@network
def squeeze_and_excite() -> tuple[Any, Any, list[Any]]:
    """A residual block whose channels are weighted, with hard swish."""
    import torch
    from mindspore import nn

    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.conv1, self.norm1 = nn.Conv2d(16, 32, 3, pad_mode="pad", padding=1), nn.BatchNorm2d(32)
            self.squeeze, self.excite = nn.Dense(32, 8), nn.Dense(8, 32)
            self.conv2 = nn.Conv2d(32, 16, 1, has_bias=True)
            self.swish, self.relu, self.gate = nn.HSwish(), nn.ReLU(), nn.HSigmoid()

        def construct(self, x: Any) -> Any:
            y = self.swish(self.norm1(self.conv1(x)))
            scale = self.gate(self.excite(self.relu(self.squeeze(y.mean((2, 3))))))
            return x + self.conv2(y * scale.reshape(-1, 32, 1, 1))

    class Module(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv1, self.norm1 = torch.nn.Conv2d(16, 32, 3, padding=1, bias=False), torch.nn.BatchNorm2d(32)
            self.squeeze, self.excite = torch.nn.Linear(32, 8), torch.nn.Linear(8, 32)
            self.conv2 = torch.nn.Conv2d(32, 16, 1)
            self.swish, self.relu, self.gate = torch.nn.Hardswish(), torch.nn.ReLU(), torch.nn.Hardsigmoid()

        def forward(self, x: Any) -> Any:
            y = self.swish(self.norm1(self.conv1(x)))
            scale = self.gate(self.excite(self.relu(self.squeeze(y.mean((2, 3))))))
            return x + self.conv2(y * scale.reshape(-1, 32, 1, 1))

    return Net(), Module(), [_images(4, 16, 16, 16)]


@network
def small_unet() -> tuple[Any, Any, list[Any]]:
    """Two levels of a U-Net with nearest upsampling and transposed convolution."""
    import torch
    from mindspore import nn, ops

    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.down1 = nn.Conv2d(1, 8, 3, pad_mode="pad", padding=1, has_bias=True)
            self.down2 = nn.Conv2d(8, 16, 3, pad_mode="pad", padding=1, has_bias=True)
            self.middle = nn.Conv2d(16, 16, 3, pad_mode="pad", padding=1, has_bias=True)
            self.up2 = nn.Conv2dTranspose(16, 16, 2, 2, "valid", has_bias=True)
            self.merge2 = nn.Conv2d(32, 8, 3, pad_mode="pad", padding=1, has_bias=True)
            self.merge1 = nn.Conv2d(16, 1, 3, pad_mode="pad", padding=1, has_bias=True)
            self.pool, self.relu = nn.MaxPool2d(2, 2), nn.ReLU()

        def construct(self, x: Any) -> Any:
            a = self.relu(self.down1(x))
            b = self.relu(self.down2(self.pool(a)))
            c = self.up2(self.relu(self.middle(self.pool(b))))
            d = self.relu(self.merge2(ops.cat((b, c), 1)))
            return self.merge1(ops.cat((a, ops.interpolate(d, size=(32, 32), mode="nearest")), 1))

    class Module(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.down1, self.down2 = torch.nn.Conv2d(1, 8, 3, padding=1), torch.nn.Conv2d(8, 16, 3, padding=1)
            self.middle, self.up2 = torch.nn.Conv2d(16, 16, 3, padding=1), torch.nn.ConvTranspose2d(16, 16, 2, 2)
            self.merge2, self.merge1 = torch.nn.Conv2d(32, 8, 3, padding=1), torch.nn.Conv2d(16, 1, 3, padding=1)
            self.pool, self.relu = torch.nn.MaxPool2d(2, 2), torch.nn.ReLU()

        def forward(self, x: Any) -> Any:
            a = self.relu(self.down1(x))
            b = self.relu(self.down2(self.pool(a)))
            c = self.up2(self.relu(self.middle(self.pool(b))))
            d = self.relu(self.merge2(torch.cat((b, c), 1)))
            return self.merge1(torch.cat((a, torch.nn.functional.interpolate(d, size=(32, 32), mode="nearest")), 1))

    return Net(), Module(), [_images(2, 1, 32, 32)]


@network
def dilated_sound() -> tuple[Any, Any, list[Any]]:
    """Dilated convolutions in one dimension with gates and residual connections, as in WaveNet."""
    import torch
    from mindspore import nn, ops

    dilations = (1, 2, 4, 8)

    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.begin = nn.Conv1d(1, 16, 1, has_bias=True)
            self.gates = nn.CellList([
                nn.Conv1d(16, 32, 3, pad_mode="pad", padding=d, dilation=d, has_bias=True) for d in dilations])
            self.mixes = nn.CellList([nn.Conv1d(16, 16, 1, has_bias=True) for _ in dilations])

        def construct(self, x: Any) -> Any:
            x = self.begin(x)
            total = 0
            for gate, mix in zip(self.gates, self.mixes):
                a, b = ops.chunk(gate(x), 2, 1)
                y = mix(ops.tanh(a) * ops.sigmoid(b))
                x, total = x + y, total + y
            return ops.relu(total)

    class Module(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.begin = torch.nn.Conv1d(1, 16, 1)
            self.gates = torch.nn.ModuleList([torch.nn.Conv1d(16, 32, 3, padding=d, dilation=d) for d in dilations])
            self.mixes = torch.nn.ModuleList([torch.nn.Conv1d(16, 16, 1) for _ in dilations])

        def forward(self, x: Any) -> Any:
            x = self.begin(x)
            total = 0
            for gate, mix in zip(self.gates, self.mixes):
                a, b = torch.chunk(gate(x), 2, 1)
                y = mix(torch.tanh(a) * torch.sigmoid(b))
                x, total = x + y, total + y
            return torch.relu(total)

    return Net(), Module(), [_images(2, 1, 128)]


@network
def volumes() -> tuple[Any, Any, list[Any]]:
    """Convolutions in three dimensions."""
    import torch
    from mindspore import nn

    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.conv1 = nn.Conv3d(1, 8, 3, pad_mode="pad", padding=1, has_bias=True)
            self.norm = nn.BatchNorm3d(8)
            self.conv2 = nn.Conv3d(8, 8, 3, pad_mode="pad", padding=1, has_bias=True)
            self.pool, self.relu, self.head = nn.MaxPool3d(2, 2), nn.ReLU(), nn.Dense(8, 3)

        def construct(self, x: Any) -> Any:
            x = self.pool(self.relu(self.norm(self.conv1(x))))
            return self.head(self.pool(self.relu(self.conv2(x))).mean((2, 3, 4)))

    class Module(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv1, self.norm = torch.nn.Conv3d(1, 8, 3, padding=1), torch.nn.BatchNorm3d(8)
            self.conv2 = torch.nn.Conv3d(8, 8, 3, padding=1)
            self.pool, self.relu, self.head = torch.nn.MaxPool3d(2, 2), torch.nn.ReLU(), torch.nn.Linear(8, 3)

        def forward(self, x: Any) -> Any:
            x = self.pool(self.relu(self.norm(self.conv1(x))))
            return self.head(self.pool(self.relu(self.conv2(x))).mean((2, 3, 4)))

    return Net(), Module(), [_images(2, 1, 12, 12, 12)]


@network
def pools_and_norms() -> tuple[Any, Any, list[Any]]:
    """Group, instance and layer normalization with average, adaptive and maximum pooling."""
    import torch
    from mindspore import nn, ops

    class Net(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.conv1, self.group = nn.Conv2d(3, 16, 3, pad_mode="pad", padding=1, has_bias=True), nn.GroupNorm(4, 16)
            self.conv2, self.instance = nn.Conv2d(16, 16, 3, pad_mode="pad", padding=1, has_bias=True), nn.InstanceNorm2d(16)
            self.average, self.adaptive, self.maximum = nn.AvgPool2d(2, 2), nn.AdaptiveAvgPool2d(2), nn.AdaptiveMaxPool2d(2)
            self.layer, self.head = nn.LayerNorm((128,), epsilon=1e-5), nn.Dense(128, 10)

        def construct(self, x: Any) -> Any:
            x = self.average(ops.silu(self.group(self.conv1(x))))
            x = ops.leaky_relu(self.instance(self.conv2(x)), 0.01)
            x = ops.cat((self.adaptive(x), self.maximum(x)), 1)
            return self.head(self.layer(x.reshape(x.shape[0], -1)))

    class Module(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv1, self.group = torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.GroupNorm(4, 16)
            self.conv2, self.instance = torch.nn.Conv2d(16, 16, 3, padding=1), torch.nn.InstanceNorm2d(16, affine=True)
            self.average, self.adaptive, self.maximum = (
                torch.nn.AvgPool2d(2, 2), torch.nn.AdaptiveAvgPool2d(2), torch.nn.AdaptiveMaxPool2d(2))
            self.layer, self.head = torch.nn.LayerNorm(128), torch.nn.Linear(128, 10)

        def forward(self, x: Any) -> Any:
            x = self.average(torch.nn.functional.silu(self.group(self.conv1(x))))
            x = torch.nn.functional.leaky_relu(self.instance(self.conv2(x)), 0.01)
            x = torch.cat((self.adaptive(x), self.maximum(x)), 1)
            return self.head(self.layer(x.reshape(x.shape[0], -1)))

    return Net(), Module(), [_images(4, 3, 16, 16)]
