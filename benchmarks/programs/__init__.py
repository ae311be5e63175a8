"""MindSpore programs for the benchmarks; each has `step()`, which returns a function that runs one training step."""
