context.get_ps_context(enable_ps)
