"""Python values, loops, side effects and user-defined operators inside a program."""
