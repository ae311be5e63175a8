"""Every error class of torchspore; the docstring of each class is its documentation.

Each class is also the built-in exception that a MindSpore program catches in the same place.
"""

from __future__ import annotations


class TorchsporeError(Exception):
    """The base of all errors that torchspore raises deliberately; each is also a built-in exception."""


class OptionTypeError(TorchsporeError, TypeError):
    """An option was set to a value of a Python type that it does not accept."""


class OptionValueError(TorchsporeError, ValueError):
    """An option was set to a value that it does not accept."""


class UnknownOption(TorchsporeError, ValueError):
    """No option has this name; the hint gives the nearest name."""


class OptionKeyError(TorchsporeError, KeyError):
    """A dictionary option contains an unknown member, or lacks a required one."""

    def __str__(self) -> str:
        return str(self.args[0])  # KeyError would show the repr of the text, including escaped line breaks


class OptionPathError(TorchsporeError, OSError):
    """A file or directory that an option names cannot be created, read or written."""


class OptionPathMissing(OptionPathError, FileNotFoundError):
    """A directory that an option names cannot be created, because a parent is missing and cannot be created."""


class OptionPathBlocked(OptionPathError, NotADirectoryError):
    """A directory that an option names cannot be created, because a file is in its way."""


class OptionPathForbidden(OptionPathError, PermissionError):
    """A directory that an option names cannot be created or written by this user."""


class ScopeRefused(TorchsporeError, RuntimeError):
    """A `context.public.scope` sets an option that acts on the whole process, while other threads of the program run."""


class NameRefused(TorchsporeError, KeyError):
    """A Cell, a list of activations or a parameter group got a name that is already used, or that it does not know."""

    def __str__(self) -> str:
        return str(self.args[0])


class NotFinite(TorchsporeError, ValueError, RuntimeError):
    """An operator that was asked to check for them found NaN or infinity; MindSpore raises a RuntimeError."""


class WrongKind(TorchsporeError, TypeError, ValueError):
    """An argument of a wrong type, or a wrong number of arguments, for which MindSpore raises TypeError or ValueError by the operator."""


class WrongAxes(TorchsporeError, RuntimeError):
    """Axes that do not fit the shape, for an operator for which MindSpore raises RuntimeError."""


class LacksKernel(TorchsporeError, TypeError):
    """The device has no kernel for an operator in this dtype, and `enable_reduce_precision` is off, so that no cast is inserted."""


class OffloadFailed(TorchsporeError, OSError):
    """Values could not be moved out of memory: the folder can't be written, or the disk is full."""


class OutOfMemory(TorchsporeError, MemoryError, RuntimeError):
    """A result does not fit into memory; programs catch MemoryError as in Python, or RuntimeError as in MindSpore."""


class StrategyRefused(TorchsporeError, RuntimeError):
    """The strategy of an operator does not fit it, or another operator; raised when the graph is compiled."""


class ValueElsewhere(TorchsporeError, RuntimeError):
    """The program reads or computes with values that another pipeline stage has, or of which this process has only a part."""


class DeviceFailed(TorchsporeError, RuntimeError):
    """An accelerator reports that an operator failed while it ran there."""


class AlgorithmRefused(TorchsporeError, RuntimeError):
    """The convolution algorithm that `gpu_config` names does not support a shape or dtype; the hint lists those that do."""


class LateChange(TorchsporeError, RuntimeError):
    """An option was changed too late to have an effect; the message names the line that made it too late."""


class LateDeviceChange(TorchsporeError, TypeError):
    """`device_id` was changed after the device was used; TypeError, as in MindSpore."""


class DeviceNotFound(TorchsporeError, RuntimeError):
    """The program asks for a device that this machine does not have."""


class StrictRefusal(TorchsporeError, RuntimeError):
    """With TORCHSPORE_STRICT=1, an option that would have no effect here is an error."""

    explained = True       # the running operator would add nothing to the message


class CallsTooDeep(TorchsporeError, RecursionError):
    """Calls of Cells and functions nest deeper than `max_call_depth` allows while a graph is captured."""

    final = True


class InferenceOnly(TorchsporeError, RuntimeError):
    """`infer_boost` compiles for inference, and the graph trains: it computes gradients or writes into Parameters."""

    explained = True
    final = True


class NotOffered(TorchsporeError, AttributeError):
    """The name is missing in torchspore; the message says whether MindSpore has it."""


class ModuleNotOffered(TorchsporeError, ModuleNotFoundError):
    """The module is missing in torchspore; the message says whether MindSpore has it."""


class FileFormatError(TorchsporeError, ValueError):
    """A file does not have the expected content: another format, truncated, or damaged."""


class EffectRefused(TorchsporeError, RuntimeError):
    """A value is valid, but cannot be applied on this machine; the message gives the reason."""


class CompileError(TorchsporeError, RuntimeError):
    """Code that can't be part of one graph, as jit_syntax_level STRICT or COMPATIBLE requires; the message suggests an alternative."""


class CompileTypeError(CompileError, TypeError):
    """A CompileError for branches that return different kinds of values and for attributes that a graph can't set."""


class CompileAttributeError(CompileError, AttributeError):
    """A CompileError for reading the values of a Tensor while the graph is compiled."""


class CompileNameError(CompileError, UnboundLocalError):
    """A CompileError for a local name that only some paths through an `if` or loop on a Tensor assign."""


class DataMissing(TorchsporeError, RuntimeError, FileNotFoundError):
    """A data set lacks a file or folder of its layout; RuntimeError as in MindSpore, FileNotFoundError as in Python."""


class DataDamaged(RuntimeError, FileFormatError):
    """A file of a data set is truncated or does not match the layout; RuntimeError as in MindSpore, ValueError as other damaged files."""


class CommunicationError(TorchsporeError, RuntimeError):
    """An exchange between processes can't complete: another process has ended, is in another exchange, or did not arrive in time."""
