"""Self-contained HTML pages: one file, no network, and nothing in the data is ever executed."""
from torchspore.html_pages.page import html

__all__ = ["html"]
