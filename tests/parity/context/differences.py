"""Where the context differs from MindSpore 2.10 on purpose, case by case; `docs/differences.md` is made from this list."""
from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
Case = dict[str, Any]
RECORD = json.loads((FOLDER / "mindspore_2_10.json").read_text(encoding="utf-8"))
OLDER = json.loads((FOLDER / "older.json").read_text(encoding="utf-8"))

# 2.10 on a CPU looks at the type of these and at nothing else, and goes on with its default.
OF_ANOTHER_DEVICE = (
    "max_device_memory", "variable_memory_max_size", "mempool_block_size", "print_file_path", "enable_reduce_precision",
    "disable_format_transform", "ascend_config", "gpu_config",
)
DROPPED = (
    "enable_dump", "save_dump_path", "precompile_only", "auto_tune_mode", "enable_sparse", "grad_for_scalar", "save_compile_cache",
    "load_compile_cache", "memory_offload", "enable_auto_mixed_precision", "exception_dump", "mirror_mean", "cast_before_mirror",
)
UNCHECKED = {
    ("save_graphs", "plain", "-1"): "ValueError",
    ("jit_level", "top level", '"O7"'): "ValueError",
    ("infer_boost", "top level", '"zz"'): "ValueError",
    ("host_scheduling_max_threshold", "bypassed", "{'host_scheduling_max_threshold':-1}"): "ValueError",
    ("topo_order", "top level", '"x"'): "TypeError",
    ("cur_step_num", "top level", "-1"): "ValueError",
    ("save_checkpoint_steps", "top level", "-1"): "ValueError",
    ("last_triggered_step", "top level", "-1"): "ValueError",
    ("compute_communicate_fusion_level", "top level", "-1"): "ValueError",
    ("dataset_broadcast_opt_level", "top level", "-1"): "ValueError",
    ("conv_fprop_algo", "top level", '"bogus"'): "ValueError",
    ("conv_dgrad_algo", "top level", '"bogus"'): "ValueError",
    ("conv_wgrad_algo", "top level", '"bogus"'): "ValueError",
    ("device_num", "plain", "4097"): "ValueError",
    ("optimizer_weight_shard_size", "plain", "0"): "ValueError",
    ("op_precision_mode", "bypassed", "{'op_precision_mode':\".\"}"): "ValueError",
}
DOCUMENTED = {
    ("conv_fprop_algo", "bypassed", "{'conv_fprop_algo':'implicit_precomp_gemm'}"): {"conv_fprop_algo": "implicit_precomp_gemm"},
    ("parallel_speed_up_json_path", "bypassed", "{'parallel_speed_up_json_path':None}"): {"parallel_speed_up_json_path": None},
    ("topo_order", "top level", '{"a":"dfs"}'): '{"a": "dfs"}',
    ("recompute_comm_overlap", "top level", "True"): True,
    ("matmul_grad_comm_overlap", "top level", "True"): True,
    ("grad_accumulation_step", "plain", "2"): 2,
}
BEYOND_ITS_RANGE = {("op_timeout", "plain", "4294967296")}
RAISES_WITHOUT_REASON = ("device_target",)


@dataclass(frozen=True)
class Difference:
    """One kind of difference: what it is, why it is meant, which cases show it, and what they answer here."""

    title: str
    there: str
    here: str
    why: str
    covers: Callable[[Case], bool]
    answers: Callable[[Case], Case]


def named(case: Case) -> tuple[str, str, str]:
    """Gives (key, form, value as written) of a case."""
    return case["key"], case["form"], case["value"]


def find(case: Case) -> Difference | None:
    """Gives the difference that a case shows, or None where the two must agree."""
    return next((difference for difference in DIFFERENCES if difference.covers(case)), None)


def _bypassed(case: Case) -> Case | None:
    """Gives what 2.10 answers to the same value once its device check is out of the way."""
    for other in RECORD["cases"]:
        if named(other) == (case["key"], "bypassed", case["value"]):
            return {name: other[name] for name in ("outcome", "after") if name in other}
    return None


def _is_ignored(case: Case) -> bool:
    return case["form"] == "plain" and case["key"] in OF_ANOTHER_DEVICE and not _is_same_outcome(_kept(case), case)


def _is_same_outcome(here: Case, there: Case) -> bool:
    return here["outcome"] == there["outcome"] and here.get("after") == there.get("after")


def _kept(case: Case) -> Case:
    if case["value"] == '{"x":1}':
        return {"outcome": "ValueError"}
    result = _bypassed(case)
    if result is not None or case["outcome"] != "ok" or case["key"] not in ("ascend_config", "gpu_config"):
        return result or case
    return {"outcome": "ok", "after": json.loads(case["value"])}


def _is_dropped(case: Case) -> bool:
    return case["key"] in DROPPED and case["form"] != "top level" and not _is_same_outcome(_dropped(case), case)


