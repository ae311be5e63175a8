"""COO and CSR Tensors, sets and ragged Tensors."""
