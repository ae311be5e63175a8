"""What outlives the program: memory in which it notes what it does, a process that watches it, and the files of a record.

Nothing here needs more than Python's standard library: the watching process starts in milliseconds, and a record is read anywhere.
"""
