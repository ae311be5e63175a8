"""The `mindspore` package in processes that a program under `torchspore run` spawns.

`torchspore run` adds the folder above this package to sys.path, which multiprocessing passes to the processes that it spawns.
They have no finder yet: this module installs it and removes itself.
"""
import sys

import torchspore
from torchspore.alias import front_end_module

torchspore.install()
sys.modules[__name__] = front_end_module(__name__)
