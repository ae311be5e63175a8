"""Every error class of torchspore; the docstring of each is its page in the documentation.

Each class also is the built-in exception that a MindSpore program catches in the same place.
"""

from __future__ import annotations


class TorchsporeError(Exception):
    """Something that torchspore itself refuses; every error of ours is one, and also a built-in exception."""


class OptionTypeError(TorchsporeError, TypeError):
    """An option was given a value of a Python type that it does not take."""


class OptionValueError(TorchsporeError, ValueError):
    """An option was given a value that it does not take."""


class UnknownOption(TorchsporeError, ValueError):
    """There is no option of this name; the hint gives the nearest one."""


class OptionKeyError(TorchsporeError, KeyError):
    """A dictionary option holds a member that it does not know, or lacks one that it needs."""

    def __str__(self) -> str:
        return str(self.args[0])  # KeyError would show the repr of the text, line breaks and all


class OptionPathError(TorchsporeError, OSError):
    """A file or directory that an option names cannot be made, read or written."""


class OptionPathMissing(OptionPathError, FileNotFoundError):
    """A directory that an option names cannot be made, because one above it is not there and cannot be made."""


class OptionPathBlocked(OptionPathError, NotADirectoryError):
    """A directory that an option names cannot be made, because a file stands in its way."""


class OptionPathForbidden(OptionPathError, PermissionError):
    """A directory that an option names cannot be made or written by this user."""


class ScopeRefused(TorchsporeError, RuntimeError):
    """A `context.scope` was to set an option that acts on the whole process, while other threads of the program run."""


class NameRefused(TorchsporeError, KeyError):
    """A Cell, a list of activations or a parameter group was asked for a name that is taken, or that it does not know."""

    def __str__(self) -> str:
        return str(self.args[0])


class NotFinite(TorchsporeError, ValueError, RuntimeError):
    """An operator that was asked to look for them found NaN or infinity; MindSpore raises a RuntimeError."""


class LacksKernel(TorchsporeError, TypeError):
    """The device has no kernel for an operator in this dtype, and `enable_reduce_precision` is off, so that no cast is put in."""


class OffloadFailed(TorchsporeError, OSError):
    """Values were to move out of memory, and the folder can't be written, or the disk is full."""


class OutOfMemory(TorchsporeError, MemoryError, RuntimeError):
    """A result does not fit into memory; programs catch MemoryError as in Python, or RuntimeError as in MindSpore."""


class StrategyRefused(TorchsporeError, RuntimeError):
    """How an operator is to be split over devices does not fit it, or another operator; raised where the graph is compiled."""


class ValueElsewhere(TorchsporeError, RuntimeError):
    """Values are read, or computed with, that another stage of a pipeline holds, or of which this process holds a part."""


class DeviceFailed(TorchsporeError, RuntimeError):
    """An accelerator reports that an operator failed while it ran there."""


class AlgorithmRefused(TorchsporeError, RuntimeError):
    """The convolution algorithm that `gpu_config` names can't do a shape or dtype; the hint gives those that can."""


class LateChange(TorchsporeError, RuntimeError):
    """An option was changed after the point up to which it can act; the message names the line that passed it."""


class LateDeviceChange(TorchsporeError, TypeError):
    """`device_id` was changed after the device was used; TypeError, as in MindSpore."""


class DeviceNotFound(TorchsporeError, RuntimeError):
    """The program asks for a device that this machine does not have."""


class StrictRefusal(TorchsporeError, RuntimeError):
    """With TORCHSPORE_STRICT=1, an option that would have no effect here is an error."""

    explained = True       # an operator that happens to be running adds nothing to it


class CallsTooDeep(TorchsporeError, RecursionError):
    """Calls of Cells and functions nest deeper than `max_call_depth` allows while a graph is captured."""

    final = True


class InferenceOnly(TorchsporeError, RuntimeError):
    """`infer_boost` compiles for inference, and the graph trains: it computes gradients or writes into Parameters."""

    explained = True
    final = True


class NotOffered(TorchsporeError, AttributeError):
    """MindSpore has this name, torchspore does not yet, or nobody does; the message says which."""


class ModuleNotOffered(TorchsporeError, ModuleNotFoundError):
    """MindSpore has this module, torchspore does not yet, or nobody does; the message says which."""


class FileFormatError(TorchsporeError, ValueError):
    """A file is not what its reader expects: another format, cut short, or damaged."""


class EffectRefused(TorchsporeError, RuntimeError):
    """A value is right, but it cannot be made to act on this machine; the message says why."""


class CompileError(TorchsporeError, RuntimeError):
    """What can't be part of one graph, where jit_syntax_level STRICT or COMPATIBLE asks for one; the message says what to write."""


class CompileTypeError(CompileError, TypeError):
    """The same, for branches that give different kinds of values and for attributes that a graph can't set."""


class CompileAttributeError(CompileError, AttributeError):
    """The same, where the values of a Tensor are asked for while the graph is compiled."""


class CompileNameError(CompileError, UnboundLocalError):
    """The same, for a local name that only one way through an `if` or loop on a Tensor gives a value."""


class DataMissing(TorchsporeError, RuntimeError, FileNotFoundError):
    """A data set lacks a file or folder that its layout has; RuntimeError as in MindSpore, FileNotFoundError as in Python."""


class DataDamaged(RuntimeError, FileFormatError):
    """A file of a data set is cut short or is not what the layout has; RuntimeError as in MindSpore, ValueError as other damaged files."""


class CommunicationError(TorchsporeError, RuntimeError):
    """An exchange between processes can't end: another process is gone, is in another exchange, or has not come in time."""
