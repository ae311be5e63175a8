from mindspore import context
context.set_context(device_target="Ascend", device_id=6)
