"""Operators in which several processes take part."""
