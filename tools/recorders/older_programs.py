"""Lists the calls of older releases, and the names that NumPy 2 removed, that `torchspore check` finds in ten public programs.

    tools/record.py older_programs --folder FOLDER      writes docs/reference/older-programs.md

FOLDER has a git directory of each repository: OWNER+NAME/repo (`git clone --mirror`). The programs were written for MindSpore 0.5 to 1.9.
The page names files, lines and findings; it contains no text of the programs.
"""
from __future__ import annotations

import argparse
import io
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "src")]

PAGE = ROOT / "docs/reference/older-programs.md"
_ZOO = ("mindspore-ai/models", "eab643f51336dbf7d711f02d27e6516e5affee59")
PROGRAMS = (
    (*_ZOO, "official/cv/MaskRCNN"), (*_ZOO, "official/cv/CTPN"), (*_ZOO, "research/cv/fairmot"), (*_ZOO, "research/cv/JDE"),
    (*_ZOO, "research/hpc/pafnucy"), (*_ZOO, "research/cv/nnUNet"), (*_ZOO, "research/cv/siamRPN"), (*_ZOO, "research/cv/C3D"),
    ("kungfu-ml/kungfu-mindspore", "e8d60ba023", "examples/resnet-image-elastic"),
    ("loopyme/mindspore_subgraph_detection", "5f8828b033", "example/lstm_aclImdb"),
)
"""Repository, commit, folder."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--folder", type=Path, required=True, help="the folder of the repositories")


def record(arguments: argparse.Namespace) -> int:
    """Write the page."""
    lines = [
        "<!-- Written by tools/record.py older_programs. -->\n",
        "# Ten public programs for older releases\n",
        "`torchspore check` names each call with arguments of an older release, and each name that NumPy 2 removed, with its line. "
        "The table of all such arguments is [older-calls.md](older-calls.md).\n",
    ]
    for repository, commit, folder in PROGRAMS:
        files, findings = _findings(arguments.folder / repository.replace("/", "+") / "repo", commit, folder)
        lines.append(f"## {repository}: {folder}\n")
        lines.append(f"Commit {commit[:10]}, {files} files of Python, {len(findings)} findings.\n")
        lines += [f"- {finding}" for finding in findings] + ([""] if findings else [])
    PAGE.write_text("\n".join(lines).rstrip("\n") + "\n", encoding="utf-8")
    print(f"wrote {PAGE.relative_to(ROOT)}")
    return 0


def _findings(repository: Path, commit: str, folder: str) -> tuple[int, list[str]]:
    """Return the number of Python files, and `file:line: text` of each finding."""
    import ast

    from torchspore.cli.program_analysis import calls

    git_dir = repository / ".git" if (repository / ".git").is_dir() else repository
    command = ["git", f"--git-dir={git_dir}", "archive", commit, f":(glob){folder}/**/*.py"]
    archive = subprocess.run(command, check=True, capture_output=True)
    findings = []
    with tempfile.TemporaryDirectory() as checkout:
        with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as tar:
            tar.extractall(checkout, filter="data")
        files = sorted((Path(checkout) / folder).rglob("*.py"))
        for file in files:
            tree = ast.parse(file.read_text(encoding="utf-8", errors="replace"))
            name = file.relative_to(Path(checkout) / folder)
            findings += [f"{name}:{use.line}: {text}" for use, text in calls.older_call_problems(tree)]
    return len(files), findings
