"""`torchspore ckpt`: show, compare and convert checkpoints, to torch and back, sharded and in one file."""
from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from torchspore.base.columns import pad, width
from torchspore.base.text import message
from torchspore.cli.grammar import USAGE_ERROR, Parser, returns_exit_code
from torchspore.translations import english, translatable, translate

DIFFERENT = 1
_TARGETS = "timm:NAME, torchvision:NAME, transformers:CLASS, module:CLASS or file.py:CLASS(width=4)"


@returns_exit_code
def run(words: Sequence[str]) -> int:
    """Run the command; return 1 if `diff` finds a difference, 2 if a file can't be read or the command line is wrong."""
    options = parser().parse_args(list(words))
    from torchspore.errors import FileFormatError

    try:
        with english(getattr(options, "json", False)):
            return int(options.action(options))
    except BrokenPipeError:
        raise                                    # `| head` has ended: this is not an error of a file
    except (FileFormatError, ValueError, TypeError, OSError, MemoryError) as error:
        text = str(error) or type(error).__name__
        print("\n".join(map(_printable, f"torchspore ckpt: {text}".split("\n"))), file=sys.stderr)
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
    to_torch.add_argument("--like", metavar="TARGET", help=f"the torch model or file that the output fits: {_TARGETS}")
    _add_target_options(to_torch)
    _add_layer_options(to_torch)
    to_torch.set_defaults(action=_to_torch)
    from_torch = _add_action(actions, "from-torch", "writes a checkpoint with MindSpore's names (.ckpt or .safetensors)")
    from_torch.add_argument("file")
    from_torch.add_argument("output")
    from_torch.add_argument("--like", metavar="TARGET", help="a checkpoint of the same net, whose names are taken, or the torch model of "
                            f"the file: {_TARGETS}")
    from_torch.add_argument("--convention", choices=("mindformers",), help="the names and layouts to write, for Llama, GPT-2, BERT and T5")
    _add_target_options(from_torch)
    from_torch.add_argument("--keep-names", action="store_true", help="leaves torch's names as they are")
    _add_layer_options(from_torch)
    from_torch.set_defaults(action=_from_torch)
    return command


def _add_action(actions: Any, name: str, description: str) -> Parser:
    command: Parser = actions.add_parser(name, help=description, description=f"{description[0].upper()}{description[1:]}.")
    return command


def _add_target_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", metavar="JSON", help="the configuration of transformers:CLASS: a file, or the JSON object itself")
    parser.add_argument("--map", metavar="OLD=NEW", action="append", default=[],
                        help="pairs a name, or the beginning of names, of the file with one of the output; * is one part of a name")
    parser.add_argument("--partial", action="store_true", help="leaves out what has no counterpart, such as a new head")
    parser.add_argument("--verify", action=argparse.BooleanOptionalAction, default=None,
                        help="runs the Cell and the torch model on one input; the default if --cell and a model are known")
    parser.add_argument("--input", metavar="SHAPE", action="append", default=[], help="an input for --verify: 1,3,224,224 or 2,8:int64")
    parser.add_argument("--tolerance", type=float, default=1e-5,
                        help="difference, relative to the largest result, that --verify accepts (default: 1e-5)")
    parser.add_argument("--fused", choices=("plain", "grouped"), help="how mindformers joined the rows of w_qkv: up to 1.3, or later")
    parser.add_argument("--rotary", choices=("half", "interleaved"), default="half",
                        help="the order of wq and wk: half for files from Hugging Face, interleaved for those from Meta")
    parser.add_argument("--matrices", choices=("same", "transposed"), help="how square weights are stored that torch has as (in, out)")


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
    from torchspore.mindspore.train import checkpoint_tools, sharded_conversion

    if options.strategy is None:
        checkpoint_tools.check_is_no_other(options.output)
    for path in sharded_conversion.convert(options.source, options.output, options.source_strategy, options.strategy):
        print(translate("written: {path}").format(path=path))
    return 0


def _to_torch(options: argparse.Namespace) -> int:
    from torchspore.mindspore.train import checkpoint_tools

    if options.like is not None:
        return _to_or_from_target(options, "to_torch")
    _refuse_target_options(options)
    omitted, notes = checkpoint_tools.to_torch(options.file, options.output, options.keep_names, _cell(options), options.conv)
    return _report(options.output, omitted, notes)


def _from_torch(options: argparse.Namespace) -> int:
    from torchspore.mindspore.train import checkpoint_tools

    is_new = options.map or options.partial or options.convention or options.verify
    if is_new or (options.like is not None and not checkpoint_tools.is_known(options.like)):
        return _to_or_from_target(options, "from_torch")
    _refuse_target_options(options)
    try:
        omitted, notes = checkpoint_tools.from_torch(
            options.file, options.output, options.keep_names, options.like, _cell(options), options.conv)
    except ValueError:
        if options.like is None or options.keep_names or options.cell or options.conv:
            raise
        return _to_or_from_target(options, "from_torch")              # the names differ in more than the words of the two frameworks
    return _report(options.output, omitted, notes)


def _refuse_target_options(options: argparse.Namespace) -> None:
    """Raises ValueError for options that have no effect without a target."""
    names = [name for name in ("config", "map", "partial", "verify", "input", "fused", "matrices") if getattr(options, name)]
    if names:
        raise ValueError(message(f"--{names[0]} without --like", f"--like TARGET: {_TARGETS}"))


def _to_or_from_target(options: argparse.Namespace, direction: str) -> int:
    """Convert with a torch model or file as the other side; return 1 if the comparison of both models shows a difference."""
    import torchspore

    torchspore.install()
    sys.path.insert(0, "")
    from torchspore.torch_modules.weights import conversion

    if options.like is None:
        raise ValueError(message("--map, --partial, --convention and --verify", f"--like TARGET: {_TARGETS}"))
    if options.keep_names or options.conv:
        raise ValueError(message(f"--{'keep-names' if options.keep_names else 'conv'} with --like", "one of the two"))
    request = conversion.Request(
        options.like, options.config, options.cell, options.map, options.partial, options.fused, options.rotary, options.matrices,
        getattr(options, "convention", None), options.verify, options.input,
    )
    report = getattr(conversion, direction)(options.file, options.output, request)
    _report(options.output, report.omitted, report.notes)
    compared = report.comparison
    if compared is None:
        return 0
    is_equal = compared.is_equal(options.tolerance)
    text = translate("{state}: input {inputs}, largest difference {difference:.3g} in {result}, largest value {largest:.3g}, "
                     "tolerance {tolerance:g}")
    print(text.format(
        state=translate("verified") if is_equal else translate("DIFFERENT"), inputs=" ".join(compared.inputs),
        difference=compared.difference,
        result=compared.result, largest=compared.largest, tolerance=options.tolerance))
    if not is_equal:
        print(translate("The weights are converted, but the torch model computes other values. The notes list settings that differ."))
    return 0 if is_equal else DIFFERENT


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
