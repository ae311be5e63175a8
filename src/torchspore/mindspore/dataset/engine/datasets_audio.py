"""Sources of speech and music: transcripts, and 16-bit samples as float32."""
from __future__ import annotations

import io
import wave
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from torchspore.base.text import message, short
from torchspore.errors import DataDamaged
from torchspore.mindspore.dataset.engine.dataset import AudioBaseDataset
from torchspore.mindspore.dataset.engine.declarations import ListedDataset, damaged, folder_of, folders, lines, read_file, text_lines
from torchspore.mindspore.dataset.engine.rows import Row
from torchspore.public_names import missing

_LARGEST = 32767
"""MindSpore's divisor of samples."""


def read_wave(path: Path) -> tuple[np.ndarray, int]:
    """Return the samples of a WAV file, (1, N) float32, and the sample rate. Raises DataMissing, DataDamaged, which name the file.

    Python's `wave` reads it: these data sets are 16-bit PCM, so that no codec library is needed. Channels alternate sample by sample, as in
    MindSpore.
    """
    content = read_file(path)
    try:
        with wave.open(io.BytesIO(content)) as file:
            width, rate, count = file.getsampwidth(), file.getframerate(), file.getnframes() * file.getnchannels()
            data = file.readframes(file.getnframes())
    except (wave.Error, EOFError, ValueError) as error:
        raise DataDamaged(message(f"{path}: {error!s:.100}", "a WAV file of 16-bit PCM")) from None
    if width != 2:
        raise DataDamaged(message(f"{path}: samples of {8 * width} bits", "a WAV file of 16-bit PCM"))
    if len(data) != 2 * count:
        raise DataDamaged(message(f"{path}: {len(data) // 2} samples", f"{count}, as its header states; the file is truncated"))
    return _floats(np.frombuffer(data, "<i2")), rate


def _floats(samples: np.ndarray) -> np.ndarray:
    return (samples.astype(np.float32) / np.float32(_LARGEST)).reshape(1, -1)


class SoundDataset(ListedDataset, AudioBaseDataset):
    """A source of WAV files: waveform (1, N) float32, sample_rate (), and the fields of an entry apart from its path."""

    _rate_type: ClassVar[Any] = np.int32

    def _row(self, entry: Any) -> Row:
        path, *more = entry
        samples, rate = read_wave(path)
        return (samples, np.array(rate, self._rate_type), *(np.array(field) for field in more))


class CMUArcticDataset(SoundDataset, arguments="dataset_dir, name=None, ROWS, CHOICE"):
    """CMU's recordings of one speaker: waveform, sample_rate () uint32, transcript and utterance_id (such as 'a0001')."""

    choices = {
        "name": (
            "aew", "ahw", "aup", "awb", "axb", "bdl", "clb", "eey", "fem", "gka", "jmk", "ksp", "ljm", "lnh", "rms", "rxr", "slp", "slt",
        ),
    }
    columns = ("waveform", "sample_rate", "transcript", "utterance_id")
    name: str
    _rate_type = np.uint32

    def _list(self) -> Sequence[Any]:
        folder = folder_of(self.dataset_dir / f"cmu_us_{self.name}_arctic")
        path = folder / "etc/txt.done.data"
        entries = []
        for number, line in lines(path):
            parts = line.split('"')
            words = parts[0].split()
            if len(parts) < 3 or len(words) != 2 or not words[1].startswith("arctic_"):
                raise damaged(path, number, line, '( arctic_a0001 "text" )')
            entries.append((folder / f"wav/{words[1]}.wav", parts[1], words[1].removeprefix("arctic_")))
        return entries


