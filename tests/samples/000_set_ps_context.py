context.set_ps_context(enable_ps=True)
