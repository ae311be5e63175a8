"""Build information from MindSpore's C++ side."""


def enable_security() -> bool:
    """Return whether this is a build without dumps, saved graphs and summaries: False here."""
    return False
