"""Image transforms: pipelines, what 2.10 gets wrong, video, functions on Pillow's images, and messages."""

from __future__ import annotations

import io
import multiprocessing
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mindspore.dataset as ds
import mindspore.dataset.vision as vision
import mindspore.dataset.vision.c_transforms as c_vision
import mindspore.dataset.vision.py_transforms as py_vision
import mindspore.dataset.vision.py_transforms_util as util
import numpy as np
import pytest
from PIL import Image
from support.error_messages import without_mindspores_sentence

NOISE = np.random.RandomState(3).randint(0, 256, (23, 31, 3)).astype(np.uint8)
PICTURE = Image.fromarray(NOISE)
NEAREST = vision.Inter.NEAREST
BOXES = np.array([[2, 3, 10, 8, 1], [12, 5, 6, 9, 0]], np.float32)


def test_where_2_10_errs_the_documents_hold() -> None:
    assert vision.ResizedCrop(2, 3, 10, 12, 8)(NOISE).shape == (8, 9, 3)
    assert vision.Rotate(45, fill_value=(1, 2, 3))(NOISE)[0, 0].tolist() == [1, 2, 3]
    assert np.allclose(vision.AdjustGamma(2.0, 0.5)(np.full((2, 2, 3), 0.5, np.float32)), 0.0625)
    boxes = BOXES.copy()
    vision.RandomHorizontalFlipWithBBox(1.0)(NOISE, boxes)
    assert np.array_equal(boxes, BOXES)
    moved = {vision.RandAugment(1, 5)(NOISE).tobytes() for _ in range(300)}
    steps = int(150 / 331 * 31 * 5 / 30)
    right = np.concatenate([np.zeros((23, steps, 3), np.uint8), NOISE[:, :-steps]], 1)
    assert right.tobytes() in moved and bytes(NOISE.nbytes) not in moved


def test_shares_of_cut_mix_and_mix_up_are_those_of_2_10() -> None:
    images = np.stack([np.full((8, 8, 3), 40 * position, np.uint8) for position in range(4)])
    ds.config.set_seed(4)
    cut = [vision.CutMixBatch(vision.ImageBatchFormat.NHWC)(images, np.eye(4, dtype=np.float32)) for _ in range(300)]
    shares = [labels[position, position] for _, labels in cut for position in range(4)]
    assert np.abs(np.quantile(shares, [0.1, 0.25, 0.5, 0.75]) - [0.688, 0.812, 0.938, 1]).max() < 0.08  # 800 draws of 2.10
    for mixed, labels in cut:
        for index in range(4):
            assert (mixed[index, ..., 0] == 40 * index).mean() == pytest.approx(labels[index, index], abs=1e-6)
    mixed, labels = vision.MixUpBatch(0.3)(images, np.eye(4, dtype=np.float32))
    assert np.abs(mixed[:, 0, 0, 0] - labels @ [0.0, 40, 80, 120]).max() < 0.51


def test_mix_up_draws_the_numbers_of_2_10() -> None:
    images = np.stack([np.full((2, 2, 3), 40.0 * index) for index in range(4)])
    np.random.seed(3)
    _, labels = vision.MixUp(4, 0.5)(images, np.eye(4))
    assert labels[[0, 1, 2, 3], [0, 1, 2, 3]].round(6).tolist() == [0.376937, 0.244887, 0.268585, 0.013449]
    mixer = vision.MixUp(4, 0.5, False)
    assert np.array_equal(mixer(images, np.eye(4))[0], images)
    assert not np.array_equal(mixer(images[::-1], np.eye(4))[0], images[::-1])
    state = SimpleNamespace()
    assert util.mix_up_muti(state, 4, images, np.eye(4))[0].shape == images.shape
    assert util.mix_up_single(4, images, np.eye(4))[1].sum() == pytest.approx(4)


