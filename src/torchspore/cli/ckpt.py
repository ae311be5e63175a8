"""`torchspore ckpt`: show, compare and convert checkpoints, to torch and back, sharded and in one file."""
from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torchspore.base.columns import pad, width
from torchspore.cli.grammar import USAGE_ERROR, Parser, returns_exit_code
from torchspore.language import translatable, translate

DIFFERENT = 1


@returns_exit_code
def run(words: Sequence[str]) -> int:
    """Run the command; return 1 if `diff` finds a difference, 2 if a file can't be read or the command line is wrong."""
    options = parser().parse_args(list(words))
    from torchspore.errors import FileFormatError

    try:
        return int(options.action(options))
    except BrokenPipeError:
        raise                                    # `| head` has ended: this is not an error of a file
    except (FileFormatError, ValueError, TypeError, OSError) as error:
        print(f"torchspore ckpt: {error}", file=sys.stderr)
        return USAGE_ERROR


def parser() -> Parser:
    """Return the parser of the command."""
    command = Parser(
        prog="torchspore ckpt",
        description="Shows, compares and converts checkpoints: .ckpt, .safetensors, .dcp, and torch's .pt, .pth, .bin.",
        examples=["torchspore ckpt show lenet.ckpt", "torchspore ckpt to-torch lenet.ckpt lenet.pt"],
    )
    actions = command.add_subparsers(required=True, dest="action_name", metavar="show | diff | convert | to-torch | from-torch",
                                     parser_class=Parser)
    show = _add_action(actions, "show", "lists the parameters of a file")
    show.add_argument("file")
    show.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    show.set_defaults(action=_show)
    diff = _add_action(actions, "diff", "reports where two files differ; the exit code is then 1")
    diff.add_argument("first")
    diff.add_argument("second")
    diff.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    diff.add_argument("--rtol", type=float, default=0.0, help="relative difference that counts as equal (default: 0)")
    diff.add_argument("--atol", type=float, default=0.0, help="absolute difference that counts as equal (default: 0)")
    diff.set_defaults(action=_diff)
    convert = _add_action(actions, "convert", "converts between .ckpt, .safetensors, .dcp and folders of rank_0, rank_1, ...")
    convert.add_argument("source")
    convert.add_argument("output")
    convert.add_argument("--source-strategy", metavar="FILE", help="the strategy file of a source with rank_0, rank_1, ...")
    convert.add_argument("--strategy", metavar="FILE", help="the strategy file that splits the output: rank_0/checkpoint0.ckpt, ...")
    convert.set_defaults(action=_convert)
    to_torch = _add_action(actions, "to-torch", "writes a state_dict with torch's names (.pt, .pth, .bin or .safetensors)")
    to_torch.add_argument("file")
    to_torch.add_argument("output")
    to_torch.add_argument("--keep-names", action="store_true", help="leaves MindSpore's names as they are")
    _add_layer_options(to_torch)
    to_torch.set_defaults(action=_to_torch)
    from_torch = _add_action(actions, "from-torch", "writes a checkpoint with MindSpore's names (.ckpt or .safetensors)")
    from_torch.add_argument("file")
    from_torch.add_argument("output")
    from_torch.add_argument("--like", metavar="CKPT", help="a checkpoint of the same net, whose names are taken; embeddings need it")
    from_torch.add_argument("--keep-names", action="store_true", help="leaves torch's names as they are")
    _add_layer_options(from_torch)
    from_torch.set_defaults(action=_from_torch)
    return command


def _add_action(actions: Any, name: str, description: str) -> Parser:
    command: Parser = actions.add_parser(name, help=description, description=f"{description[0].upper()}{description[1:]}.")
    return command


def _add_layer_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--cell", metavar="MODULE:FACTORY",
                        help="a callable that returns the Cell: its layers decide names and shapes, and settings to change are listed")
    parser.add_argument("--conv", choices=("1d", "2d"), help="how weights are read that fit Conv1d and Conv2d")


