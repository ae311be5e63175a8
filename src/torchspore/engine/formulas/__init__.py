"""Formulas that torch lacks: optimizers, attention in blocks, recurrent networks, CTC, sorting as MindSpore does; counts of operations."""
