"""The base of Tensor, its dtypes, its creation from Python data, and nested values that contain Tensors."""
