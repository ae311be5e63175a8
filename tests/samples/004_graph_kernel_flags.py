mindspore.set_context(graph_kernel_flags="--opt_level=2 --dump_as_text")
