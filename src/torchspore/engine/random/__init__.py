"""The random numbers that MindSpore's CPU kernels draw, bit for bit."""
