"""Where values come from, who sees them, and what a failed call leaves behind."""
from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from torchspore.base import once
from torchspore.context import effects
from torchspore.context import public as c
from torchspore.context.effects import Outcome
from torchspore.context.options import OPTIONS
from torchspore.context.store import STORE, Store
from torchspore.errors import FileFormatError, LateChange, LateDeviceChange, OptionPathError, StrictRefusal, UnknownOption


def in_thread(task: Any) -> Any:
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(task()))
    thread.start()
    thread.join()
    return results[0]


def test_facts_that_are_not_options_are_reported() -> None:
    assert (c.get_context("enable_ge"), c.get_context("enable_debug_runtime")) == (False, False)
    with pytest.raises(UnknownOption):
        c.set_context(enable_ge=True)


def test_a_scope_is_local_and_restores_the_previous_values() -> None:
    c.set_context(max_call_depth=7)
    with c.scope(mode=0, max_call_depth=8):
        assert (STORE.graph_mode, c.get_context("max_call_depth")) == (True, 8)
        assert in_thread(lambda: (STORE.graph_mode, c.get_context("max_call_depth"))) == (False, 7)
        c.set_context(max_call_depth=9)
        with c.scope(mode=1):
            assert (STORE.graph_mode, c.get_context("max_call_depth")) == (False, 9)
        assert STORE.graph_mode
    assert (STORE.graph_mode, c.get_context("max_call_depth")) == (False, 7)


def test_a_scope_restores_after_an_error_and_after_a_wrong_option() -> None:
    with pytest.raises(ZeroDivisionError), c.scope(mode=0):
        raise ZeroDivisionError
    with pytest.raises(ValueError, match="did you mean mode"), c.scope(mod=0):
        pass
    assert c.get_context("mode") == 1


def test_a_task_that_inherits_a_scope_writes_for_itself_only() -> None:
    async def inner() -> int:
        c.set_context(mode=1)
        return int(c.get_context("mode"))

    async def outer() -> tuple[int, int]:
        with c.scope(mode=0):
            return await asyncio.create_task(inner()), int(c.get_context("mode"))

    assert asyncio.run(outer()) == (1, 0)


def test_the_version_tells_every_change_and_scope_apart() -> None:
    seen = [STORE.version]
    c.set_context(mode=0)
    seen.append(STORE.version)
    with c.scope(check_bprop=True):
        seen.append(STORE.version)
        assert dict(STORE.snapshot())["check_bprop"] is True
    assert STORE.version == seen[1]
    assert len(set(seen)) == 3
    assert dict(STORE.snapshot())["check_bprop"] is False
    assert hash(STORE.snapshot())


def test_a_snapshot_holds_what_belongs_in_the_key() -> None:
    names = dict(STORE.snapshot())
    assert {"device_target", "deterministic", "jit_config", "jit_syntax_level"} <= set(names)
    assert not {"mode", "save_graphs_path", "op_timeout"} & set(names)


