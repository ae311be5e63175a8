"""The device and its memory."""

from __future__ import annotations

from torchspore.context.kinds import Choice, Int
from torchspore.context.option import Option, When
from torchspore.errors import LateDeviceChange

device_target = Option(
    kind=Choice("CPU", "GPU", "Ascend", also={"Davinci": "Ascend"}), default="CPU", effect="engine.device:select",
    when=When.BEFORE_DEVICE_USE, in_graph_key=True, example="set_context(device_target='CPU')",
    doc="The device on which Tensors are placed and operators run. Applied before every other option of the same call. "
        "Without it, the accelerator that is there, else the CPU.",
)
device_id = Option(
    kind=Int(0, 4095), default=0, effect="engine.device:select_index", when=When.BEFORE_DEVICE_USE, late=LateDeviceChange,
    in_graph_key=True, environment=("DEVICE_ID",), example="set_context(device_id=0)",
    doc="Which of the host's accelerators this process uses. On the CPU it is kept and changes nothing. "
        "Whether that device is there is checked when it is first used; reading the option does not freeze it.",
)
