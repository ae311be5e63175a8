"""Observation of a running program: debugging, profiling and summaries."""
