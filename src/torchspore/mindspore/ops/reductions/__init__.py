"""Reductions along axes: sums, means, extremes, medians, histograms."""
