"""The black box: memory in which a program notes its actions, a process that watches the program, and the files of a record.

Only Python's standard library is needed here: the watcher starts in milliseconds, and a record can be read anywhere.
"""
