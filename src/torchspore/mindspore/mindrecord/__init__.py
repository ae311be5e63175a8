"""`mindspore.mindrecord`: MindSpore's own format of rows in files, which it and torchspore read from each other."""
from __future__ import annotations

from torchspore.mindspore.mindrecord import exceptions
from torchspore.mindspore.mindrecord.exceptions import *
from torchspore.mindspore.mindrecord.layout import FAILED, SUCCESS, MSRStatus
from torchspore.mindspore.mindrecord.reader import FileReader, MindPage
from torchspore.mindspore.mindrecord.writer import FileWriter
from torchspore.names import missing

__getattr__ = missing(__name__)
__all__ = ["FAILED", "SUCCESS", "FileReader", "FileWriter", "MSRStatus", "MindPage", "exceptions", *exceptions.__all__]
