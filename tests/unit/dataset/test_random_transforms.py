"""Random transforms: the same seed gives the same images whatever the threads, and each does what its name says."""

from __future__ import annotations

import io

import mindspore.dataset as ds
import mindspore.dataset.transforms as transforms
import mindspore.dataset.vision as vision
import numpy as np
import pytest

IMAGE = np.random.RandomState(5).randint(0, 256, (24, 20, 3)).astype(np.uint8)

SAME_SIZE = {
    "RandomHorizontalFlip": vision.RandomHorizontalFlip(),
    "RandomVerticalFlip": vision.RandomVerticalFlip(),
    "RandomColorAdjust": vision.RandomColorAdjust(0.4, 0.4, 0.4, 0.1),
    "RandomColor": vision.RandomColor(),
    "RandomGrayscale": vision.RandomGrayscale(0.5),
    "RandomRotation": vision.RandomRotation(30),
    "CutOut": vision.CutOut(5, 2),
    "RandomApply": transforms.RandomApply([vision.Invert()]),
    "RandomOrder": transforms.RandomOrder([vision.Invert(), vision.Posterize(3)]),
    "RandomChoice": transforms.RandomChoice([vision.Invert(), vision.HorizontalFlip()]),
}
SIZED = {
    "RandomCrop": vision.RandomCrop((12, 10), padding=2),
    "RandomResizedCrop": vision.RandomResizedCrop((12, 10)),
    "RandomResize": vision.RandomResize((12, 10)),
}


def epochs(transform: object, workers: int | None, seed: int) -> np.ndarray:
    ds.config.set_seed(seed)
    dataset = ds.NumpySlicesDataset(np.stack([IMAGE] * 40), ["image"], shuffle=False)
    dataset = dataset.map(transform, "image", num_parallel_workers=workers)
    iterator = dataset.create_tuple_iterator(output_numpy=True, num_epochs=2)
    return np.stack([[row[0] for row in iterator] for _ in range(2)])


@pytest.mark.parametrize("name", [*SAME_SIZE, *SIZED])
def test_threads_do_not_change_the_numbers(name: str) -> None:
    transform = {**SAME_SIZE, **SIZED}[name]
    first = epochs(transform, None, 3)
    assert np.array_equal(first, epochs(transform, 4, 3))
    assert not np.array_equal(first, epochs(transform, None, 4))
    assert not np.array_equal(first[0], first[1])  # another epoch, other choices
    assert first.shape[2:] == (IMAGE.shape if name in SAME_SIZE else (12, 10, 3))


def test_a_crop_is_a_part_of_the_image() -> None:
    part = vision.RandomCrop((5, 6))(IMAGE)
    assert any(
        np.array_equal(part, IMAGE[top : top + 5, left : left + 6])
        for top in range(IMAGE.shape[0] - 4)
        for left in range(IMAGE.shape[1] - 5)
    )
    assert vision.RandomCrop((30, 30), pad_if_needed=True)(IMAGE).shape == (30, 30, 3)


def test_flips_happen_at_the_requested_rate() -> None:
    ds.config.set_seed(1)
    flip = vision.RandomHorizontalFlip(0.25)
    flipped = sum(not np.array_equal(flip(IMAGE), IMAGE) for _ in range(2000))
    assert 420 < flipped < 580


def test_columns_are_transformed_together() -> None:
    crop = vision.RandomCrop(8)
    first, second = crop(IMAGE, IMAGE)
    assert np.array_equal(first, second)


def test_erasing_fills_a_part() -> None:
    chw = np.ones((3, 24, 20), np.float32)
    erased = vision.RandomErasing(1.0, value=7)(chw)
    assert 0 < (erased == 7).mean() < 0.5 and (chw == 1).all()
    assert np.array_equal(vision.RandomErasing(0.0)(chw), chw)
    assert not np.array_equal(vision.RandomErasing(1.0, value="random")(chw), chw)
    with pytest.raises(ValueError):
        vision.RandomErasing(value="noise")


def test_decoding_and_cropping_in_one() -> None:
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(IMAGE).save(file, "png")
    content = np.frombuffer(file.getvalue(), np.uint8)
    assert vision.RandomCropDecodeResize((9, 8), scale=(0.5, 1.0))(content).shape == (9, 8, 3)


def test_pil_images_stay_pil_images() -> None:
    from PIL import Image

    picture = vision.ToPIL()(IMAGE)
    for transform in (
        vision.RandomCrop(8),
        vision.RandomHorizontalFlip(1.0),
        vision.CenterCrop(8),
        vision.RandomResizedCrop(8),
        vision.Resize(8),
    ):
        assert isinstance(transform(picture), Image.Image)
    assert isinstance(vision.ToTensor()(picture), np.ndarray)


