"""The generators of derived files, one module for each subject; tools/generate.py runs them."""
