"""Functions of the elements of one or two Tensors: arithmetic, comparisons, activations, special functions."""