def test_the_old_spellings_are_the_same_transforms() -> None:
    import mindspore.dataset.transforms.c_transforms as old_c
    import mindspore.dataset.transforms.py_transforms as old_py
    import mindspore.dataset.vision.c_transforms as old_vision_c
    import mindspore.dataset.vision.py_transforms as old_vision_py

    assert old_c.TypeCast is transforms.TypeCast and old_vision_c.Resize is vision.Resize
    assert np.array_equal(old_py.OneHotOp(3)(np.array(1)), [0, 1, 0])
    chain = old_py.Compose([old_vision_py.ToPIL(), old_vision_py.ToTensor(), old_vision_py.Normalize((0.5,), (0.5,))])
    assert chain(IMAGE).shape == (3, 24, 20)
    assert max((old_vision_py.Cutout(4)(np.ones((3, 9, 9))) == 0).sum() for _ in range(50)) == 48
    assert callable(old_vision_py.Decode())


def test_less_used_transforms() -> None:
    values, index, count = transforms.Unique()(np.array([[3, 1], [3, 2]]))
    assert (values.tolist(), index.tolist(), count.tolist()) == ([3, 1, 2], [0, 1, 0, 2], [2, 1, 1])
    assert vision.NormalizePad([1.0, 2.0, 3.0], [2.0, 3.0, 4.0])(IMAGE)[..., 3].max() == 0
    assert vision.ConvertColor(vision.ConvertMode.COLOR_RGB2GRAY)(IMAGE).shape == (24, 20)
    assert vision.Resize((8, 9), vision.Inter.PILCUBIC)(IMAGE).shape == (8, 9, 3)
    assert {vision.ImageBatchFormat.NCHW.value, vision.SliceMode.DROP.value, vision.ImageReadMode.COLOR.value} == {1, 2}
    assert transforms.not_random(len if False else lambda image: image).random is False


MORE = {
    "RandomInvert": vision.RandomInvert(),
    "RandomEqualize": vision.RandomEqualize(),
    "RandomAutoContrast": vision.RandomAutoContrast(5.0),
    "RandomPosterize": vision.RandomPosterize((1, 8)),
    "RandomSolarize": vision.RandomSolarize((10, 200)),
    "RandomSharpness": vision.RandomSharpness(),
    "RandomAffine": vision.RandomAffine(20, (-0.1, 0.1, -0.1, 0.1), (0.8, 1.2), (-5, 5)),
    "RandomSelectSubpolicy": vision.RandomSelectSubpolicy(
        [[(vision.Invert(), 0.5)], [(vision.HorizontalFlip(), 0.7), (vision.Posterize(2), 1)]]
    ),
}


@pytest.mark.parametrize("name", MORE)
def test_more_threads_do_not_change_the_numbers(name: str) -> None:
    first = epochs(MORE[name], None, 3)
    assert np.array_equal(first, epochs(MORE[name], 4, 3))
    assert not np.array_equal(first, epochs(MORE[name], None, 4))
    assert first.shape[2:] == IMAGE.shape


def test_affine_without_change_is_the_image() -> None:
    assert np.array_equal(vision.RandomAffine(0)(IMAGE), IMAGE)
    shifted = vision.RandomAffine(0, (0.1, 0.1))(IMAGE)
    assert np.array_equal(shifted[:, 2:], IMAGE[:, :-2]) and (shifted[:, :2] == 0).all()


def test_ranges_are_checked() -> None:
    with pytest.raises(ValueError) as caught:
        vision.RandomPosterize((5, 2))
    assert str(caught.value) == "RandomPosterize(bits=(5, 2)): expected (min, max), the smaller number first."
    with pytest.raises(ValueError):
        vision.RandomSelectSubpolicy([])


@pytest.mark.parametrize("workers", [1, 2])
def test_each_pass_of_a_repeat_draws_anew(workers: int) -> None:
    """`repeat` after `map` gave the pictures of the first pass again and again."""
    pictures = np.arange(20 * 20 * 3, dtype=np.uint8).reshape(1, 20, 20, 3).repeat(4, 0)
    source = ds.NumpySlicesDataset({"picture": pictures}, shuffle=False)
    dataset = source.map(vision.RandomCrop(8), ["picture"], num_parallel_workers=workers)
    corners = [row[0][0, 0, 0].item() for row in dataset.repeat(6).create_tuple_iterator(num_epochs=1, output_numpy=True)]
    assert len({tuple(corners[start : start + 4]) for start in range(0, 24, 4)}) == 6
