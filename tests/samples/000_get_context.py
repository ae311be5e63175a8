context.get_context("device_target")
context.get_context("device_id")
