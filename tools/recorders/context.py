"""Records the results of the context cases in real MindSpore 2.10: tests/parity/context/mindspore_2_10.json.

    tools/record.py context --python .oracle/bin/python              records all cases (about two minutes)
    tools/record.py context --python .oracle/bin/python --check      records, compares with the file and writes nothing
    tools/record.py context --spec FILE                              writes cases.json and older.json from the project's notes

The cases (key, form, value) are in tests/parity/context/cases.json. Each runs in a process forked from one that has imported MindSpore,
in an empty folder. A record contains the type of an error and never its text.
"""
from __future__ import annotations

import argparse
import ast
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from recorders import oracle

FOLDER = oracle.ROOT / "tests" / "parity" / "context"
OURS = ("2.10 CPU", "2.10 (device check bypassed)", "2.10 at top level, CPU")
FORMS = dict(zip(OURS, ("plain", "bypassed", "top level"), strict=True))
OLDER = ("2.0.0 (device check bypassed)", "2.0.0 CPU", "1.0.0 CPU")


# -- from the project's notes to the list of cases ---------------------------------------------------------------------------------


def write_cases(spec: Path) -> None:
    """Write the cases to try, and the answers of older versions to keys that 2.10 refuses."""
    cases, older, snippets = [], [], []
    for row in json.loads(spec.read_text())["rows"]:
        if row["group"] in ("historic", "internal") or "federated" in row["key"]:
            continue
        api = row["api"].removeprefix("set_").removesuffix("_context")
        for version, measured in row["measured"].items():
            for value, answer in measured.items():
                entry = {"api": api or "context", "key": row["key"], "parent": row["parent"], "value": _valid_code(value)}
                if api == "ps":
                    if version in OURS and _snippet(value) not in snippets:
                        snippets.append(_snippet(value))
                elif version in OURS:
                    cases.append({**entry, "form": FORMS[version]})
                elif version in OLDER and _is_refused(row["measured"]):
                    older.append({**entry, "mindspore": version, **_record_of(answer)})
    cases += [{"api": "context", "key": "device_id", "parent": None, "value": "1", "form": "read first"}]
    _write("cases.json", {"about": "what tools/record.py context tries in MindSpore 2.10", "cases": cases, "snippets": snippets})
    about = "answers of MindSpore 2.0.0 and 1.0.0 on a CPU where 2.10 refuses the key; carried over from the project's measurements"
    _write("older.json", {"about": about, "cases": older})


def _valid_code(value: str) -> str:
    return value.replace("a temporary folder", ".")


def _snippet(code: str) -> str:
    """Return the code of a case; a case that reads every option calls the getter of each."""
    if "_get_ps_context_func_map" in code:
        names = "server_mode ms_role enable_ps worker_num server_num scheduler_ip scheduler_port enable_ssl config_file_path"
        return f"R={{k:context.get_ps_context(k) for k in {names.split()}}}"
    return code


def _is_refused(measured: dict[str, dict[str, str]]) -> bool:
    """Return whether 2.10 has no such key: every value raises the same kind of error."""
    answers = [answer for version in OURS for answer in measured.get(version, {}).values()]
    words = ("not recognized", "has been removed", "not is recognized")
    return bool(answers) and any(word in answer for answer in answers for word in words)


def _record_of(answer: str) -> dict[str, Any]:
    """Turn "ok (False, True) +warning" or "TypeError: ..." into a record without the error's text."""
    if not answer.startswith("ok"):
        return {"outcome": answer.partition(":")[0]}
    try:
        before, after = ast.literal_eval(answer.removeprefix("ok ").removesuffix(" +warning"))
    except (SyntaxError, ValueError):  # the getter raised; the notes contain only the beginning of its message
        after = "ValueError:"
    if isinstance(after, str) and after.startswith("ValueError:"):
        return {"outcome": "ok", "after": {"raises": "ValueError"}}
    return {"outcome": "ok", "before": before, "after": after}


# -- in the process that has MindSpore ---------------------------------------------------------------------------------------------


def answers_to_cases() -> dict[str, Any]:
    """Try every case and return the content of the record."""
    mindspore = oracle.mindspore()
    listed = json.loads((FOLDER / "cases.json").read_text())
    done: dict[str, Any] = {}
    cases = []
    for case in listed["cases"]:
        key = json.dumps([case["api"], keyword_of(case), case["value"], case["form"]])
        if key not in done:
            done[key] = _run_in_fork(lambda case=case: _try(mindspore, case))
        cases.append({**case, **done[key]})
    snippets = [{"code": code, **_run_in_fork(lambda code=code: _run(mindspore, code))} for code in listed["snippets"]]
    names = ("context", "auto_parallel")
    defaults = {api: _run_in_fork(lambda api=api: {"outcome": "ok", "after": _get_all(mindspore, api)})["after"] for api in names}
    about = {"mindspore": mindspore.__version__, "device": "CPU", "cores": os.cpu_count(), "command": "tools/record.py context"}
    return {"about": about, "defaults": defaults, "cases": cases, "snippets": snippets}


