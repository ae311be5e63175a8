"""`mindspore.version`: the version of MindSpore that is spoken here."""
from torchspore.names import mindspore_version

__version__ = mindspore_version()
