"""`mindspore.rewrite.common`: which objects of a network a tree describes by nodes of their own."""
from torchspore.public_names import missing

__getattr__ = missing(__name__)
