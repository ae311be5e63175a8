"""Operators that write into Parameters: optimizer steps and assignments."""
