"""Runs everything that needs a GPU on a machine that has one, in stages. `tools/on_gpu.sh` starts it."""