class GTZANDataset(SoundDataset, arguments="dataset_dir, usage=None, ROWS, CHOICE"):
    """GTZAN's pieces of music: waveform, sample_rate () uint32 and label, the genre; in order of their names.

    `usage` is 'train', 'valid' or 'test', the split without pieces that repeat an artist, or 'all' (None).
    """

    choices = {"usage": ("all", "train", "valid", "test")}
    columns = ("waveform", "sample_rate", "label")
    _rate_type = np.uint32

    def _list(self) -> Sequence[Any]:
        entries = []
        for genre in folders(self.dataset_dir):
            for path in sorted(genre.glob(f"{genre.name}.*.wav")):
                number = path.name.split(".")[1]
                if self.usage == "all" or (number.isdigit() and int(number) in _numbers(genre.name, self.usage)):
                    entries.append((path, genre.name))
        return entries


class LibriTTSDataset(SoundDataset, arguments="dataset_dir, usage=None, ROWS, CHOICE"):
    """LibriTTS: waveform, sample_rate () uint32, original_text, normalized_text, speaker_id and chapter_id () uint32, utterance_id.

    `usage` is one of its parts, such as 'dev-clean', or 'all' (None): those that are there.
    """

    choices = {
        "usage": (
            "all", "dev-clean", "dev-other", "test-clean", "test-other", "train-clean-100", "train-clean-360", "train-other-500",
        ),
    }
    columns = ("waveform", "sample_rate", "original_text", "normalized_text", "speaker_id", "chapter_id", "utterance_id")
    _rate_type = np.uint32

    def _list(self) -> Sequence[Any]:
        if self.usage != "all":
            return list(self._part(self.dataset_dir / self.usage))
        folders_of_parts = [self.dataset_dir / name for name in self.choices["usage"][1:]]
        return [entry for part in folders_of_parts if part.is_dir() for entry in self._part(part)]

    @staticmethod
    def _part(folder: Path) -> Iterator[Any]:
        for speaker in folders(folder):
            for chapter in folders(speaker):
                path = chapter / f"{speaker.name}_{chapter.name}.trans.tsv"
                if not speaker.name.isdigit() or not chapter.name.isdigit():
                    raise DataDamaged(message(str(chapter), "the number of a speaker and of a chapter as names of folders"))
                numbers = np.uint32(int(speaker.name)), np.uint32(int(chapter.name))
                for number, line in lines(path):
                    parts = line.split("\t")
                    if len(parts) != 3:
                        raise damaged(path, number, line, "an utterance, its text and its normal text, with tabs between them")
                    yield chapter / f"{parts[0]}.wav", parts[1], parts[2], *numbers, parts[0]


class LJSpeechDataset(SoundDataset, arguments="dataset_dir, ROWS, CHOICE"):
    """LJ's readings in the order of `metadata.csv`: waveform, sample_rate () int32, transcription and normalized_transcription."""

    columns = ("waveform", "sample_rate", "transcription", "normalized_transcription")

    def _list(self) -> Sequence[Any]:
        path = self.dataset_dir / "metadata.csv"
        entries = []
        for number, line in lines(path):
            parts = line.split("|")
            if len(parts) != 3:
                raise damaged(path, number, line, "a name, a text and a normal text with '|' between them")
            entries.append((self.dataset_dir / f"wavs/{parts[0]}.wav", parts[1], parts[2]))
        return entries


class SpeechCommandsDataset(SoundDataset, arguments="dataset_dir, usage=None, ROWS, CHOICE"):
    """Spoken words in order of their names: waveform, sample_rate () int32, label, speaker_id and utterance_number () int32.

    `usage` is 'test' or 'valid', the files that `testing_list.txt` and `validation_list.txt` name, 'train', all others, or 'all' (None).
    """

    choices = {"usage": ("all", "train", "test", "valid")}
    columns = ("waveform", "sample_rate", "label", "speaker_id", "utterance_number")

    def _list(self) -> Sequence[Any]:
        names = {"test": "testing_list.txt", "valid": "validation_list.txt"}
        named = {part: {line.strip() for _, line in lines(self.dataset_dir / name)} for part, name in names.items() if self.usage != "all"}
        entries = []
        for folder in folders(self.dataset_dir):
            if folder.name != "_background_noise_":
                for path in sorted(folder.glob("*.wav")):
                    name = f"{folder.name}/{path.name}"
                    part = next((part for part, names_of_part in named.items() if name in names_of_part), "train")
                    speaker, mark, number = path.stem.partition("_nohash_")
                    if not mark or not number.isdigit():
                        raise DataDamaged(message(str(path), "a name such as b433eff_nohash_0.wav"))
                    if self.usage in (part, "all"):
                        entries.append((path, folder.name, speaker, np.int32(int(number))))
        return entries


