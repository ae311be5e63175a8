"""Capture: one trace of a call with fake tensors, which records the state that it reads and writes."""
