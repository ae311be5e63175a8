"""What MindSpore's C++ side says of how it was built."""


def enable_security() -> bool:
    """Whether this is a build without dumps, saved graphs and summaries: never, here."""
    return False
