"""MindSpore programs for the benchmarks; each has `step()`, which gives a function that does one training step."""