def _show(options: argparse.Namespace) -> int:
    from torchspore.mindspore.train import checkpoint_tools

    entries, checksum = checkpoint_tools.read(options.file)
    described = [checkpoint_tools.describe(entry) for entry in entries]
    size = sum(row["bytes"] for row in described)
    if options.json:
        print(json.dumps({"file": options.file, "checksum": checksum, "bytes": size, "parameters": described}))
        return 0
    heads = (translatable("name"), translatable("type"), translatable("shape"), translatable("bytes"), translatable("mean"),
             translatable("smallest"), translatable("largest"))
    _print_table(list(map(translate, heads)), [
        [row["name"], row["type"], str(row["shape"]), f"{row['bytes']:,}",
         *(_format_figure(row[key]) for key in ("mean", "smallest", "largest"))]
        for row in described
    ])
    values = sum(row["values"] for row in described)
    summary = translate("{count} parameters, {values:,} values, {size:,} bytes; checksum: {checksum}")
    print("\n" + summary.format(count=len(described), values=values, size=size, checksum=translate(checksum)))
    bad = [row["name"] for row in described if not row["finite"]]
    if bad:
        names = f"{', '.join(map(_printable, bad[:5]))}{' ..' if len(bad) > 5 else ''}"
        print(translate("not all finite: {names}").format(names=names))
    return 0


def _diff(options: argparse.Namespace) -> int:
    from torchspore.mindspore.train import checkpoint_tools

    differences, alike = checkpoint_tools.differences(options.first, options.second, options.rtol, options.atol)
    if options.json:
        print(json.dumps({"equal": alike, "different": [difference._asdict() for difference in differences]}))
        return DIFFERENT if differences else 0
    rows = [[difference.name, translate(difference.what), difference.first, difference.second] for difference in differences]
    _print_table([translate("name"), translate("what"), options.first, options.second], rows)
    print(translate("{alike} equal, {count} different").format(alike=alike, count=len(differences)))
    return DIFFERENT if differences else 0


def _convert(options: argparse.Namespace) -> int:
    from torchspore.mindspore.train import sharded_conversion

    for path in sharded_conversion.convert(options.source, options.output, options.source_strategy, options.strategy):
        print(translate("written: {path}").format(path=path))
    return 0


def _to_torch(options: argparse.Namespace) -> int:
    from torchspore.mindspore.train import checkpoint_tools

    omitted, notes = checkpoint_tools.to_torch(options.file, options.output, options.keep_names, _cell(options), options.conv)
    return _report(options.output, omitted, notes)


def _from_torch(options: argparse.Namespace) -> int:
    from torchspore.mindspore.train import checkpoint_tools

    omitted, notes = checkpoint_tools.from_torch(
        options.file, options.output, options.keep_names, options.like, _cell(options), options.conv)
    return _report(options.output, omitted, notes)


def _cell(options: argparse.Namespace) -> str | None:
    """Return the text of `--cell`, after installing torchspore and making modules of the current folder importable."""
    text: str | None = options.cell
    if text is not None:
        import torchspore

        torchspore.install()
        sys.path.insert(0, "")
    return text


def _report(output: str, omitted: list[str], notes: list[str]) -> int:
    print(translate("written: {path}").format(path=Path(output)))
    if omitted:
        names = ", ".join(map(_printable, omitted[:5]))
        names += " .." if len(omitted) > 5 else ""
        print(translate("left out, because the other side has no counterpart: {names}").format(names=names))
    for note in notes:
        print(translate("note: {text}.").format(text=_printable(note)))
    return 0


def _format_figure(value: Any) -> str:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)


def _printable(text: str) -> str:
    """Return text from a file in a form that is safe for a terminal: control characters are shown, not executed."""
    return text if text.isprintable() else repr(text)


def _print_table(heads: list[str], rows: list[list[str]]) -> None:
    if not rows:
        return
    rows = [[_printable(cell) for cell in row] for row in rows]
    widths = [max(width(row[column]) for row in [heads, *rows]) for column in range(len(heads))]
    for row in [heads, *rows]:
        print("  ".join(pad(cell, columns) for cell, columns in zip(row, widths)).rstrip())
