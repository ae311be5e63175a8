from mindspore import context
context.set_context(enable_profiling=True, profiling_options='{"result_path":"/home/data/output","training_trace":"on"}')
