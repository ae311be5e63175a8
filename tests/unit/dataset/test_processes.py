"""Worker processes: what they compute, how they end, and what is said when one of them is killed, hangs or meets an error."""
from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import mindspore.dataset as ds
import numpy as np
import pytest
from support import processes


def numbers(count: int = 200) -> Any:
    return ds.NumpySlicesDataset({"n": np.arange(count)}, shuffle=False)


def rows(dataset: Any, column: str = "n") -> list[Any]:
    return [row[column].tolist() for row in dataset.create_dict_iterator(num_epochs=1, output_numpy=True)]


def children() -> list[int]:
    """The processes that this one has started and that still run."""
    listed = subprocess.run(["ps", "-o", "pid=,comm=", "--ppid", str(os.getpid())], capture_output=True, text=True, check=True).stdout
    return [int(line.split()[0]) for line in listed.splitlines() if line.split()[1] != "ps" and "defunct" not in line]


def test_functions_run_in_other_processes_in_order() -> None:
    before = children()
    dataset = numbers().map(
        lambda n: (n * 2, np.array(os.getpid())), ["n"], ["n", "pid"], num_parallel_workers=2, python_multiprocessing=True
    )
    assert rows(dataset) == [2 * n for n in range(200)]
    pids = set(rows(dataset, "pid"))
    assert len(pids) == 2 and os.getpid() not in pids
    assert children() == before


def test_per_batch_map_and_sources_run_there_too() -> None:
    def per_batch(column: list[Any], info: Any) -> Any:
        return (np.stack([np.array([value, os.getpid(), info.get_batch_num()]) for value in column]),)

    dataset = numbers(40).batch(4, num_parallel_workers=2, per_batch_map=per_batch, input_columns=["n"], python_multiprocessing=True)
    result = np.array(rows(dataset))
    assert result[..., 0].ravel().tolist() == list(range(40)) and os.getpid() not in result[..., 1]
    assert result[:, 0, 2].tolist() == list(range(10))

    class Slow:
        def __len__(self) -> int:
            return 60

        def __getitem__(self, index: int) -> Any:
            time.sleep(1e-3)
            return np.array(index), np.array(os.getpid())

    source = ds.GeneratorDataset(Slow(), ["n", "pid"], shuffle=False, num_parallel_workers=2)
    assert rows(source) == list(range(60))
    assert len(set(rows(source, "pid"))) == 3, "this process for the first rows, then two others"


def test_rows_larger_than_the_shared_memory() -> None:
    dataset = numbers(3).map(
        lambda n: np.full((5_000_000,), n, np.float64), ["n"], num_parallel_workers=2, python_multiprocessing=True, max_rowsize=1
    )
    assert [(row[0].shape, row[0][-1]) for row in dataset.create_tuple_iterator(num_epochs=1, output_numpy=True)] == [
        ((5_000_000,), float(n)) for n in range(3)
    ]


def test_random_numbers_do_not_depend_on_who_draws_them() -> None:
    def drawn(workers: int) -> list[Any]:
        ds.config.set_seed(7)
        dataset = numbers(50).map(
            lambda n: np.random.rand() + 0 * n, ["n"], num_parallel_workers=workers, python_multiprocessing=True
        ).repeat(2)
        return rows(dataset)

    assert drawn(2) == drawn(3)
    assert len(set(drawn(2))) == 100


def test_a_seeded_row_has_other_numbers_in_the_next_epoch() -> None:
    ds.config.set_seed(7)
    dataset = numbers(20).map(lambda n: np.random.rand() + 0 * n, ["n"], num_parallel_workers=2, python_multiprocessing=True)
    iterator = dataset.create_dict_iterator(num_epochs=2, output_numpy=True)
    assert [row["n"].item() for row in iterator] != [row["n"].item() for row in iterator]


def test_an_error_names_the_line() -> None:
    def wrong(n: Any) -> Any:
        if n == 17:
            raise KeyError("seventeen")
        return n

    dataset = numbers().map(wrong, ["n"], num_parallel_workers=2, python_multiprocessing=True)
    with pytest.raises(RuntimeError, match=rf"{os.path.basename(__file__)}:\d+: KeyError: 'seventeen'"):
        rows(dataset)


def test_a_killed_process_is_named_at_once() -> None:
    def suicidal(n: Any) -> Any:
        if n == 30:
            os.kill(os.getpid(), signal.SIGKILL)
        return n

    before = children()
    dataset = numbers().map(suicidal, ["n"], num_parallel_workers=2, python_multiprocessing=True)
    start = time.monotonic()
    pattern = r"suicidal.*worker process \d \(pid \d+\) was ended by signal 9 \(SIGKILL\) while it worked on row"
    with pytest.raises(RuntimeError, match=pattern):
        rows(dataset)
    assert time.monotonic() - start < 5
    assert children() == before


