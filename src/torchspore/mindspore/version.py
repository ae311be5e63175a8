"""`mindspore.version`: the supported version of MindSpore."""
from torchspore.public_names import mindspore_version

__version__ = mindspore_version()
