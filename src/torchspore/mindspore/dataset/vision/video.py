"""Video files, by the library PyAV (`av`), which is imported on use."""
from __future__ import annotations

import io
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from torchspore.base.text import message, short, with_type
from torchspore.mindspore.dataset.core.operation import TensorOperation
from torchspore.mindspore.dataset.core.validator_helpers import check_int, check_type, with_sentence


def _library(call: str) -> Any:
    try:
        import av
    except ImportError:
        raise ImportError(message(call, "the library av (PyAV)", hint='write pip install "torchspore[video]"')) from None
    return av


def _check_file(call: str, filename: Any, error: type[Exception] = ValueError) -> None:
    check_type(call, "filename", filename, str, "a path")
    if not Path(filename).is_file():
        text = message(f"{call}({filename!r})", "an existing video file")
        raise error(with_sentence(text, f"Invalid file path, {filename} does not exist."))


def _check_kind(name: str, value: Any, types: tuple[type, ...], expected: str, call: str = "read_video") -> None:
    """Raises TypeError for a value of another type, with MindSpore's sentence for videos."""
    if not isinstance(value, types) or isinstance(value, bool):
        text = message(f"{call}({name}={short(value)})", with_type(expected, value))
        raise TypeError(with_sentence(text, f"Input {name} is not of type {list(types)}, but got: {type(value)}."))


class _RgbConverter:
    """Converts frames to RGB, (H, W, 3) uint8, in the thread that calls it.

    `frame.to_ndarray(format="rgb24")` is not used: since version 19 PyAV stores a converter for each thread of the program, and a
    converter has threads. A process that is forked later frees it, waits for threads that only its parent has, and never ends.
    """

    def __init__(self, av: Any) -> None:
        self._reformatter = av.video.reformatter.VideoReformatter()
        self._options = {"threads": 1} if int(av.__version__.partition(".")[0]) >= 17 else {}

    def convert(self, frame: Any) -> np.ndarray:
        """Return the pixels of a frame."""
        return self._reformatter.reformat(frame, format="rgb24", **self._options).to_ndarray()


class _Read:
    """The content of a file: frames (T, H, W, 3) and their times, sound (C, L), frame rate and sample rate."""

    def __init__(self, call: str, source: Any, with_sound: bool = True, with_pictures: bool = True) -> None:
        av = _library(call)
        converter = _RgbConverter(av)
        frames, sounds = [], []
        self.times: list[int] = []
        try:
            with av.open(source) as container:
                if not container.streams.video:
                    raise RuntimeError(message(call, "a file with a video stream"))
                video = container.streams.video[0]
                self.base, self.rate = video.time_base, float(video.average_rate or 0)
                self.size = video.width, video.height
                sound = container.streams.audio[0] if container.streams.audio and with_sound else None
                for frame in container.decode(*[stream for stream in (video, sound) if stream is not None]):
                    if isinstance(frame, av.VideoFrame):
                        self.times.append(frame.pts)
                        if with_pictures:
                            frames.append(converter.convert(frame))
                    else:
                        sounds.append(_samples(frame))
                self.sound_rate = sound.rate if sound is not None else None
        except av.FFmpegError as error:
            raise RuntimeError(message(call, f"a video that can be decoded ({error.strerror})")) from None
        order = np.argsort(self.times, kind="stable")
        self.times = [self.times[index] for index in order]
        self.frames = np.stack([frames[index] for index in order]) if frames else np.zeros((0, 0, 0, 3), np.uint8)
        self.sound = np.concatenate(sounds, 1) if sounds else np.zeros((1, 0), np.float32)


def _samples(frame: Any) -> np.ndarray:
    array = frame.to_ndarray()
    return array if frame.format.is_planar else array.reshape(-1, frame.layout.nb_channels).T


