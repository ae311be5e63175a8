from mindspore import context
context.set_context(enable_profiling=True, profiling_options="training_trace")
