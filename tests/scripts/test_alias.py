"""`import mindspore` answered by torchspore: the same objects under both names, and nothing more than was asked for."""
from __future__ import annotations

import importlib
import importlib.util
import pickle
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from support import processes
from support.processes import Run

import torchspore

MISSING = "mindspore.nn.Conv7d is not in torchspore yet, and MindSpore 2.10 has no such name."


@pytest.fixture
def real_mindspore(tmp_path: Path) -> dict[str, str]:
    """An environment in which another package called mindspore is installed."""
    package = tmp_path / "site" / "mindspore"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("__version__ = '9.9'\n")
    (package / "only_there.py").write_text("")
    return {"PYTHONPATH": str(package.parent)}


def test_one_object_under_both_names() -> None:
    import mindspore
    import mindspore.common.tensor
    import mindspore.nn

    for name in ("", ".nn", ".common.tensor"):
        assert sys.modules[f"mindspore{name}"] is sys.modules[f"torchspore.mindspore{name}"]
    assert mindspore.nn.Cell is sys.modules["torchspore.mindspore"].nn.Cell
    assert mindspore.nn.__spec__.name == "torchspore.mindspore.nn"


def test_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    import mindspore

    assert mindspore.__version__ == "2.10.0"
    assert mindspore.__torchspore__ == torchspore.__version__


def test_version_of_choice(warm: Callable[..., Run], tmp_path: Path) -> None:
    ended = warm("-c", "import mindspore; print(mindspore.__version__)", cwd=tmp_path, TORCHSPORE_VERSION="1.10.1")
    assert ended == Run(0, "1.10.1\n", "")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("from mindspore.ops import operations as P; found = P.ReLU", "mindspore.ops.ReLU"),
        ("from mindspore.ops import operations as P; found = P.TensorAdd", "mindspore.ops.Add"),
        ("from mindspore.ops import functional as F; found = F.relu", "mindspore.ops.relu"),
        ("from mindspore.ops import composite as C; found = C.GradOperation", "mindspore.ops.GradOperation"),
        ("from mindspore.ops.operations.math_ops import MatMul as found", "mindspore.ops.MatMul"),
        ("from mindspore.ops.operations import _inner_ops; found = _inner_ops.ReLU", "mindspore.ops.ReLU"),
        ("import mindspore.common.dtype as mstype; found = mstype.float32", "mindspore.float32"),
        ("from mindspore.common.tensor import Tensor as found", "mindspore.Tensor"),
        ("from mindspore._c_expression import Tensor as found", "mindspore.common.Tensor"),
        ("from mindspore.common.api import ms_function as found", "mindspore.jit"),
        ("from mindspore import ms_function as found", "mindspore.jit"),
        ("from mindspore.nn.loss.loss import _Loss as found", "mindspore.nn.LossBase"),
        ("from mindspore.nn.layer.basic import Dense as found", "mindspore.nn.Dense"),
        ("from mindspore.nn.optim import Momentum as found", "mindspore.nn.Momentum"),
        ("from mindspore.train.model import Model as found", "mindspore.train.Model"),
        ("from mindspore.nn import Loss as found", "mindspore.train.Loss"),
        ("from mindspore.nn.metrics import Accuracy as found", "mindspore.train.Accuracy"),
        ("from mindspore.train.model import ParallelMode as found", "mindspore.context.ParallelMode"),
        ("from mindspore.train.serialization import load_checkpoint as found", "mindspore.load_checkpoint"),
        ("from mindspore.train.callback import LossMonitor as found", "mindspore.train.LossMonitor"),
        ("from mindspore.dataset.vision import c_transforms as V; found = V.Resize", "mindspore.dataset.vision.Resize"),
        ("import mindspore.dataset.transforms.c_transforms as T; found = T.TypeCast", "mindspore.dataset.transforms.TypeCast"),
        ("from mindspore.ops.operations import *; found = ReLU", "mindspore.ops.ReLU"),
    ],
)
def test_moved_homes(old: str, new: str) -> None:
    namespaces: dict[str, object] = {}
    exec(f"import mindspore\n{old}", namespaces)
    module, _, name = new.rpartition(".")
    assert namespaces["found"] is getattr(importlib.import_module(module), name)