def test_boxes_follow_crops() -> None:
    for step in (vision.RandomCropWithBBox(12), vision.RandomResizedCropWithBBox(12, (0.3, 0.6))):
        for _ in range(30):
            image, boxes = step(NOISE, BOXES)
            assert image.shape == (12, 12, 3) and boxes.shape[1] == 5 and (boxes[:, :4] >= 0).all()
            assert (boxes[:, 0] + boxes[:, 2] <= 12.001).all() and (boxes[:, 1] + boxes[:, 3] <= 12.001).all()
    turned, _ = vision.BoundingBoxAugment(vision.HorizontalFlip(), 1.0)(NOISE, BOXES[:1])
    assert np.array_equal(turned[3:11, 2:12], NOISE[3:11, 11:1:-1]) and np.array_equal(turned[12:], NOISE[12:])


def test_pipelines() -> None:
    rows = ds.GeneratorDataset(lambda: iter([(NOISE,)] * 4), ["image"], shuffle=False)
    patched = rows.map(vision.SlicePatches(1, 2), "image", ["left", "right"])
    assert [part.shape for part in next(patched.create_tuple_iterator(output_numpy=True))] == [(23, 16, 3)] * 2
    policy = vision.AutoAugment(vision.AutoAugmentPolicy.SVHN)
    steps = [policy, vision.TrivialAugmentWide(), vision.RandAugment(), vision.RandomLighting(0.1)]
    ds.config.set_seed(2)
    first = [row[0] for row in rows.map(steps, "image", num_parallel_workers=1).create_tuple_iterator(output_numpy=True, num_epochs=1)]
    in_threads = [row[0] for row in rows.map(steps, "image", num_parallel_workers=3).create_tuple_iterator(output_numpy=True, num_epochs=1)]
    assert np.array_equal(first, in_threads) and first[0].dtype == np.uint8
    policy = vision.AutoAugment(vision.AutoAugmentPolicy.CIFAR10)
    assert len({policy(NOISE).tobytes() for _ in range(60)}) > 20


def test_an_ascend_is_not_needed() -> None:
    step = vision.Resize((5, 6))
    assert step.device("Ascend") is step and np.array_equal(step(NOISE), vision.Resize((5, 6))(NOISE))


def test_old_names() -> None:
    file = vision.encode_jpeg(NOISE)
    assert c_vision.SoftDvppDecodeResizeJpeg((8, 9))(file).shape == (8, 9, 3)
    assert c_vision.SoftDvppDecodeRandomCropResizeJpeg((8, 9))(file).shape == (8, 9, 3)
    assert np.array_equal(c_vision.RgbToBgr()(NOISE), NOISE[..., ::-1])
    assert np.array_equal(py_vision.RgbToBgr(True)(NOISE), NOISE[..., ::-1])
    assert py_vision.Compose([py_vision.ToTensor()])(PICTURE).shape == (3, 23, 31)
    assert vision.not_random(lambda image: image).random is False


UTIL: dict[str, tuple[Any, ...]] = {
    "adjust_brightness": (1.5,), "adjust_contrast": (1.5,), "adjust_saturation": (1.5,), "adjust_hue": (0.2,), "adjust_gamma": (2.0, 1.0),
    "auto_contrast": (5, [3]), "equalize": (), "invert_color": (), "grayscale": (3,), "horizontal_flip": (), "vertical_flip": (),
    "pad": (0, 0, "constant"), "rotate": (30, NEAREST, False, None, 0), "random_affine": (9, (1, 2), 1.0, (3, 2), NEAREST),
    "random_color": ((0.5, 1.5),), "random_color_adjust": (0.3, 0.3, 0.3, 0.1), "random_horizontal_flip": (0.5,), "random_lighting": (0.1,),
    "random_vertical_flip": (0.5,), "random_rotation": (20, NEAREST, False, None, 0), "random_sharpness": ((0.5, 1.5),),
    "random_crop": ((23, 31), 0, False, 0, "constant"), "random_resize_crop": ((23, 31), (0.5, 1.0), (0.5, 2.0)), "resize": (23,),
    "center_crop": ((23, 31),), "crop": (0, 0, 23, 31),
    "perspective": ([[0, 0], [30, 0], [30, 22], [0, 22]], [[3, 2], [25, 4], [29, 20], [2, 18]]), "to_pil": (),
}


