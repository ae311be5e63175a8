"""`torchspore port`: readable PyTorch source for the Cells of a file, compared with the original."""
from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from torchspore.cli.grammar import USAGE_ERROR, Parser, returns_exit_code
from torchspore.translations import translate

FAILED = 1


@returns_exit_code
def run(words: Sequence[str]) -> int:
    """Run the command; return 1 if something has no rule or differs, 2 for a wrong command line."""
    options = parser().parse_args(list(words))
    path, _, name = options.source.partition(".py:")
    path = path if not name and not options.source.endswith(".py:") else path + ".py"
    import torchspore
    from torchspore.port.analysis.source import PortError

    torchspore.install()
    try:
        return _port(options, path, [name] if name else None)
    except PortError as error:
        print(f"torchspore port: {error}", file=sys.stderr)
        return USAGE_ERROR


def parser() -> Parser:
    """Return the parser of the command."""
    command = Parser(
        prog="torchspore port",
        description="Writes PyTorch source for the Cells of a file and its training, and compares it with the original: the same weights "
                    "and inputs, results and gradients to 1e-5; of a training script losses and weights of three steps. The file runs "
                    "as under `torchspore run`.",
        examples=["torchspore port resnet.py --out resnet_torch.py --report port.html",
                  "torchspore port model.py:Net --args 10 --example 8,3,32,32", "torchspore port train.py --out ported/"],
    )
    command.add_argument("source", metavar="FILE.py[:CLASS]", help="a file; all its Cells, or one with what it needs")
    command.add_argument("--out", metavar="PATH",
                        help="where the source is written (default: the standard output); a folder if the port has several files")
    command.add_argument("--args", metavar="TEXT",
                        help="arguments of the class, as in a call: --args \"10, width=32\"; the file is imported, not run")
    command.add_argument("--example", metavar="SHAPE", action="append", default=[],
                        help="an input of the comparison: 8,3,32,32 or 4,16,int32:100 (integers below 100); repeat it for further inputs")
    command.add_argument("--report", metavar="FILE.html", help="a page with both sources side by side, reasons and differences")
    command.add_argument("--cells", action="store_true", help="only the Cells of a training script, not its training")
    command.add_argument("--no-verify", action="store_true", help="writes the source without running anything")
    return command


def _port(options: argparse.Namespace, path: str, names: list[str] | None) -> int:
    from torchspore.port import complete_port, report

    with_script = not (options.cells or options.args or options.example)
    outcome = complete_port.port_file(path, names, options.args, options.example, not options.no_verify, with_script)
    if outcome.ported.problems:
        print(report.problems(path, outcome.ported), file=sys.stderr)
        return FAILED
    content = report.headed(outcome)
    files = {**outcome.ported.files, outcome.entry: content}
    if len(files) > 1:
        _write_files(options.out, files, path)
    elif options.out and Path(options.out).suffix != ".py":
        _write_files(options.out, {Path(path).name: content}, path)
    elif options.out:
        Path(options.out).write_text(content, encoding="utf-8")
    else:
        print(content, end="")
    print(report.summary(path, options.out, outcome), file=sys.stderr)
    if options.report:
        Path(options.report).write_text(report.page(path, content, outcome), encoding="utf-8")
    return FAILED if any(not verdict.is_equal for verdict in outcome.verdicts) else 0


def _write_files(out: str | None, files: dict[str, str], path: str) -> None:
    """Write the files of a port below a folder. Raises PortError for anything else than a folder."""
    from torchspore.port.analysis.source import PortError

    if out is None or out.endswith(".py") or Path(out).is_file():
        text = translate("{path}: the port has {count} files ({names}). Pass a folder for them: --out DIR.")
        raise PortError(text.format(path=path, count=len(files), names=", ".join(sorted(files))))
    for name, text in files.items():
        target = Path(out, name)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
