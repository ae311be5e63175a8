"""Observers of a running program that help to find faults; an option loads each."""
