"""Tuning: a search by measurement for the fastest form of a graph, and the storage of its results for later runs."""
