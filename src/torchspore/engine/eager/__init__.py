"""PyNative execution: synchronization, determinism, optimizer formulas and CPU kernels written here."""
