"""Settings of GPUs: TF32, and the algorithms of cuDNN."""