def test_precedence(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    file = tmp_path / "context.toml"
    file.write_text('max_call_depth = 5\ncompile_cache_path = "file"\nop_timeout = 3\n[jit_config]\njit_level = "O1"\n'
                    '[auto_parallel]\ndevice_num = 4\n')
    monkeypatch.setenv("TORCHSPORE_CONTEXT", str(file))
    monkeypatch.setenv("MS_COMPILER_CACHE_PATH", "variable")
    monkeypatch.setenv("TORCHSPORE_FORCE_OP_TIMEOUT", "99")
    monkeypatch.setenv("MS_DEV_SAVE_GRAPHS", "3")
    store = Store()
    assert (store.get("max_call_depth"), store.source("max_call_depth")[0]) == (5, "file")
    assert (store.get("compile_cache_path"), store.source("compile_cache_path")[0]) == ("variable", "environment")
    assert (store.get("op_timeout"), store.source("op_timeout")[0]) == (99, "forced environment")
    assert (store.get("jit_level"), store.get("auto_parallel.device_num")) == ("O1", 4)
    store.change("context", {"max_call_depth": 6, "compile_cache_path": "code", "op_timeout": 1, "save_graphs": 1}, "set_context")
    assert [store.get(key) for key in ("max_call_depth", "compile_cache_path", "op_timeout", "save_graphs")] == [6, "code", 99, 3]
    store.reset("context")
    assert [store.get(key) for key in ("max_call_depth", "compile_cache_path")] == [5, "variable"]


def test_a_forced_device_is_reported_once(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("TORCHSPORE_DEVICE", "cpu")
    store = Store()
    with once.anew():
        for _ in range(2):
            store.change("context", {"device_target": "Ascend"}, "set_context")
    assert store.get("device_target") == "CPU"
    output = capsys.readouterr().err
    line = f"({__file__}:{output.partition(__file__ + ':')[2].partition(')')[0]})"
    assert output == f"torchspore: the program requests Ascend {line}; TORCHSPORE_DEVICE=CPU runs it on CPU.\n"


@pytest.mark.parametrize(
    ("variable", "variable_value", "message"),
    [
        ("TORCHSPORE_FORCE_MOD", "0", "TORCHSPORE_FORCE_MOD=0: this option does not exist.\n\nhint: did you mean TORCHSPORE_FORCE_MODE?"),
        ("TORCHSPORE_FORCE_MODE", "7", "TORCHSPORE_FORCE_MODE=7: expected GRAPH_MODE (0) or PYNATIVE_MODE (1).\n\nhint: it sets mode."),
        ("TORCHSPORE_DEVICE", "TPU", "TORCHSPORE_DEVICE=TPU: expected 'CPU', 'GPU' or 'Ascend'.\n\nhint: it sets device_target."),
        ("MS_DEV_SAVE_GRAPHS", "x", "MS_DEV_SAVE_GRAPHS=x: expected a bool, or a level from 0 to 3.\n\nhint: it sets save_graphs."),
    ],
)
def test_a_wrong_variable(variable: str, variable_value: str, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, variable_value)
    with pytest.raises(ValueError, match=r"expected|does not exist") as caught:
        Store()
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("name", "value"),
    [("MODE", 0), ("ENABLE_GRAPH_KERNEL", True), ("MAX_DEVICE_MEMORY", 3.0), ("DETERMINISTIC", "ON"), ("SAVE_GRAPHS", 2),
     ("JIT_LEVEL", "O1"), ("AUTO_PARALLEL_DEVICE_NUM", 8), ("GRAPH_KERNEL_FLAGS", "--opt_level=2")],
)
def test_forced_values_of_each_kind(name: str, value: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    variable_value = {"MODE": "graph", "ENABLE_GRAPH_KERNEL": "on", "MAX_DEVICE_MEMORY": "3GB", "DETERMINISTIC": "on"}.get(name, str(value))
    monkeypatch.setenv(f"TORCHSPORE_FORCE_{name}", variable_value)
    key = name.lower().replace("auto_parallel_", "auto_parallel.")
    assert Store().get(key) == value


def test_a_forced_member_joins_what_the_code_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHSPORE_FORCE_JIT_LEVEL", "O1")
    store = Store()
    store.change("context", {"jit_config": {"infer_boost": "off", "jit_level": "O0"}}, "set_context")
    assert store.get("jit_config") == {"infer_boost": "off", "jit_level": "O1"}
    assert (store.get("jit_level"), store.get("infer_boost")) == ("O1", "off")


def test_a_file_that_cannot_be_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TORCHSPORE_CONTEXT", "nofile.toml")
    with pytest.raises(OptionPathError) as missing:
        Store()
    assert str(missing.value) == "TORCHSPORE_CONTEXT=nofile.toml: the file cannot be read (No such file or directory)."
    (tmp_path / "bad.toml").write_text("mode = = 1")
    monkeypatch.setenv("TORCHSPORE_CONTEXT", "bad.toml")
    with pytest.raises(FileFormatError, match=r"^TORCHSPORE_CONTEXT=bad.toml: expected a TOML file, .*line 1"):
        Store()
    (tmp_path / "unknown.toml").write_text("mod = 1")
    monkeypatch.setenv("TORCHSPORE_CONTEXT", "unknown.toml")
    with pytest.raises(ValueError, match="mod") as unknown:
        Store()
    assert str(unknown.value) == "unknown.toml: mod=...: this option does not exist.\n\nhint: did you mean mode?"


def test_late_changes_are_refused_with_the_line_of_the_first_use() -> None:
    c.set_context(device_id=1)
    effects.device_used("train.py:7")
    effects.device_used("train.py:8")
    c.set_context(device_id=1, mode=0)
    with pytest.raises(LateDeviceChange) as caught:
        c.set_context(mode=1, device_id=2)
    text = "set_context(device_id=2): too late, the device was first used at train.py:7.\n\nhint: move this call above that line."
    assert (str(caught.value), c.get_context("mode"), isinstance(caught.value, TypeError)) == (text, 0, True)
    with pytest.raises(LateChange):
        c.set_context(max_device_memory="3GB")


def test_limits_of_memory_are_late_after_any_operator_and_the_device_is_not() -> None:
    effects.operator_ran("train.py:7")
    effects.operator_ran("train.py:8")
    c.set_context(device_id=1, max_device_memory="1024GB")
    for name in ("max_device_memory", "variable_memory_max_size", "mempool_block_size"):
        with pytest.raises(LateChange) as caught:
            c.set_context(**{name: "3GB"})
        assert str(caught.value) == (
            f"set_context({name}='3GB'): too late, the device was first used at train.py:7.\n\nhint: move this call above that line.")


def test_strict_refuses_what_is_not_built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TORCHSPORE_STRICT", "1")
    monkeypatch.setattr(OPTIONS["max_device_memory"], "effect", None)      # as if it were not built
    c.set_context(max_device_memory="1024GB", mode=0)
    with pytest.raises(StrictRefusal) as caught:
        c.set_context(mode=1, max_device_memory="9GB")
    assert str(caught.value) == (
        "max_device_memory: not built yet, and TORCHSPORE_STRICT=1 makes that an error.\n\n"
        "hint: leave max_device_memory at its default here, or unset TORCHSPORE_STRICT."
    )
    assert c.get_context("mode") == 0
    with pytest.raises(StrictRefusal):
        effects.report("mode", Outcome.no_effect("nothing runs"))


def test_effects_are_undone_when_a_later_one_of_the_call_fails() -> None:
    seen: list[tuple[str, Any]] = []

    def act(name: str) -> Any:
        def effect(value: Any) -> Outcome:
            seen.append((name, value))
            return Outcome.refused("the machine says no") if value == 9 else Outcome.applied()

        return effect

    effects_by_name = {option.effect: act(option.name) for option in OPTIONS.values() if option.effect is not None}
    with effects.fresh(is_loaded=True, find=effects_by_name.__getitem__), pytest.raises(RuntimeError) as caught:
        c.set_context(deterministic="ON", runtime_num_threads=9)
    assert str(caught.value) == "set_context(runtime_num_threads=9): the machine says no."
    assert seen == [("deterministic", "ON"), ("runtime_num_threads", 9), ("deterministic", "OFF")]
    assert c.get_context("deterministic") == "OFF"
    assert c.get_context("runtime_num_threads") == min(30, os.cpu_count() or 1)


def test_effects_wait_for_the_engine() -> None:
    seen: list[Any] = []
    with effects.fresh(find=lambda name: lambda value: seen.append((name, value)) or Outcome.applied()):
        c.set_context(deterministic="ON", device_target="CPU", mode=0)
        assert seen == []
        effects.engine_loaded()
        effects.engine_loaded()
    assert seen == [("engine.execution.device_selection:select", "CPU"), ("engine.execution.determinism:select", "ON")]


def test_a_dictionary_that_was_read_is_a_copy() -> None:
    c.set_context(jit_config={"jit_level": "O1"})
    c.get_context("jit_config")["jit_level"] = "O2"
    assert c.get_context("jit_config") == {"jit_level": "O1"}


def test_a_file_of_speed_switches_sets_each_of_them(tmp_path: Path) -> None:
    file = tmp_path / "speed.json"
    file.write_text('{"enable_task_opt": true, "dataset_broadcast_opt_level": 2, "recompute_comm_overlap": "AllGather"}')
    c.set_context(ascend_config={"parallel_speed_up_json_path": "speed.json"})
    assert c.get_context("enable_task_opt") is True
    assert (c.get_context("dataset_broadcast_opt_level"), c.get_context("recompute_comm_overlap")) == (2, "AllGather")
    for content, message in (
        ('{"enable_task_opt": 1}', "speed.json: enable_task_opt=1: expected True or False.\n\nhint: write enable_task_opt=True."),
        ('{"enable_task_op": true}', "speed.json: there is no switch 'enable_task_op'.\n\nhint: did you mean 'enable_task_opt'?"),
    ):
        file.write_text(content)
        with pytest.raises((TypeError, ValueError)) as caught:
            c.set_context(ascend_config={"parallel_speed_up_json_path": "speed.json"})
        assert str(caught.value) == message


def test_the_recorders_variables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MS_RDR_ENABLE", "1")
    monkeypatch.setenv("MS_RDR_MODE", "2")
    store = Store()
    assert [store.get(f"env_config_path{name}") for name in ("", ".rdr.enable", ".rdr.mode")] == ["", True, 2]
    (tmp_path / "rdr.json").write_text('{"rdr": {"enable": false}}')
    store.change("context", {"env_config_path": "rdr.json"}, "set_context")
    assert [store.get(f"env_config_path.rdr.{name}") for name in ("enable", "mode")] == [False, 1]


def test_the_recorders_file(tmp_path: Path) -> None:
    (tmp_path / "rdr.json").write_text('{"rdr": {"enable": true, "mode": 2, "path": "/tmp/x"}, "sys": {"mem_Reuse": false}, "other": 1}')
    with pytest.warns(UserWarning, match="there is no member other"):
        c.set_context(env_config_path="rdr.json")
    assert c.get_context("env_config_path") == os.path.realpath("rdr.json")
    names = ("rdr.enable", "rdr.mode", "rdr.path", "sys.mem_reuse")
    assert [STORE.get(f"env_config_path.{name}") for name in names] == [True, 2, "/tmp/x", False]
    (tmp_path / "rdr.json").write_text("{")
    with pytest.raises(ValueError, match="JSON"):
        c.set_context(env_config_path="rdr.json")


def test_texts_with_members() -> None:
    c.set_context(graph_kernel_flags="--opt_level=3 --dump_as_text", profiling_options='{"output": "d", "aicpu": "on"}')
    assert (STORE.get("graph_kernel_flags.opt_level"), STORE.get("graph_kernel_flags.dump_as_text")) == (3, True)
    assert (STORE.get("profiling_options.output"), STORE.get("profiling_options.aicpu_trace")) == ("d", "on")
    c.set_context(profiling_options="training_trace:op_trace")
    assert (STORE.get("profiling_options.op_trace"), STORE.get("profiling_options.task_trace")) == ("on", "off")


def test_directories_are_created_private_and_removed(tmp_path: Path) -> None:
    c.set_context(save_graphs_path="a/b")
    c.set_auto_parallel_context(strategy_ckpt_save_file="s/t.json", group_ckpt_save_file="g/h.pb")
    assert [(tmp_path / name).stat().st_mode & 0o777 for name in ("a/b", "s", "g")] == [0o700] * 3
    assert c.get_context("save_graphs_path") == os.path.realpath("a/b")
    with pytest.raises(NotADirectoryError):
        c.set_auto_parallel_context(group_ckpt_save_file="new/h.pb", strategy_ckpt_save_file="/dev/null/x/t.json")
    assert not (tmp_path / "new").exists()


def test_offload() -> None:
    c.set_offload_context({"offload_param": "cpu", "cpu_ratio": 0.5})
    assert c.get_offload_context() == {"offload_param": "cpu", "cpu_ratio": 0.5}
    assert (STORE.get("offload.offload_config.cpu_ratio"), STORE.get("offload.offload_config.hbm_ratio")) == (0.5, 1.0)