def keyword_of(case: dict[str, Any]) -> str:
    """Return the keyword that a case sets: a member is set inside its dictionary, unless the case tries the member's name."""
    inside = case["form"] != "top level" and case["parent"] not in (None, "parallel_speed_up_json")
    return str(case["parent"] if inside else case["key"])


def _run_in_fork(task: Any) -> dict[str, Any]:
    """Run a task in a forked process, in an empty folder, without its output."""
    def answer() -> Any:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            try:
                answer = task()
            except BaseException as error:
                answer = {"outcome": type(error).__name__}
            text = json.dumps(answer, default=str).replace(os.path.realpath(folder), "<cwd>")
            os.chdir("/")
        return json.loads(text)

    return oracle.answer_of_fork(answer) or {"outcome": "died"}


def _try(mindspore: Any, case: dict[str, Any]) -> dict[str, Any]:
    context = mindspore.context
    prefix = "" if case["api"] == "context" else "auto_parallel_"
    setter, getter = getattr(context, f"set_{prefix}context"), getattr(context, f"get_{prefix}context")
    key = keyword_of(case)
    if case["form"] == "bypassed":
        context._check_target_specific_cfgs = lambda *_: True
    value = eval(case["value"], {"ms": mindspore})
    if case["form"] == "read first":
        getter(key)
    old = {} if case["api"] == "context" else _get_all(mindspore, "auto_parallel")
    setter(**{key: value})
    answer = {"outcome": "ok", "after": _get(getter, key)}
    if case["form"] == "bypassed" and isinstance(value, dict):
        answer["members"] = {name: _get(getter, name) for name in value if name != "parallel_speed_up_json_path"}
    if old:
        new = _get_all(mindspore, "auto_parallel")
        answer["changed"] = {name: new[name] for name in new if new[name] != old[name] and name != key}
    return answer


def _run(mindspore: Any, code: str) -> dict[str, Any]:
    space = {"context": mindspore.context, "os": os}
    exec(code, space)
    return {"outcome": "ok", "after": space.get("R")}


def _get_all(mindspore: Any, api: str) -> dict[str, Any]:
    """Return the getter's answer for every key of the cases."""
    getter = mindspore.context.get_context if api == "context" else mindspore.context.get_auto_parallel_context
    keys = {case["key"] for case in json.loads((FOLDER / "cases.json").read_text())["cases"] if case["api"] == api}
    return {key: _get(getter, key) for key in sorted(keys)}


def _get(getter: Any, key: str) -> Any:
    try:
        return getter(key)
    except Exception as error:
        return {"raises": type(error).__name__}


# -- the command -------------------------------------------------------------------------------------------------------------------


def _write(name: str, content: dict[str, Any]) -> None:
    """Write a record with one case in a line, so that differences are readable."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    lines = []
    for head, part in content.items():
        items = [json.dumps(item, ensure_ascii=False) for item in part] if isinstance(part, list) else None
        body = "[\n" + ",\n".join(items) + "\n]" if items is not None else json.dumps(part, ensure_ascii=False)
        lines.append(f"{json.dumps(head)}: {body}")
    (FOLDER / name).write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this subject."""
    parser.add_argument("--check", action="store_true", help="compare with the record and write nothing")
    parser.add_argument("--spec", type=Path, help="the project's notes, from which the list of cases is written")


def record_inside(arguments: argparse.Namespace) -> int:
    """Print the content of the record as JSON."""
    json.dump(answers_to_cases(), sys.stdout)
    return 0


def record(arguments: argparse.Namespace) -> int:
    """Write the record, or the list of cases. Return 1 if `--check` is set and a case differs."""
    if arguments.spec:
        write_cases(arguments.spec)
        return 0
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("MS_", "TORCHSPORE_", "DEVICE_ID"))}
    fresh = json.loads(oracle.run_inside(arguments, stdout=subprocess.PIPE, env=environment, check=True).stdout)
    if not arguments.check:
        _write("mindspore_2_10.json", fresh)
        print(f"{len(fresh['cases'])} cases, {len(fresh['snippets'])} snippets")
        return 0
    recorded = json.loads((FOLDER / "mindspore_2_10.json").read_text())
    differing = [new for old, new in zip(recorded["cases"], fresh["cases"], strict=True) if old != new]
    for case in differing:
        print("differs:", json.dumps(case))
    return 1 if differing else 0
