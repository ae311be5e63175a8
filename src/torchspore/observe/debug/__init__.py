"""Observers of a running program, for people who look for a fault; none of them is loaded before a switch asks for it."""
