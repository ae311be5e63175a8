"""Graph mode: capture, key, run."""
