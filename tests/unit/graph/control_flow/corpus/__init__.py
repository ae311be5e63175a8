"""Small functions with control flow on Tensors, by subject. Each takes one float32 Tensor of shape (3,)."""