class YesNoDataset(SoundDataset, arguments="dataset_dir, ROWS, CHOICE"):
    """Recordings of eight words in order of their names: waveform, sample_rate () int32 and label (8,) int32, 1 for yes, 0 for no."""

    columns = ("waveform", "sample_rate", "label")

    def _list(self) -> Sequence[Any]:
        entries = []
        for path in sorted(self.dataset_dir.glob("*.wav")):
            words = path.stem.split("_")
            if not set(words) <= {"0", "1"}:
                raise DataDamaged(message(str(path), "a name of zeros and ones, such as 1_1_0_0_1_1_0_0.wav"))
            entries.append((path, np.array(words, np.int32)))
        return entries


class TedliumDataset(ListedDataset, AudioBaseDataset, arguments="dataset_dir, release, usage=None, extensions=None, ROWS, CHOICE"):
    """TED-LIUM's talks: waveform (1, N) float32, sample_rate () int32, transcript, talk_id, speaker_id and identifier.

    `release` is 'release1' or 'release2', with a `usage` of 'train', 'test', 'dev' or 'all' (None), or 'release3', which has 'all' alone.
    Rows are the first parts of all talks, then the second ones, and so on, as MindSpore has them.
    """

    choices = {"release": ("release1", "release2", "release3"), "usage": ("all", "train", "test", "dev"), "extensions": (".sph",)}
    columns = ("waveform", "sample_rate", "transcript", "talk_id", "speaker_id", "identifier")
    release: str

    def _check(self) -> None:
        if self.release == "release3" and self.usage != "all":
            raise ValueError(message(f"TedliumDataset(release='release3', usage={self.usage!r})", "usage='all'"))

    def _list(self) -> Sequence[Any]:
        parts = ["data"] if self.release == "release3" else [part for part in ("train", "test", "dev") if self.usage in (part, "all")]
        entries: list[Any] = []
        for order, part in enumerate(parts):
            for path in sorted(folder_of(self.dataset_dir / part / "stm").glob("*.stm")):
                sound = self.dataset_dir / part / f"sph/{path.stem}.sph"
                for position, (number, line) in enumerate(text_lines(path)):
                    words = line.split(maxsplit=6)
                    try:
                        talk, _, speaker, start, stop, identifier, text = words
                        order_key = (position, path.stem, order)
                        entries.append((order_key, sound, float(start), float(stop), text.strip(), talk, speaker, identifier))
                    except ValueError:
                        raise damaged(path, number, line, "a talk, a channel, a speaker, two times, an identifier and a text") from None
        return [entry[1:] for entry in sorted(entries, key=lambda entry: entry[0])]

    def _row(self, entry: Any) -> Row:
        path, start, stop, *texts = entry
        samples, rate = read_sphere(path, start, stop)
        return (samples, np.array(rate, np.int32), *(np.array(text) for text in texts))


