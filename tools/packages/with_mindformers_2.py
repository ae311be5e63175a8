"""mindformers 2.1.0, which requires MindSpore 2.11: the rows of 1.7.0."""
from __future__ import annotations

from with_mindformers import NEEDS as NEEDS
from with_mindformers import rows as rows

PACKAGE = "mindformers==2.1.0"
FOLDER = "mindformers"
