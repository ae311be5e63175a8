"""The recorders, one module for each subject; tools/record.py runs them.

A module has `add_arguments(parser)`, and `record_inside(arguments)`, which runs in the Python that has real MindSpore, or
`record(arguments)`, which runs in the Python of tools/record.py, or both: then the latter starts the former.
"""