def test_moved_module_by_attribute() -> None:
    import mindspore

    assert mindspore.ops.operations is sys.modules["mindspore.ops.operations"]
    assert "ReLU" in dir(mindspore.ops.operations)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("from mindspore.nn import Conv7d", ImportError),
        ("import mindspore; mindspore.nn.Conv7d", AttributeError),
        ("import mindspore.nn.Conv7d", ModuleNotFoundError),
    ],
)
def test_missing_name_says_so(code: str, kind: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHSPORE_STRICT_IMPORTS", "1")
    with pytest.raises(kind) as caught:
        exec(code, {})
    first, blank, hint = str(caught.value).split("\n")
    assert (first, blank) == (MISSING, "")
    assert hint.startswith("hint: the nearest name here is mindspore.nn.Conv")


def test_missing_name_is_shown_at_the_users_line(warm: Callable[..., Run], tmp_path: Path) -> None:
    (tmp_path / "old.py").write_text("import mindspore\nfrom mindspore.nn import Conv7d\n")
    lines = warm("old.py", cwd=tmp_path, TORCHSPORE_STRICT_IMPORTS="1").err.splitlines()
    assert lines[:3] == [
        "Traceback (most recent call last):", '  File "old.py", line 2, in <module>', "    from mindspore.nn import Conv7d",
    ]
    assert lines[3] == f"torchspore.errors.ModuleNotOffered: {MISSING}"
    assert len(lines) <= 12


def test_programs_may_ask_first() -> None:
    import mindspore

    assert not hasattr(mindspore, "no_such_name")
    assert getattr(mindspore.nn, "NoSuchLayer", None) is None
    assert importlib.util.find_spec("mindspore.no_such_module") is None
    assert importlib.util.find_spec("mindspore.nn") is not None


def test_reload_keeps_the_module() -> None:
    import mindspore.context

    before = mindspore.context
    assert importlib.reload(before) is before
    assert sys.modules["mindspore.context"] is sys.modules["torchspore.mindspore.context"] is before


def test_pickle_knows_either_name() -> None:
    from mindspore.train.metrics import Accuracy

    for path in ("mindspore.train", "torchspore.mindspore.train", "mindspore.train.metrics"):
        # What another program wrote under this name: protocol 0 names the module and the class as text.
        assert pickle.loads(f"c{path}\nAccuracy\n.".encode()) is Accuracy
    assert pickle.loads(pickle.dumps(Accuracy)) is Accuracy


def test_pickle_of_a_class_of_the_program(warm: Callable[..., Run], tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(
        "import pickle\nimport mindspore as ms\nclass Box:\n    def __init__(self):\n        self.tensor = ms.Tensor([1.0, 2.0])\n"
        "print(pickle.loads(pickle.dumps(Box())).tensor.asnumpy().tolist())\n"
    )
    assert warm("own.py", cwd=tmp_path) == Run(0, "[1.0, 2.0]\n", "")


def test_real_mindspore_is_not_shadowed_unless_requested(real_mindspore: dict[str, str], tmp_path: Path) -> None:
    ask = "import mindspore; print(mindspore.__version__)"
    plain = processes.python("-c", f"import torchspore; {ask}", cwd=tmp_path, extra=real_mindspore)
    assert plain == Run(0, "9.9\n", "")
    completed = processes.torchspore("run", "-c", ask, cwd=tmp_path, extra=real_mindspore)
    assert completed == Run(0, "2.10.0\n", "")


def test_a_module_of_real_mindspore_is_not_mixed_in(real_mindspore: dict[str, str], tmp_path: Path) -> None:
    ended = processes.torchspore("run", "--strict-imports", "-c", "import mindspore.only_there", cwd=tmp_path, extra=real_mindspore)
    assert ended.code == 1
    assert "mindspore.only_there is not in torchspore yet" in ended.err


def test_install_after_the_real_one_is_refused(real_mindspore: dict[str, str], tmp_path: Path) -> None:
    ended = processes.python("-c", "import mindspore, torchspore; torchspore.install()", cwd=tmp_path, extra=real_mindspore)
    assert ended.err.endswith(
        "RuntimeError: torchspore.install(): the real mindspore 9.9 is imported in this process already.\n\n"
        "hint: call torchspore.install() before the first `import mindspore`.\n"
    )


def test_uninstall_gives_the_real_one_back(real_mindspore: dict[str, str], tmp_path: Path) -> None:
    code = (
        "import torchspore; torchspore.install(); import mindspore; torchspore.uninstall(); import mindspore as real;"
        "print(mindspore.__version__, real.__version__)"
    )
    assert processes.python("-c", code, cwd=tmp_path, extra=real_mindspore) == Run(0, "2.10.0 9.9\n", "")


def test_pytest_plugin(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("import mindspore\nassert mindspore.__torchspore__\n")
    (tmp_path / "test_it.py").write_text("from mindspore import Tensor\ndef test_it():\n    assert Tensor(1.0).shape == ()\n")
    without = processes.python("-m", "pytest", "-q", "-p", "no:cacheprovider", cwd=tmp_path)
    assert without.code != 0
    ended = processes.python("-m", "pytest", "-p", "torchspore.pytest", "-p", "no:cacheprovider", cwd=tmp_path)
    assert ended.code == 0, ended.out
    assert f"mindspore: torchspore {torchspore.__version__} (behaves like MindSpore 2.10.0)" in ended.out.splitlines()


def test_processes_that_are_spawned_find_it_too(tmp_path: Path) -> None:
    (tmp_path / "spawns.py").write_text(
        "import multiprocessing\nimport mindspore\n\ndef version(_):\n    return mindspore.__torchspore__\n\n"
        "if __name__ == '__main__':\n    with multiprocessing.get_context('spawn').Pool(1) as pool:\n"
        "        print(pool.map(version, [0]))\n"
    )
    assert processes.torchspore("spawns.py", cwd=tmp_path) == Run(0, f"['{torchspore.__version__}']\n", "")
