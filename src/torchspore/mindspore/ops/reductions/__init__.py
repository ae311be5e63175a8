"""Reductions along axes: sums, means, extremes, norms, medians, running sums, histograms."""
