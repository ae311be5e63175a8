"""Operators that draw random numbers: distributions, choices, dropout."""
