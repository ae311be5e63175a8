"""Writes small seeded data sets in the formats of the published ones, for the programs of the model zoo (whole_zoo.py).

The values are random, but the label of a row can be learned from it, so that losses fall as with the published data.
"""
from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

USERS, ITEMS, RATINGS_OF_USER = 6040, 3706, 20
"""The number of users and of rated movies of MovieLens 1M, which programs check, and the least number of ratings of a user."""


def encode_idx(array: np.ndarray) -> bytes:
    """Return bytes as an IDX file: two zero bytes, the type (8: unsigned bytes), the number of axes, their lengths, and the values."""
    return struct.pack(f">HBB{array.ndim}I", 0, 8, array.ndim, *array.shape) + array.astype(np.uint8).tobytes()


def write_digits(folder: Path, rows: dict[str, int], separator: str = ".") -> None:
    """Write pictures of 28 x 28 as MNIST has them; `rows` maps a folder and prefix, such as `train/train`, to the number of pictures.

    Programs name the files `train-images.idx3-ubyte` or `train-images-idx3-ubyte`.
    """
    random = np.random.default_rng(0)
    shapes = random.integers(0, 2, (10, 7, 7)).repeat(4, 1).repeat(4, 2) * 160
    for prefix, count in rows.items():
        labels = random.integers(0, 10, count)
        pictures = np.clip(shapes[labels] + random.integers(0, 96, (count, 28, 28)), 0, 255)
        path = folder / prefix
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_name(f"{path.name}-images{separator}idx3-ubyte").write_bytes(encode_idx(pictures))
        path.with_name(f"{path.name}-labels{separator}idx1-ubyte").write_bytes(encode_idx(labels))


def write_pictures(folder: Path, count: int, files: int = 5) -> None:
    """Write `data_batch_1.bin` and so on, as CIFAR-10 has them: a row is a label and a picture of 3 x 32 x 32 bytes.

    MindSpore reads five rows at a time, so that the rows of a file must be a multiple of five.
    """
    random = np.random.default_rng(0)
    shapes = random.integers(0, 2, (10, 3, 8, 8)).repeat(4, 2).repeat(4, 3) * 160
    labels = random.integers(0, 10, count)
    pictures = shapes[labels] + random.integers(0, 96, (count, 3, 32, 32))
    rows = np.concatenate((labels[:, None], pictures.reshape(count, -1)), 1).astype(np.uint8)
    folder.mkdir(parents=True, exist_ok=True)
    for number, part in enumerate(np.array_split(rows, files), 1):
        (folder / f"data_batch_{number}.bin").write_bytes(part.tobytes())


def write_movie_reviews(folder: Path, sentences: int, words: int = 5000) -> None:
    """Write `rt-polarity.pos` and `rt-polarity.neg` with this number of sentences each: a line is a sentence in small letters.

    A third of the words of a sentence are words of its class.
    """
    random = np.random.default_rng(0)
    vocabulary = sorted({"".join(letters) for letters in random.choice(list("abcdefghijklmnopqrstuvwxyz"), (words, 6))})
    common, classes = vocabulary[:words // 2], np.array_split(np.array(vocabulary[words // 2:]), 2)
    folder.mkdir(parents=True, exist_ok=True)
    for kind, typical in zip(("pos", "neg"), classes):
        lines = []
        for length in random.integers(8, 50, sentences):
            chosen = np.where(random.random(length) < 0.33, random.choice(typical, length), random.choice(common, length))
            lines.append(f"{' '.join(chosen)} .\n")
        (folder / f"rt-polarity.{kind}").write_text("".join(lines), encoding="utf-8")


def write_movie_ratings(folder: Path) -> None:
    """Write `ml-1m/ratings.csv`, which the zoo's preparation derives from MovieLens' `ratings.dat`: user, item, rating, time.

    Each user rates RATINGS_OF_USER movies, mostly of one of ten genres, and each movie has a rating.
    """
    random = np.random.default_rng(0)
    lines = ["user_id,item_id,rating,timestamp\n"]
    for user in range(USERS):
        genre = np.arange(user % 10, ITEMS, 10)
        items = set(random.choice(genre, RATINGS_OF_USER - 5, replace=False).tolist()) | {user % ITEMS}
        while len(items) < RATINGS_OF_USER:
            items.add(int(random.integers(ITEMS)))
        times = random.integers(956_703_932, 1_046_454_590, len(items))
        lines += [f"{user + 1},{item + 1},{rating},{time}\n" for item, rating, time in zip(items, random.integers(1, 6, len(items)), times)]
    path = folder / "ml-1m" / "ratings.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(lines), encoding="utf-8")


def write_equation(folder: Path, steps: int) -> None:
    """Write `HJBLQ_config.yaml`, the equation of the zoo's DeepBSDE in 100 dimensions, with this number of training steps."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "HJBLQ_config.yaml").write_text(f"""\
eqn_name: "HJBLQ"
total_time: 1.0
dim: 100
num_time_interval: 20
y_init_range: [0, 1]
num_hiddens: [110, 110]
lr_values: [0.01, 0.01]
lr_boundaries: [{steps // 2}]
num_iterations: {steps}
batch_size: 64
valid_size: 256
logging_frequency: {steps}
device_target: "CPU"
log_dir: "./logs"
""", encoding="utf-8")
