"""Runs a program of the model zoo without a change of its code: `python zoo_runner.py MODE PROGRAM ARGUMENTS...`.

MODE is PYNATIVE, which replaces the mode that the program requests, or AS_WRITTEN. At the end a line states the number of elements of all
parameters that the program's optimizers train.
"""
import atexit
import functools
import runpy
import sys
from pathlib import Path

import mindspore as ms
from mindspore import context, nn


def force_mode(mode):
    """Replace the mode in each call of `set_context`."""
    set_context = context.set_context

    @functools.wraps(set_context)
    def set_context_with_mode(*args, **options):
        if args or "mode" in options:
            args, options = (), {**options, "mode": mode}
        set_context(*args, **options)

    context.set_context = ms.set_context = set_context_with_mode
    set_context(mode=mode)


def count_trained_parameters():
    """Print at the end the number of elements of the parameters of all optimizers."""
    sizes = {}
    initialize = nn.Optimizer.__init__

    @functools.wraps(initialize)
    def initialize_and_count(self, *args, **options):
        initialize(self, *args, **options)
        sizes.update({id(parameter): parameter.size for parameter in self.parameters})

    nn.Optimizer.__init__ = initialize_and_count
    atexit.register(lambda: print("parameters", sum(sizes.values()), flush=True))


_, requested, program, *arguments = sys.argv
if requested == "PYNATIVE":
    force_mode(ms.PYNATIVE_MODE)
count_trained_parameters()
sys.argv = [program, *arguments]
sys.path.insert(0, str(Path(program).parent))
runpy.run_path(program, run_name="__main__")
