"""Every case that was tried in real MindSpore 2.10, against torchspore."""
from __future__ import annotations

import json
import os
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from parity.context import differences

import torchspore.engine  # noqa: F401  (effects run from here on: a device that is not there is refused)
from torchspore.context import effects, public
from torchspore.context.effects import Outcome
from torchspore.context.public import get_auto_parallel_context, get_context, set_auto_parallel_context, set_context
from torchspore.context.store import STORE

APIS = ("context", "auto_parallel", "ps", "offload")
MS = SimpleNamespace(**{**vars(public), "context": public})
Case = dict[str, Any]


@pytest.fixture(autouse=True)
def fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Gives each test the defaults and an empty folder, and takes back what it sets."""
    monkeypatch.chdir(tmp_path)
    for variable in [name for name in os.environ if name.startswith("MS_")]:
        monkeypatch.delenv(variable)
    with effects.fresh(find=without_limits):
        yield
        forget()
        set_context(
            deterministic="OFF", runtime_num_threads=0, enable_dump=False, enable_profiling=False, enable_auto_mixed_precision=False,
        )
        set_context(ascend_config={"exception_dump": "0"})
        forget()


def without_limits(name: str) -> effects.Effect:
    """The function of an effect; limits of memory count as set, and this process may take what it needs."""
    return (lambda value: Outcome.applied()) if name.startswith("engine.memory.limit:") else effects.resolve(name)


def forget() -> None:
    """Takes back everything that was set."""
    for api in APIS:
        STORE.reset(api)


def answer(case: Case) -> Case:
    """Tries a case here and gives what came of it, in the form of the records."""
    forget()
    prefix = "" if case["api"] == "context" else "auto_parallel_"
    setter, getter = getattr(public, f"set_{prefix}context"), getattr(public, f"get_{prefix}context")
    inside = case["form"] != "top level" and case["parent"] not in (None, "parallel_speed_up_json")
    key = case["parent"] if inside else case["key"]
    value = eval(case["value"], {"ms": MS})
    if case["form"] == "read first":
        getter(key)
    try:
        setter(**{key: value})
    except Exception as error:
        return {"outcome": [kind.__name__ for kind in type(error).__mro__]}
    results = {"outcome": "ok", "after": get_or_error(getter, key)}
    for part in ("members", "changed"):
        if part in case:
            results[part] = {name: get_or_error(getter, name) for name in case[part]}
    return json.loads(json.dumps(results).replace(os.path.realpath("."), "<cwd>"))


def get_or_error(getter: Any, key: str) -> Any:
    try:
        return getter(key)
    except Exception as error:
        return {"raises": type(error).__name__}


def agree(here: Case, there: Case) -> bool:
    """Same acceptance, same kind of error, same values (True is not 1)."""
    if here["outcome"] != "ok" or there["outcome"] != "ok":
        return there["outcome"] in here["outcome"] and there["outcome"] != "ok"
    parts = [part for part in ("after", "members", "changed") if part in there]
    return all(json.dumps(here.get(part)) == json.dumps(there[part]) for part in parts)


def cases_of(key: str) -> list[Case]:
    return [case for case in differences.RECORD["cases"] if case["key"] == key]


@pytest.mark.filterwarnings("ignore:graph_kernel_flags")
@pytest.mark.parametrize("key", list(dict.fromkeys(case["key"] for case in differences.RECORD["cases"])))
def test_cases(key: str) -> None:
    for case in cases_of(key):
        difference = differences.find(case)
        here = answer(case)
        expected = case if difference is None else difference.answers(case)
        assert agree(here, expected), (differences.named(case), here, expected)
        assert difference is None or not agree(here, case), f"{differences.named(case)}: no difference any more"


@pytest.mark.parametrize("snippet", differences.RECORD["snippets"], ids=lambda snippet: snippet["code"][-60:])
def test_parameter_server(snippet: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("MS_SERVER_NUM", "MS_WORKER_NUM", "MS_SCHED_HOST", "MS_SCHED_PORT", "MS_ROLE"):
        monkeypatch.setenv(variable, "")
        monkeypatch.delenv(variable)
    forget()
    space: dict[str, Any] = {"context": public, "os": os}
    if snippet["outcome"] == "ok":
        exec(snippet["code"], space)
        assert json.dumps(space.get("R")) == json.dumps(snippet["after"])
    else:
        # A RuntimeError of 2.10 about a wrong word is a ValueError here.
        kind = {"RuntimeError": ValueError, "TypeError": TypeError, "ValueError": ValueError}[snippet["outcome"]]
        with pytest.raises(kind):
            exec(snippet["code"], space)


def test_defaults() -> None:
    forget()
    for api, getter in (("context", get_context), ("auto_parallel", get_auto_parallel_context)):
        for key, there in differences.RECORD["defaults"][api].items():
            if isinstance(there, dict) and "raises" in there:
                continue  # 2.10 has no such key, or cannot read it
            if key == "enable_offloading_packed_experts":
                continue  # measured both ways
            if key == "runtime_num_threads":
                there = min(30, os.cpu_count() or 1)
            assert json.dumps(get_or_error(getter, key)) == json.dumps(there), key


def test_every_difference_is_shown_by_a_case() -> None:
    seen = {difference.title for case in differences.RECORD["cases"] if (difference := differences.find(case))}
    assert seen == {difference.title for difference in differences.DIFFERENCES}
    assert all(f"test_{name}" in globals() for name in differences.BEYOND_CASES)


def test_all_or_nothing() -> None:
    with pytest.raises(ValueError, match="bogus"):
        set_context(mode=0, bogus=1)
    assert get_context("mode") == 1
    with pytest.raises(TypeError):
        set_context(max_call_depth=7, save_graphs="1")
    assert get_context("max_call_depth") == 1000


def test_old_and_new_agree() -> None:
    public.set_recursion_limit(50)
    assert get_context("max_call_depth") == 50
    public.set_deterministic(True)
    public.set_deterministic(False)
    assert get_context("deterministic") == "OFF"
    set_context(deterministic="ON")
    assert get_context("deterministic") == "ON"
    public.set_device("CPU", 3)
    assert (get_context("device_target"), get_context("device_id")) == public.get_current_device() == ("CPU", 3)


def test_members_agree() -> None:
    set_context(jit_config={"jit_level": "O1"})
    set_context(jit_config={})
    assert (get_context("jit_config"), get_context("jit_level")) == ({}, "")
    set_context(jit_level="O2")
    assert get_context("jit_config") == {"jit_level": "O2"}


def test_reset_strategy() -> None:
    set_auto_parallel_context(dataset_strategy=((1, 8),))
    public.reset_auto_parallel_context()
    assert get_auto_parallel_context("dataset_strategy") == "data_parallel"


def test_one_value_for_all_threads() -> None:
    set_context(reserve_class_name_in_scope=False)
    seen: list[bool] = []
    thread = threading.Thread(target=lambda: seen.append(get_context("reserve_class_name_in_scope")))
    thread.start()
    thread.join()
    assert seen == [False]


def test_no_nagging(capfd: pytest.CaptureFixture[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        set_context(save_graphs=0, enable_sparse=True, auto_tune_mode="RL", variable_memory_max_size="6GB", op_timeout=9)
    assert capfd.readouterr() == ("", "")


def test_offloading_packed_experts() -> None:
    assert get_context("enable_offloading_packed_experts") is False


def test_refused_directory() -> None:
    with pytest.raises(FileNotFoundError):
        set_context(save_graphs=2, save_graphs_path="/proc/x/y")
    assert (get_context("save_graphs"), get_context("save_graphs_path")) == (0, ".")
    with pytest.raises(NotADirectoryError):
        set_context(save_graphs_path="/dev/null/x")
    with pytest.raises(ValueError, match="bogus"):
        set_context(save_graphs_path="made", bogus=1)
    assert not os.path.exists("made")
