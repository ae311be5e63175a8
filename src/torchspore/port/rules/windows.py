"""Rules of pools and of interpolation."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torchspore.port.rules.formats import with_format
from torchspore.port.rules.padding import SAME_PADDING, dimension, torch_padding
from torchspore.port.rules.rule import ANY, NoRule


def max_pool_layer(call: Any) -> str:
    """nn.MaxPool1d, MaxPool2d and MaxPool3d: the default stride is 1."""
    digits, mode = dimension(call), call.value("pad_mode")
    call.read.add("padding")                                 # which MindSpore refuses where the mode has no use of it
    mode = mode.lower() if isinstance(mode, str) else mode
    if mode == "same":
        call.note(SAME_PADDING)
        return with_format(call, call.fill(f"{call.helper(f'KeepSizeMaxPool{digits}')}({{kernel_size}}, {{stride}})"))
    if mode not in ("valid", "pad"):
        raise NoRule("a pad_mode that is not a literal")
    padding = f", padding={torch_padding(call)}" if mode == "pad" and call.has("padding") else ""
    rest = call.fill("<, dilation={dilation}><, return_indices={return_indices}><, ceil_mode={ceil_mode}>")
    return with_format(call, call.fill(f"nn.MaxPool{digits}({{kernel_size}}, stride={{stride}}") + f"{padding}{rest})")


def avg_pool_layer(call: Any) -> str:
    """nn.AvgPool1d and AvgPool2d: the default stride is 1."""
    digits, mode = dimension(call), call.value("pad_mode")
    call.read.add("padding")                                 # which MindSpore refuses where the mode has no use of it
    mode = mode.lower() if isinstance(mode, str) else mode
    if mode == "same":
        call.note("pad_mode='same': windows at the borders have fewer values")
        return with_format(call, call.fill(f"{call.helper(f'KeepSizeAvgPool{digits}')}({{kernel_size}}, {{stride}})"))
    if mode not in ("valid", "pad"):
        raise NoRule("a pad_mode that is not a literal")
    padding = f", padding={torch_padding(call)}" if mode == "pad" and call.has("padding") else ""
    rest = call.fill("<, ceil_mode={ceil_mode}><, count_include_pad={count_include_pad}>")
    rest += call.fill("<, divisor_override={divisor_override}>") if "divisor_override" in call.bound.defaults else ""
    return with_format(call, call.fill(f"nn.AvgPool{digits}({{kernel_size}}, stride={{stride}}") + f"{padding}{rest})")


def max_pool(call: Any) -> str:
    """ops.MaxPool."""
    if call.has("data_format"):
        raise NoRule("data_format")
    if str(call.value("pad_mode")).lower() == "valid":
        return str(call.fill("F.max_pool2d({x}, {kernel_size}, {strides})"))
    return str(call.fill("@max_pool2d({x}, {kernel_size}, {strides}, {pad_mode})"))


def max_pool3d(call: Any) -> str:
    """ops.MaxPool3D."""
    mode = str(call.value("pad_mode")).lower()
    if mode == "pad":
        padding = _padding_of_volumes(call, "pad_list")
        if padding and call.has("ceil_mode"):
            raise NoRule("ceil_mode with a padding")
        return str(call.fill(f"F.max_pool3d({{x}}, {{kernel_size}}, {{strides}}{padding}<, ceil_mode={{ceil_mode}}>)"))
    call.read.update(("pad_list", "ceil_mode", "pad_mode"))  # the first two are read with pad_mode='pad' only
    template = "F.max_pool3d({x}, {kernel_size}, {strides})" if mode == "valid" else "@max_pool3d({x}, {kernel_size}, {strides}, {pad_mode})"
    return str(call.fill(template))


def avg_pool3d(call: Any) -> str:
    """ops.AvgPool3D."""
    mode, padding = str(call.value("pad_mode")).lower(), ""
    if mode == "pad":
        padding = _padding_of_volumes(call, "pad")
    elif mode != "valid":
        return str(call.fill("@avg_pool3d({x}, {kernel_size}, {strides}, {pad_mode})"))
    rest = "<, ceil_mode={ceil_mode}><, count_include_pad={count_include_pad}><, divisor_override={divisor_override}>"
    return str(call.fill(f"F.avg_pool3d({{x}}, {{kernel_size}}, {{strides}}{padding}{rest})"))


def _padding_of_volumes(call: Any, name: str) -> str:
    """Return torch's padding: MindSpore's six numbers are those before and behind each axis."""
    value = call.value(name)
    if value is ANY:
        raise NoRule(f"a {name} that is not a literal")
    if isinstance(value, (tuple, list)) and len(value) == 6:
        if any(value[i] != value[i + 1] for i in (0, 2, 4)):
            raise NoRule("a padding that differs between sides")
        value = tuple(value[::2])
    return f", padding={value!r}" if value != 0 else ""


def interpolate(call: Any) -> str:
    """ops.interpolate."""
    if _is_bicubic(call):
        return str(call.fill("@interpolate_bicubically({x}" + _BICUBIC))
    return str(call.fill("F.interpolate({x}" + _INTERPOLATION))


def upsample(call: Any) -> str:
    """nn.Upsample."""
    if _is_bicubic(call):
        return str(call.fill("@BicubicUpsample(" + _BICUBIC))
    return str(call.fill("nn.Upsample(" + _INTERPOLATION))


_BICUBIC = "<, size={size}><, scale_factor={scale_factor}><, align_corners={align_corners}>)"
_INTERPOLATION = (
    "<, size={size}><, scale_factor={scale_factor}><, mode={mode}><, align_corners={align_corners}>"
    "<, recompute_scale_factor={recompute_scale_factor}>)"
)


def _is_bicubic(call: Any) -> bool:
    """Return whether the mode is 'bicubic', whose cubics differ from torch's. Raises NoRule for a mode that is not a literal."""
    if call.value("mode") is ANY:
        raise NoRule("a mode that is not a literal")
    call.read.add("recompute_scale_factor")                  # the size is that of the factor in both
    return bool(call.value("mode") == "bicubic")


RULES: tuple[Callable[[Any], str], ...] = (
    max_pool_layer, avg_pool_layer, max_pool, max_pool3d, avg_pool3d, interpolate, upsample,
)
