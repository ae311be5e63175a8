from mindspore import context
context.set_context(save_graphs=True)
