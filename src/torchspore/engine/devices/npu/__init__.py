"""Ascend devices: what the context becomes as calls of torch_npu 2.13 and its torchair. Wired after their sources, not run on hardware."""
