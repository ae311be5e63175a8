"""benchmarks/whole_zoo.py: the data sets that it writes, its arguments, and the comparison of its programs."""
from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType

import mindspore.dataset as ds
import numpy as np
import pytest
import yaml

FOLDER = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture
def zoo(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(FOLDER)
    monkeypatch.setenv("TORCHSPORE_WAIT", "")                  # turns.py sets it if it is absent
    return importlib.import_module("whole_zoo")


@pytest.fixture
def data(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(FOLDER)
    return importlib.import_module("zoo_data")


def test_digits_are_files_of_mnist(data: ModuleType, tmp_path: Path) -> None:
    data.write_digits(tmp_path, {"train/train": 60, "t10k": 20})
    rows = list(ds.MnistDataset(str(tmp_path / "train"), shuffle=False).create_tuple_iterator(output_numpy=True))
    assert len(rows) == 60 and rows[0][0].shape == (28, 28, 1) and rows[0][0].dtype == np.uint8
    labels = np.array([label for _, label in rows])
    assert set(labels.tolist()) == set(range(10))
    assert (tmp_path / "t10k-images.idx3-ubyte").stat().st_size == 16 + 20 * 784


def test_digits_of_a_class_are_similar(data: ModuleType, tmp_path: Path) -> None:
    data.write_digits(tmp_path, {"train": 200}, separator="-")
    images = np.fromfile(tmp_path / "train-images-idx3-ubyte", np.uint8)[16:].reshape(200, 784).astype(np.float32)
    labels = np.fromfile(tmp_path / "train-labels-idx1-ubyte", np.uint8)[8:]
    means = np.stack([images[labels == digit].mean(0) for digit in range(10)])
    nearest = ((images[:, None] - means) ** 2).sum(2).argmin(1)
    assert (nearest == labels).mean() > 0.95


def test_pictures_are_files_of_cifar10(data: ModuleType, tmp_path: Path) -> None:
    data.write_pictures(tmp_path, 25)
    rows = list(ds.Cifar10Dataset(str(tmp_path), shuffle=False).create_tuple_iterator(output_numpy=True))
    assert len(rows) == 25 and rows[0][0].shape == (32, 32, 3) and len(list(tmp_path.iterdir())) == 5
    labels = [path.read_bytes()[0] for path in sorted(tmp_path.iterdir())]
    assert labels[0] == rows[0][1] and max(labels) < 10


def test_reviews_are_lines_of_words_and_always_equal(data: ModuleType, tmp_path: Path) -> None:
    for folder in ("one", "two"):
        data.write_movie_reviews(tmp_path / folder, 50)
    texts = {kind: (tmp_path / "one" / f"rt-polarity.{kind}").read_text() for kind in ("pos", "neg")}
    assert texts["pos"] == (tmp_path / "two/rt-polarity.pos").read_text()
    words = {kind: set(text.replace(".", "").split()) for kind, text in texts.items()}
    assert all(text.count("\n") == 50 for text in texts.values()) and words["pos"] != words["neg"]


def test_ratings_have_the_users_and_movies_of_movielens(data: ModuleType, tmp_path: Path) -> None:
    data.write_movie_ratings(tmp_path)
    head, *lines = (tmp_path / "ml-1m/ratings.csv").read_text().splitlines()
    assert head == "user_id,item_id,rating,timestamp"
    users, items, ratings, _ = np.array([line.split(",") for line in lines], np.int64).T
    assert set(users.tolist()) == set(range(1, 6041)) and set(items.tolist()) == set(range(1, 3707))
    assert np.bincount(users)[1:].min() == 20 and set(ratings.tolist()) == {1, 2, 3, 4, 5}
    assert len(set(zip(users.tolist(), items.tolist()))) == len(users)


def test_the_equation_is_a_configuration(data: ModuleType, tmp_path: Path) -> None:
    data.write_equation(tmp_path, 40)
    configuration = yaml.safe_load((tmp_path / "HJBLQ_config.yaml").read_text())
    assert configuration["num_iterations"] == 40 and configuration["lr_boundaries"] == [20] and configuration["dim"] == 100


@pytest.mark.parametrize("words", [["whole_zoo.py"], ["whole_zoo.py", "--zoo"]])
def test_a_missing_checkout_is_an_error(zoo: ModuleType, words: list[str]) -> None:
    with pytest.raises(SystemExit) as raised:
        zoo.take_checkout(words)
    assert str(raised.value) == (
        "--zoo is missing: expected --zoo DIR, a checkout of the model zoo. To get it: "
        f"git clone https://github.com/mindspore-ai/models DIR && git -C DIR checkout {zoo.COMMIT}")


def test_a_folder_that_is_no_checkout_is_an_error(zoo: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(SystemExit) as raised:
        zoo.take_checkout(["whole_zoo.py", "--zoo", str(tmp_path)])
    assert str(raised.value) == (
        f"--zoo {tmp_path}: expected a checkout of the model zoo with research/cv/lenet/train.py, which this folder does not have. "
        f"To get it: git clone https://github.com/mindspore-ai/models DIR && git -C DIR checkout {zoo.COMMIT}")


def test_a_checkout_is_taken_from_the_words(zoo: ModuleType, tmp_path: Path) -> None:
    for program in zoo.PROGRAMS.values():
        (tmp_path / program.folder).mkdir(parents=True)
        (tmp_path / program.folder / "train.py").write_text("")
    words = ["whole_zoo.py", "--rounds", "1", "--zoo", str(tmp_path), "--nets", "ncf"]
    assert zoo.take_checkout(words) == tmp_path.resolve() and words == ["whole_zoo.py", "--rounds", "1", "--nets", "ncf"]


def test_unknown_programs_are_an_error(zoo: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zoo, "take_checkout", lambda words: tmp_path)
    monkeypatch.setattr(sys, "argv", ["whole_zoo.py", "--nets", "ncf,lenets"])
    with pytest.raises(SystemExit, match=r"^--nets lenets: expected names out of lenet, "):
        zoo.main()


def test_a_missing_package_is_an_error(zoo: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    zoo.check_packages(sys.executable, ["lenet", "deepbsde"])
    monkeypatch.setitem(zoo.PROGRAMS, "lenet", zoo.Program("", "research/cv/lenet", lambda folder: None, (), ("numpy", "absent_package")))
    with pytest.raises(SystemExit, match=r" has no package absent_package: expected the packages that research/cv/lenet import\. Install"):
        zoo.check_packages(sys.executable, ["lenet", "deepbsde"])


def test_commands_name_existing_programs(zoo: ModuleType, tmp_path: Path) -> None:
    for name, program in zoo.PROGRAMS.items():
        words = zoo.build_command(name, tmp_path, tmp_path / "data")
        assert words[0] == str(tmp_path / program.folder / "train.py") and not any("{" in word for word in words)
        assert (FOLDER / "whole_programs/zoo_for_torch" / f"{name}.py").is_file()


@pytest.mark.parametrize(("output", "expected"), [
    ("epoch: 1 step: 2, loss is 2.5\nepoch: 1 step: 3, loss is 1.25\n", 1.25), ("loss 3.5e-02", 0.035), ("G_loss: 0.5", 0.5),
])
def test_the_last_loss_is_read(zoo: ModuleType, output: str, expected: float) -> None:
    assert zoo.number_after("loss(?: is|:)?", output) == expected


def test_programs_that_train_other_parameters_are_refused(zoo: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    outputs = {"torchspore": "parameters 10\nloss is 1.0\n", "zoo_for_torch": "parameters 12\nloss 1.0\n"}

    def answer(command: list[str], environment: object, title: str, longest: object = None) -> object:
        return zoo.Run(1.0, 1.0, next(text for word, text in outputs.items() if any(word in part for part in command[1:])))

    monkeypatch.setattr(zoo.program_runs, "run", answer)
    with pytest.raises(RuntimeError, match=r"^lenet: the zoo's program trains 10 parameters, zoo_for_torch/lenet\.py 12$"):
        zoo.compare_work("lenet", tmp_path, tmp_path)
    outputs["zoo_for_torch"] = "parameters 10\nloss 1.5\n"
    assert zoo.compare_work("lenet", tmp_path, tmp_path) == "10 trained parameters. Last loss: 1 in torchspore, 1.5 in torch."