def read_sphere(path: Path, start: float, stop: float) -> tuple[np.ndarray, int]:
    """Return the samples from `start` to `stop` (seconds) of a NIST SPHERE file, (1, N) float32, and the sample rate.

    Only these bytes are read. Raises DataMissing, DataDamaged, which name the file.
    """
    if not path.is_file():
        read_file(path)                               # raises, and names the file
    with path.open("rb") as file:
        head = file.read(1024)
        header = dict(line.split(maxsplit=2)[::2] for line in head.decode("latin-1").splitlines() if line.count(" ") >= 2 and "-" in line)
        try:
            rate, count, order = int(header["sample_rate"]), int(header["sample_count"]), header.get("sample_byte_format", "01")
            size = int(head[8:16])
            if not head.startswith(b"NIST_1A") or header.get("sample_n_bytes", "2") != "2" or header.get("sample_coding", "pcm") != "pcm":
                raise ValueError
        except (KeyError, ValueError):
            raise DataDamaged(message(f"{path}: head {short(head[:16])}", "a NIST SPHERE file of 16-bit PCM")) from None
        first, last = int(start * rate), int(stop * rate)
        if not 0 <= first <= last <= count:
            raise DataDamaged(message(f"{path}: samples {first} to {last}", f"samples of {count}, as the list of parts has them"))
        file.seek(size + 2 * first)
        data = file.read(2 * (last - first))
    if len(data) != 2 * (last - first):
        raise DataDamaged(message(f"{path}: ends within sample {first + len(data) // 2}", f"{count} samples; the file is truncated"))
    return _floats(np.frombuffer(data, "<i2" if order == "01" else ">i2")), rate


def _numbers(genre: str, usage: str) -> set[int]:
    """Return the numbers of the pieces of a genre that belong to a part of GTZAN."""
    numbers: set[int] = set()
    for words in _GTZAN.get(genre, {}).get(usage, "").split():
        first, _, last = words.partition("-")
        numbers.update(range(int(first), int(last or first) + 1))
    return numbers


_GTZAN = {
    "blues": {
        "train": "29-49 73-97",
        "valid": "0-11 50-60",
        "test": "12-28 61-72 98-99",
    },
    "classical": {
        "train": "30-33 43-48 50-67 80-99",
        "valid": "0-10 68-76",
        "test": "11-29 34-41 49 77-79",
    },
    "country": {
        "train": "19-26 28-29 65-99",
        "valid": "0-7 9-18 27 41-42 45 49",
        "test": "30-40 43-44 46-48 50-51 53-64",
    },
    "disco": {
        "train": "5 15-20 22-37 39-45 47 49 53-54 56-57 59 61 70 73-74 89",
        "valid": "0 2-4 6-14 46 48 52 67-68 72 75 90 95",
        "test": "1 21 58 62-66 69 76-88 91-94 96-97 99",
    },
    "hiphop": {
        "train": "2-25 28-29 31-38 41-42 55-61 77-80",
        "valid": "81-98",
        "test": "0 26-27 30 40 43-45 51-54 62-75 99",
    },
    "jazz": {
        "train": "0-1 11-24 41 47-72",
        "valid": "2-10 25-32",
        "test": "73-99",
    },
    "metal": {
        "train": "2-3 5 21 24 35 46-57 59-66 69 71-72 79-80 84 86 89-99",
        "valid": "0-1 6-11 16-20 36-37 68 76-77 81-82",
        "test": "12-15 22-23 25-33 38-39 67 70 73-75 78 83 85 87-88",
    },
    "pop": {
        "train": "2-9 11-12 16-20 23-29 31-36 38-42 44 46 49-50 80 97-99",
        "valid": "10 53 55 58-62 81 83-86",
        "test": "0-1 13-14 43 63-66 69-79 82 88-96",
    },
    "reggae": {
        "train": "0-2 4 6 9 11-12 14-32 42-45 49-51 54-60 63 69",
        "valid": "61-62 70 72 74 76-78 85 92-99",
        "test": "34-40 46-48 52-53 64-68 71 79 82-84 87-90",
    },
    "rock": {
        "train": "0-9 16-26 57-70 91-99",
        "valid": "38 49-56 71-85",
        "test": "10-15 27-37 39-48 86-90",
    },
}
"""The pieces of each genre in the parts of GTZAN that are free of repeated recordings and artists."""


__getattr__ = missing(__name__)
