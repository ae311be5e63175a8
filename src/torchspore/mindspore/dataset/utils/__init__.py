"""`mindspore.dataset.utils`: drawing of boxes on pictures, lines of large files."""
from __future__ import annotations

from torchspore.mindspore.dataset.utils.browse_dataset import imshow_det_bbox
from torchspore.mindspore.dataset.utils.line_reader import LineReader
from torchspore.public_names import missing

__all__ = ["LineReader", "imshow_det_bbox"]

__getattr__ = missing(__name__)
