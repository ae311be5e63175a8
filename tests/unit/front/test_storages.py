"""`Tensor.untyped_storage`: the bytes behind a Tensor and its views."""
from __future__ import annotations

import mindspore as ms
import pytest
from mindspore import Tensor


def test_views_share_one_storage() -> None:
    tensor = Tensor([1.0, 2.0]) * 1
    storage = tensor.untyped_storage()
    assert (storage.size(), storage.nbytes(), len(storage), storage.element_size()) == (8, 8, 8, 1)
    assert storage.dtype == ms.float32 and storage.device == "CPU" and not storage.is_shared()
    assert tensor[1:].untyped_storage().data_ptr() == storage.data_ptr()


def test_copies_write_into_the_tensor() -> None:
    first, second = Tensor(2.0) * 1, Tensor(2.0) * 3
    assert first.untyped_storage().copy_(second.untyped_storage()).size() == 4
    assert first.item() == 6.0
    with pytest.raises(TypeError, match="expected an UntypedStorage, got Tensor"):
        first.untyped_storage().copy_(second)


def test_resize() -> None:
    storage = (Tensor(1.0) * 1).untyped_storage()
    storage.resize_(0)
    assert (storage.size(), storage.data_ptr()) == (0, 0)
    assert storage.resize_(12).size() == 12 and storage.data_ptr() != 0
    with pytest.raises(TypeError, match="expected an int, got float"):
        storage.resize_(1.5)
    shared = Tensor([1.0]) * 1
    shared.asnumpy()
    with pytest.raises(RuntimeError, match="no NumPy array shares"):
        shared.untyped_storage().resize_(0)