@pytest.mark.parametrize("name", UTIL)
def test_functions_on_pictures(name: str) -> None:
    result = getattr(util, name)(PICTURE, *UTIL[name])
    assert util.is_pil(result) and result.size == PICTURE.size and result.mode == "RGB"
    if name not in ("to_pil",):
        with pytest.raises(TypeError, match=f"expected an image of Pillow, got {type(NOISE).__name__}"):
            getattr(util, name)(NOISE, *UTIL[name])


def test_functions_on_arrays() -> None:
    planes = util.to_tensor(PICTURE, np.float32)
    assert util.is_numpy(planes) and np.allclose(util.normalize(planes, [0.5] * 3, [0.5] * 3), planes * 2 - 1, atol=1e-6)
    assert util.normalize(planes, [0.5] * 3, [0.5] * 3, True).shape == (4, 23, 31)
    assert util.to_type(planes, np.float16).dtype == np.float16
    top, left, high, wide, value = util.get_erase_params(planes, (0.02, 0.3), (0.3, 3), 0, True, 10)
    assert (util.erase(planes, top, left, high, wide, value) == 0).sum() >= high * wide * 3
    assert util.linear_transform(planes[:, :1, :2], np.eye(6), np.zeros(6)).shape == (3, 1, 2)
    assert np.allclose(util.hsv_to_rgbs(util.rgb_to_hsvs(planes, False), False), planes, atol=1e-6)
    assert np.array_equal(util.rgb_to_bgrs(planes, False), planes[::-1])
    assert len(util.five_crop(PICTURE, 5)) == 5 and len(util.ten_crop(PICTURE, 5)) == 10
    assert util.uniform_augment(planes, [lambda image: image], 1) is planes
    assert util.decode(vision.encode_png(NOISE).tobytes()).size == PICTURE.size
    starts, ends = util.get_perspective_params(PICTURE, 0.5)
    assert starts[2] == (30, 22) and len(ends) == 4


def video(path: Path) -> str:
    av = pytest.importorskip("av")
    with av.open(str(path), "w") as file:
        stream = file.add_stream("mpeg4", rate=5)
        stream.width, stream.height, stream.pix_fmt = 32, 24, "yuv420p"
        sound = file.add_stream("pcm_s16le", rate=8000, layout="mono")
        for index in range(6):
            frame = av.VideoFrame.from_ndarray(np.full((24, 32, 3), 40 * index, np.uint8), format="rgb24")
            frame.pts = index
            file.mux(stream.encode(frame))
        samples = av.AudioFrame.from_ndarray((np.sin(np.arange(8000) / 20) * 9000).astype(np.int16)[None], format="s16", layout="mono")
        samples.sample_rate, samples.pts = 8000, 0
        file.mux(sound.encode(samples))
        file.mux(stream.encode(None))
        file.mux(sound.encode(None))
    return str(path)


def test_videos(tmp_path: Path) -> None:
    path = video(tmp_path / "a.avi")
    frames, sound, rates = vision.read_video(path)
    assert (frames.shape, frames.dtype, sound.shape, sound.dtype) == ((6, 24, 32, 3), np.uint8, (1, 8000), np.int16)
    assert rates == {"audio_fps": 8000, "video_fps": 5.0} and np.abs(frames[:, 5, 5, 0].astype(int) - np.arange(6) * 40).max() <= 4
    # As 2.10 cuts a file of the same rates.
    for words, frame_count, samples in (((1, 3), 3, 4000), ((2, 2), 1, 1333), ((0.2, 0.5, "sec"), 3, 4000), ((0.3, None, "sec"), 4, 5333)):
        frames, sound, _ = vision.read_video(path, *words)
        assert (len(frames), sound.shape[1]) == (frame_count, samples)
    assert vision.read_video_timestamps(path) == ([0, 1, 2, 3, 4, 5], 5.0)
    assert vision.read_video_timestamps(path, "sec")[0][1] == 0.20000000298023224
    decoded = vision.DecodeVideo()(np.fromfile(path, np.uint8))
    assert [part.shape for part in decoded] == [(6, 24, 32, 3), (1, 8000)]
    decoder = vision.VideoDecoder(path)
    assert decoder.get_frames_at([0, 3]).shape == (2, 24, 32, 3) and decoder.metadata["num_frames"] == 6
    assert np.array_equal(decoder.get_frames_at([5, 0]), vision.read_video(path)[0][[5, 0]])
    with pytest.raises(ValueError):
        decoder.get_frames_at([6])


