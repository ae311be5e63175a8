"""`mindspore.mindrecord`: MindSpore's file format for rows; MindSpore and torchspore read each other's files."""
from __future__ import annotations

from torchspore.mindspore.mindrecord import config, exceptions
from torchspore.mindspore.mindrecord.config import set_dec_mode, set_enc_key, set_enc_mode
from torchspore.mindspore.mindrecord.converters import Cifar10ToMR, Cifar100ToMR, CsvToMR, ImageNetToMR, MnistToMR, TFRecordToMR
from torchspore.mindspore.mindrecord.exceptions import *
from torchspore.mindspore.mindrecord.layout import FAILED, SUCCESS, MSRStatus
from torchspore.mindspore.mindrecord.reader import FileReader, MindPage
from torchspore.mindspore.mindrecord.writer import FileWriter
from torchspore.public_names import missing

__getattr__ = missing(__name__)
__all__ = [
    "FAILED", "SUCCESS", "Cifar10ToMR", "Cifar100ToMR", "CsvToMR", "FileReader", "FileWriter", "ImageNetToMR", "MSRStatus", "MindPage",
    "MnistToMR", "TFRecordToMR", "config", "exceptions", "set_dec_mode", "set_enc_key", "set_enc_mode", *exceptions.__all__,
]
