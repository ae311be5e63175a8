"""Self-contained HTML pages: one file, no network, and nothing that stands in the data ever runs."""
from torchspore.view.page import html

__all__ = ["html"]
