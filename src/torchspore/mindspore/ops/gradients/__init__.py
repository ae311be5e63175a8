"""Gradient transforms (`grad`, `vmap`, `jvp`) and MindSpore's primitives for gradients of operators (`_grad_ops`)."""
