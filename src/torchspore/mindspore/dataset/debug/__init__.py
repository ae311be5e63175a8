"""Hooks that inspect the rows between the transforms of a `map`, in debug mode."""
from __future__ import annotations

from torchspore.mindspore.dataset.debug import debug_hook, pre_defined_hook
from torchspore.mindspore.dataset.debug.debug_hook import DebugHook
from torchspore.mindspore.dataset.debug.pre_defined_hook import PrintDataHook, PrintMetaDataHook
from torchspore.public_names import missing

__getattr__ = missing(__name__)
