"""Image transforms."""
from __future__ import annotations

from torchspore.mindspore.dataset.vision import c_transforms, py_transforms, transforms, utils
from torchspore.mindspore.dataset.vision.image_files import (
    encode_jpeg,
    encode_png,
    get_image_num_channels,
    get_image_size,
    read_file,
    read_image,
    write_file,
    write_jpeg,
    write_png,
)
from torchspore.mindspore.dataset.vision.transforms import *
from torchspore.mindspore.dataset.vision.utils import (
    AutoAugmentPolicy,
    Border,
    ConvertMode,
    ImageBatchFormat,
    ImageReadMode,
    Inter,
    SliceMode,
)
from torchspore.mindspore.dataset.vision.video import VideoDecoder, read_video, read_video_timestamps
from torchspore.public_names import missing

__getattr__ = missing(__name__)
