"""Calls: looked up by key, captured where they are new, run as graphs."""