def test_a_process_that_is_forked_after_decoding_ends(tmp_path: Path) -> None:
    """PyAV's converter of a thread that still exists would wait for its threads in the child (`_RgbConverter`)."""
    path, is_decoded, can_end = video(tmp_path / "a.avi"), threading.Event(), threading.Event()

    def decode() -> None:
        vision.read_video(path)
        vision.VideoDecoder(path).get_frames_at([0])
        is_decoded.set()
        can_end.wait()

    thread = threading.Thread(target=decode)
    thread.start()
    assert is_decoded.wait(60)
    child = multiprocessing.get_context("fork").Process(target=int)
    child.start()
    child.join(20)
    can_end.set()
    thread.join()
    assert child.exitcode == 0
    child.close()


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(ImportError) as caught:
        vision.read_video(__file__)
    assert str(caught.value).endswith('expected the library av (PyAV).\n\nhint: write pip install "torchspore[video]".')


MESSAGES: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "affine": (
        lambda: vision.Affine(200, [0, 0], 1.0, 0.0), ValueError, "Affine(degrees=200): expected a number from -180 to 180.",
    ),
    "boxes": (
        lambda: vision.ResizeWithBBox(5)(NOISE, BOXES * 3), RuntimeError,
        "ResizeWithBBox with boxes [[6.0, 9.0, 30.0, 24.0], [36.0, 15.0, 18.0, 27.0]]: expected boxes inside the image 23x31.",
    ),
    "labels": (
        lambda: vision.MixUpBatch()(NOISE[None], np.array([1])), RuntimeError,
        "MixUpBatch with labels [1]: expected one-hot labels (1, classes).\n\nhint: put OneHot(num_classes) before the batch.",
    ),
    "pillow": (
        lambda: vision.FiveCrop(5)(NOISE), TypeError, "FiveCrop of ndarray: expected a PIL image.\n\nhint: put ToPIL() first.",
    ),
    "file": (lambda: vision.read_image("no.png"), RuntimeError, "read_image('no.png'): expected an existing file."),
    "size": (
        lambda: vision.PadToSize(5)(NOISE), RuntimeError,
        "PadToSize((5, 5), None) of an image 23x31: expected a size that is not smaller.",
    ),
}


@pytest.mark.parametrize("name", MESSAGES)
def test_messages(name: str) -> None:
    call, kind, expected = MESSAGES[name]
    with pytest.raises(kind) as caught:
        call()
    assert without_mindspores_sentence(str(caught.value)).endswith(expected)


