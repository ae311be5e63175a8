"""Settings: the argument data_format of layers (torch's take the channels as the second axis), and options of the context."""
from __future__ import annotations

from typing import Any

from torchspore.port.rules.rule import ANY, NoRule

_SETTINGS = {"device_target": '"CPU"', "mode": "1"}


def with_format(call: Any, layer: str) -> str:
    """Return the layer; where its data_format is or may be "NHWC", with hooks that move the channels."""
    if "data_format" not in call.bound.defaults or not call.has("data_format") or call.value("data_format") in ("NCHW", "NCDHW"):
        return layer
    if call.value("data_format") is not ANY:
        call.note("data_format='NHWC': the channels are moved before and behind the layer")
    return f"{call.helper('in_format')}({layer}, {call.text('data_format')})"


def setting(call: Any) -> str:
    """get_context: the options that decide which branch a program takes."""
    name = call.value("attr_key")
    if name not in _SETTINGS:
        raise NoRule(f"the option {call.text('attr_key')}")
    call.note(f"get_context({name!r}) of a program on the CPU in PyNative mode")
    return _SETTINGS[name]
