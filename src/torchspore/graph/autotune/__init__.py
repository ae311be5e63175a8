"""Tuning: a search by measurement for the fastest form of a graph, and what it found for the runs that come."""
