"""Create, index, join, rearrange, search and scatter Tensors."""