def test_a_slow_process_is_reported(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text("""
import time
import numpy as np
import mindspore.dataset as ds
ds.config.set_multiprocessing_timeout_interval(1)
def sleeps(n):
    time.sleep(2.5 if n == 3 else 0)
    return n
dataset = ds.NumpySlicesDataset({"n": np.arange(8)}, shuffle=False)
print(len(list(dataset.map(sleeps, ["n"], num_parallel_workers=2, python_multiprocessing=True).create_tuple_iterator(num_epochs=1))))
""")
    ran = processes.torchspore("run", "main.py", cwd=tmp_path)
    assert ran.out == "8\n", ran.err
    assert "map(operations=sleeps, input_columns=['n']): worker process" in ran.err and "for 1 s" in ran.err and "for 2 s" in ran.err


ENDLESS = """
import sys, time
import numpy as np
import mindspore.dataset as ds
def slow(n):
    time.sleep(0.002)
    return n
dataset = ds.NumpySlicesDataset({"n": np.arange(8)}, shuffle=False).repeat(-1)
print("started", flush=True)
for row in dataset.map(slow, ["n"], num_parallel_workers=2, python_multiprocessing=True).batch(2).create_tuple_iterator(num_epochs=1):
    pass
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_process_outlives_its_parent(tmp_path: Path, number: int) -> None:
    (tmp_path / "main.py").write_text(ENDLESS)
    _end(tmp_path, number, 1.0)


@pytest.mark.slow
def test_ctrl_c_at_fifty_moments(tmp_path: Path) -> None:
    (tmp_path / "main.py").write_text(ENDLESS)
    for moment in range(50):
        _end(tmp_path, signal.SIGINT, 0.02 * moment)


def _end(folder: Path, number: int, seconds: float) -> None:
    """Starts the endless program, sends it a signal so many seconds after it began to read, and sees its processes gone."""
    program = subprocess.Popen(
        [sys.executable, "-m", "torchspore", "run", "main.py"], cwd=folder, env=processes.environment(), stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, start_new_session=True, preexec_fn=_hears_interrupts,
    )
    try:
        assert program.stdout is not None and program.stdout.readline() == "started\n"
        time.sleep(seconds)
        program.send_signal(number)
        program.communicate(timeout=60)
        end = time.monotonic() + 20
        while (left := _of_session(program.pid)) and time.monotonic() < end:
            time.sleep(0.05)
        assert not left
    finally:
        if _of_session(program.pid):
            os.killpg(program.pid, signal.SIGKILL)
    assert not [name for name in os.listdir("/dev/shm") if name.startswith(("psm_", "pym-"))]


def _hears_interrupts() -> None:
    """A test that was started in the background hands on that Ctrl-C is ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _of_session(session: int) -> list[str]:
    listed = subprocess.run(["ps", "-o", "pid=,stat=", "-s", str(session)], capture_output=True, text=True, check=False).stdout
    return [line for line in listed.splitlines() if line.split()[1][0] != "Z"]


def test_what_a_function_prints_is_seen(tmp_path: Path) -> None:
    """Into a pipe too, where Python keeps it back."""
    script = tmp_path / "prints.py"
    script.write_text(
        "import mindspore.dataset as ds\nimport numpy as np\n\n"
        "def told(n):\n    print('row', n)\n    return n\n\n"
        "rows = ds.NumpySlicesDataset({'n': np.arange(4)}, shuffle=False)\n"
        "rows = rows.map(told, ['n'], num_parallel_workers=2, python_multiprocessing=True)\n"
        "list(rows.create_dict_iterator(num_epochs=1))\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    command = [sys.executable, "-m", "torchspore", str(script)]
    result = subprocess.run(command, capture_output=True, text=True, check=True, env=environment, timeout=60)
    assert sorted(result.stdout.split("\n")) == ["", "row 0", "row 1", "row 2", "row 3"]


_SPAWNED = """
import mindspore.dataset as ds
import numpy as np
import os
import time

class Slow:
    def __len__(self):
        return 40

    def __getitem__(self, index):
        time.sleep(1e-3)
        return np.array([index, os.getpid()])

def first(n):
    return n[:1] * 2

def joined(column, info):
    return np.stack(column) + info.get_batch_num()

def columns(column):
    return np.stack(column)

if __name__ == "__main__":
    ds.config.set_multiprocessing_start_method("spawn")
    options = {"num_parallel_workers": 2, "python_multiprocessing": True}
    rows = ds.GeneratorDataset(Slow(), ["n"], shuffle=False, **options)
    found = np.stack([row for row, in rows.create_tuple_iterator(num_epochs=1, output_numpy=True)])
    assert found[:, 0].tolist() == list(range(40)) and len(set(found[:, 1].tolist())) == 3, found     # this process tries the first ones
    pairs = ds.GeneratorDataset(Slow(), ["n"], batch_sampler=[[n, n + 1] for n in range(30)], collate_fn=columns, **options)
    found = np.stack([row for row, in pairs.create_tuple_iterator(num_epochs=1, output_numpy=True)])
    assert found[:, 1, 0].tolist() == list(range(1, 31))
    batches = rows.map(first, ["n"], **options).batch(10, per_batch_map=joined, **options)
    print([row[0].ravel().tolist()[:2] for row in batches.create_tuple_iterator(num_epochs=1, output_numpy=True)])
"""


def test_each_step_runs_in_spawned_processes(tmp_path: Path) -> None:
    (tmp_path / "spawned.py").write_text(_SPAWNED)
    command = [sys.executable, "-m", "torchspore", str(tmp_path / "spawned.py")]
    result = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert result.stdout == "[[0, 2], [21, 23], [42, 44], [63, 65]]\n", result.stderr
