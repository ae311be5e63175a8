"""What a process spawned by a program under `torchspore run` finds as `mindspore`.

`torchspore run` puts the folder above this package on sys.path, which multiprocessing hands on to the processes that it spawns.
They have no finder yet: this installs it and steps aside.
"""
import sys

import torchspore
from torchspore.alias import front_end_module

torchspore.install()
sys.modules[__name__] = front_end_module(__name__)
