"""The torch text of definitions, and the composition of a ported file."""
