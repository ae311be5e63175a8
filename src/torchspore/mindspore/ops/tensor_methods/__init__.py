"""The methods of Tensor, and the operators that write into their Tensor."""