def read_video(
    filename: Any, start_pts: float | Fraction = 0, end_pts: float | Fraction | None = None, pts_unit: str = "pts"
) -> tuple[np.ndarray, np.ndarray, dict[str, Any]]:
    """Reads the frames (T, H, W, 3) uint8 and the sound (C, L) of a video file from one time to another, and its rates.

    Times are in the file's units ("pts") or in seconds ("sec"); the sound is cut in the same proportions as the frames.
    """
    _check_kind("filename", filename, (str,), "a path")
    for name, time in (("start_pts", start_pts), ("end_pts", end_pts)):
        if time is not None or name == "start_pts":
            _check_kind(name, time, (int, float, Fraction), "a number")
    _check_kind("pts_unit", pts_unit, (str,), "'pts' or 'sec'")
    _check_file("read_video", filename)
    if pts_unit not in ("pts", "sec"):
        text = message(f"read_video(pts_unit={short(pts_unit)})", "'pts' or 'sec'")
        raise ValueError(with_sentence(text, f"Not supported pts_unit for {pts_unit}."))
    if start_pts < 0 or (end_pts is not None and end_pts < start_pts):
        subject = f"read_video(start_pts={start_pts!r}, end_pts={end_pts!r})"
        text = message(subject, "a start from 0 on and an end that is not before it")
        shown = f"start_pts for {start_pts}" if start_pts < 0 else f"end_pts for {end_pts}"
        raise ValueError(with_sentence(text, f"Not supported {shown}."))
    read = _Read(f"read_video({filename!r})", filename)
    unit = float(read.base) if pts_unit == "sec" else 1.0
    last = math.inf if end_pts is None else math.ceil(end_pts / unit - 1e-9)
    selected = [index for index, time in enumerate(read.times) if start_pts / unit - 1e-9 <= time <= last]
    first, count, num_frames = selected[0] if selected else 0, len(selected), max(len(read.times), 1)
    samples = read.sound.shape[1]
    start = samples * first // num_frames
    rates: dict[str, Any] = {} if read.sound_rate is None else {"audio_fps": read.sound_rate}
    sound = np.ascontiguousarray(read.sound[:, start : start + samples * count // num_frames])
    return read.frames[selected], sound, {**rates, "video_fps": read.rate}


def read_video_timestamps(filename: Any, pts_unit: str = "pts") -> tuple[list[Any], float]:
    """Returns the time of each frame of a video file, in the file's units ("pts") or in seconds ("sec"), and the frame rate."""
    call = "read_video_timestamps"
    _check_kind("filename", filename, (str,), "a path", call)
    _check_kind("pts_unit", pts_unit, (str,), "'pts' or 'sec'", call)
    if pts_unit not in ("pts", "sec"):
        text = message(f"{call}(pts_unit={pts_unit!r})", "'pts' or 'sec'")
        raise RuntimeError(with_sentence(text, f"Not supported pts_unit for {pts_unit}."))
    _check_file(call, filename, RuntimeError)
    read = _Read(f"read_video_timestamps({filename!r})", filename, False, False)
    return ([float(np.float32(time * read.base)) for time in read.times] if pts_unit == "sec" else read.times), read.rate


class DecodeVideo(TensorOperation):
    """Decodes the frames (T, H, W, 3) and the sound (C, L) from the bytes of a video file."""

    def _apply_all(self, *values: Any) -> tuple[Any, ...]:
        if len(values) != 1 or values[0].ndim != 1 or values[0].dtype != np.uint8 or not values[0].size:
            shown = [f"{value.dtype} {list(value.shape)}" for value in values]
            raise RuntimeError(message(f"DecodeVideo of {', '.join(shown)}", "the bytes of a file: uint8 with one axis"))
        read = _Read("DecodeVideo", io.BytesIO(values[0].tobytes()))
        return read.frames, read.sound


class VideoDecoder:
    """The frames of one video file, by number; `metadata` has its size, frames and rate."""

    def __init__(self, source: Any) -> None:
        check_type("VideoDecoder", "source", source, str, "a path")
        if not Path(source).is_file():
            raise ValueError(message(f"VideoDecoder({source!r})", "an existing video file"))
        self.source = source
        self._read = _Read(f"VideoDecoder({short(source)})", source, with_sound=False, with_pictures=False)

    @property
    def metadata(self) -> dict[str, Any]:
        """Returns the width and height, the number of frames, the frame rate, and the duration."""
        (width, height), count, rate = self._read.size, len(self._read.times), self._read.rate
        duration = count / rate if rate else 0.0
        return {"width": width, "height": height, "num_frames": count, "average_fps": rate, "duration_seconds": duration}

    def get_frames_at(self, indices: Any) -> np.ndarray:
        """Returns the frames of these numbers, (T, H, W, 3) uint8."""
        check_type("get_frames_at", "indices", indices, list, "a list of ints")
        for index in indices:
            check_int("get_frames_at", "indices", index, 0, len(self._read.times) - 1)
        requested_times = {self._read.times[index] for index in indices}
        frames_by_time = {}
        av = _library("get_frames_at")
        converter = _RgbConverter(av)
        with av.open(self.source) as container:
            for frame in container.decode(container.streams.video[0]):
                if frame.pts in requested_times:
                    frames_by_time[frame.pts] = converter.convert(frame)
                if len(frames_by_time) == len(requested_times):
                    break
        width, height = self._read.size
        frames = [frames_by_time[self._read.times[index]] for index in indices]
        return np.stack(frames) if frames else np.zeros((0, height, width, 3), np.uint8)
