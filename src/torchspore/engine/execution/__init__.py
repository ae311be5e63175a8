"""The execution of calls: PyNative mode, the device's selection, precision, prints, deterministic results."""
