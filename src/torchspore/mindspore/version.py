"""`mindspore.version`: the supported version of MindSpore."""
from torchspore.names import mindspore_version

__version__ = mindspore_version()
