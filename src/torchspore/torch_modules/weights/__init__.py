"""Weights between a Cell and a torch model: names and layouts are matched, and both sides run on one input."""
