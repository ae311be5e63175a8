"""Simulated quantization for training, and integer products for inference."""
