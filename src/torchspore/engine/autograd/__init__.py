"""Gradients in PyNative mode, on top of torch.autograd."""