def _dropped(case: Case) -> Case:
    """Gives 2.0.0's answer, else 1.0.0's, else what the documents say; a value that was only ignored there is kept."""
    if case["key"] == "auto_tune_mode" and case["value"] == '"x"':
        return {"outcome": "ValueError"}
    for version in ("2.0.0", "1.0.0"):
        for older in OLDER["cases"]:
            is_same_case = older["mindspore"].startswith(version) and (older["key"], older["value"]) == (case["key"], case["value"])
            unreadable = isinstance(older.get("after"), dict) and "raises" in older["after"]
            if is_same_case and older["outcome"] != "ValueError" and not unreadable:
                ignored = older["outcome"] == "ok" and case["key"] != "memory_offload" and older["before"] == older["after"]
                return {"outcome": older["outcome"], "after": _plain(case)} if ignored else older
    if case["key"] == "memory_offload" or (case["key"], case["value"]) == ("exception_dump", "{'exception_dump':\"3\"}"):
        return {"outcome": "ok", "after": case["value"] == '"ON"'} if case["value"] in ('"ON"', '"OFF"') else {"outcome": "ValueError"}
    return {"outcome": "ok", "after": _plain(case)}


def _plain(case: Case) -> Any:
    value = eval(case["value"])
    return "RL,GA" if value == "GA,RL" else value


def _is_of_runtime(case: Case) -> bool:
    return case["outcome"] == "RuntimeError" and case["key"] not in RAISES_WITHOUT_REASON and named(case) not in DOCUMENTED


def _is_unreadable(case: Case) -> bool:
    return case["outcome"] == "ok" and isinstance(case["after"], dict) and "raises" in case["after"] and case["key"] not in DROPPED


def _ok(value: Any) -> Case:
    return {"outcome": "ok", "after": value}


DIFFERENCES = [
    Difference(
        "Options of another device are checked and stored",
        "on a CPU their type is checked, the value is discarded, and the getter returns the default",
        "the value is checked as on that device, stored and returned",
        "a wrong value is reported on the laptop, before the program runs on the cluster",
        _is_ignored, _kept,
    ),
    Difference(
        "Options that 2.10 dropped still work",
        "ValueError, or accepted and not readable",
        "as in 2.0.0, else 1.0.0, else as documented",
        "programs of all versions run unchanged",
        _is_dropped, _dropped,
    ),
    Difference(
        "Values that 2.10 leaves unchecked are checked",
        "accepted, although they mean nothing",
        "ValueError or TypeError that states what is expected",
        "a mistake is reported where it was made",
        lambda case: named(case) in UNCHECKED, lambda case: {"outcome": UNCHECKED[named(case)]},
    ),
    Difference(
        "Documented values work",
        "refused by the code",
        "accepted",
        "users write programs from the documents; a step count above 1 for summed gradients worked until 2.1",
        lambda case: named(case) in DOCUMENTED, lambda case: _ok(DOCUMENTED[named(case)]),
    ),
    Difference(
        "A RuntimeError about a wrong type is a TypeError",
        "RuntimeError from the C++ code",
        "TypeError; ValueError for a number beyond its range",
        "one rule for all options, and the errors that programs catch for other options",
        _is_of_runtime, lambda case: {"outcome": "ValueError" if named(case) in BEYOND_ITS_RANGE else "TypeError"},
    ),
    Difference(
        "Options that can be set can be read",
        "ValueError from the getter",
        "the getter returns the value that was set",
        "a user may want to see what is set; passwords of the parameter server are an exception",
        _is_unreadable, lambda case: _ok(eval(case["value"])),
    ),
    Difference(
        "Reading `device_id` does not freeze it",
        "TypeError if it is set to another value after it was read",
        "accepted until the device is used",
        "reading is not using",
        lambda case: case["form"] == "read first", lambda case: _ok(1),
    ),
]

# Differences that single calls do not show; tests/parity/context/test_context.py has a test for each, by this name.
BEYOND_CASES = {
    "all_or_nothing": ("A call is applied completely or not at all", "the options before the wrong one are applied",
                       "nothing is applied", "after a caught error the context is unchanged"),
    "old_and_new_agree": ("Old and new spellings agree", "`set_recursion_limit` does not change `get_context('max_call_depth')`, "
                          "and `set_deterministic` may be called only once", "both write the same option, any number of times",
                          "one option, one value"),
    "members_agree": ("Dictionary and member agree", "`jit_config={}` leaves `jit_level` at the value of an earlier call",
                      "an absent member has its default", "the dictionary that is read back is the one in effect"),
    "reset_strategy": ("`reset_auto_parallel_context` resets `dataset_strategy`", "`[]` after a tuple", "'data_parallel'",
                       "a reset restores the default"),
    "one_value_for_all_threads": ("`reserve_class_name_in_scope` is one value for the process", "each thread has its own",
                                  "`set_context` acts in every thread; only `context.scope` is local", "no option is an exception"),
    "no_nagging": ("No warnings about names that still work", "a warning for nearly every option since 2.5", "none",
                   "the user of a program cannot act on them"),
    "offloading_packed_experts": ("`enable_offloading_packed_experts` is off until it is set", "True in some runs and False in others",
                                  "False", "the documents state no default, and all related switches are off"),
    "refused_directory": ("A directory that cannot be created changes nothing", "`save_graphs` of the same call stays set",
                          "the entire call is refused, and created directories are removed",
                          "after a caught error the context is unchanged"),
}
