"""Settings and argument checks that every part of `mindspore.dataset` uses."""
from __future__ import annotations

from torchspore.mindspore.dataset.core import config, validator_helpers
