"""Ascend devices: the context's options as calls of torch_npu 2.13 and its torchair. Written from their sources, not run on hardware."""
