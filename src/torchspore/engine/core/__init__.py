"""Tensors, dtypes, devices and process state: the modules that every other part of the engine builds on."""