def test_pictures_for_print_have_the_pixels_of_2_10() -> None:
    """Measured: what the inks leave of the light, multiplied and cut off; files of Adobe's programs store that, others the inks."""
    inks = np.random.RandomState(0).randint(0, 256, (4, 5, 4)).astype(np.uint8).repeat(8, 0).repeat(8, 1)
    file = io.BytesIO()
    Image.fromarray(inks, "CMYK").save(file, "JPEG", quality=95)
    adobe = file.getvalue()
    mark = adobe.index(b"\xff\xee")
    plain = adobe[:mark] + adobe[mark + 2 + int.from_bytes(adobe[mark + 2 : mark + 4], "big") :]
    for encoded, around in ((adobe, True), (plain, False)):
        raw = np.asarray(Image.open(io.BytesIO(encoded))).astype(int)
        light = 255 - raw if around else raw
        result = vision.Decode()(np.frombuffer(encoded, np.uint8))
        assert result.dtype == np.uint8 and result.tolist() == (light[..., :3] * light[..., 3:] // 255).tolist()


def test_a_picture_without_the_mark_of_its_end() -> None:
    file = io.BytesIO()
    Image.fromarray(np.arange(48 * 3, dtype=np.uint8).reshape(6, 8, 3)).save(file, "JPEG")
    content = np.frombuffer(file.getvalue(), np.uint8)
    for lacking in (1, 2):
        assert vision.Decode()(content[:-lacking]).tolist() == vision.Decode()(content).tolist()
    with pytest.raises(RuntimeError, match="expected the bytes of an image file"):
        vision.Decode()(content[: len(content) // 2])


def test_to_tensor_has_the_bits_of_2_10() -> None:
    """It multiplies by 1/255: divided, half the values have another last bit."""
    values = np.arange(256, dtype=np.uint8).reshape(16, 16, 1)
    expected = (values.transpose(2, 0, 1).astype(np.float32) * np.float32(1 / 255)).tobytes()
    assert vision.ToTensor()(values).tobytes() == expected
    rows = ds.NumpySlicesDataset(values[None].repeat(40, 0), ["n"], shuffle=False).map([vision.ToTensor()], ["n"])
    assert {row[0].tobytes() for row in rows.create_tuple_iterator(num_epochs=1, output_numpy=True)} == {expected}


def test_hues_of_floats_turn_as_those_of_bytes() -> None:
    image = np.random.default_rng(0).integers(0, 256, (6, 7, 3)).astype(np.uint8)
    turned = vision.AdjustHue(0.3)(image) / 255
    np.testing.assert_allclose(vision.AdjustHue(0.3)((image / 255).astype(np.float32)), turned, atol=0.03)


@pytest.mark.parametrize(("name", "dtype", "text"), [
    ("AdjustContrast", "float64", "AdjustContrast of float64: expected an image of uint8 or uint16 or float32."),
    ("AdjustSaturation", "int32", "AdjustSaturation of int32: expected an image of uint8 or uint16 or float32."),
    ("AdjustHue", "uint16", "AdjustHue of uint16: expected an image of uint8 or float32."),
])
def test_dtypes_that_colours_are_not_adjusted_in(name: str, dtype: str, text: str) -> None:
    with pytest.raises(RuntimeError) as caught:
        getattr(vision, name)(0.3)(np.ones((4, 5, 3), dtype))
    assert str(caught.value).endswith(text)


def test_gamma_of_numbers_has_mindspores_pixels() -> None:
    picture = np.random.RandomState(0).rand(3, 4, 3)
    for dtype in (np.float32, np.float16, np.float64):
        result = vision.AdjustGamma(2.0, 1.5)(picture.astype(dtype))
        assert result.dtype == np.float32
        np.testing.assert_allclose(result.ravel()[:5], [0.678, 1.0, 0.817, 0.668, 0.404], atol=1e-3)


def test_a_picture_with_damage_that_looks_like_a_frame_of_four_colours() -> None:
    """Where a mark is damaged, readers look for the next one: what follows by the damaged one's length is not the picture's frame."""
    from mindspore.dataset.vision import images

    file = io.BytesIO()
    Image.fromarray(np.random.RandomState(1).randint(0, 256, (16, 24, 3)).astype(np.uint8)).save(file, "JPEG")
    content = file.getvalue()
    frame = b"\xff\xc0" + (20).to_bytes(2, "big") + b"\x08\x00\x10\x00\x18\x04" + bytes(12)
    damaged = content[:2] + b"\xff\x00" + len(content).to_bytes(2, "big") + content[2:] + frame
    assert images._frame(damaged) is None and images._frame(content) == (16 * 24, 3)
    result = vision.Decode()(np.frombuffer(damaged, np.uint8))
    assert result.tolist() == vision.Decode()(np.frombuffer(content, np.uint8)).tolist()
