"""Levels O1 and O2 without waiting: a graph runs as at O0 while another process compiles it, and switches between two calls."""
