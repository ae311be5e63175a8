"""`mindspore.rewrite.parsers`: the settings of the parsers that packages change."""
from __future__ import annotations

from torchspore.mindspore.rewrite.parsers.assign_parser import AssignParser
from torchspore.mindspore.rewrite.parsers.class_def_parser import ClassDefParser
from torchspore.public_names import missing

__all__ = ["AssignParser", "ClassDefParser"]
__getattr__ = missing(__name__)
