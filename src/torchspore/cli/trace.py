"""`torchspore trace view`: show a trace as one page that a browser opens without a network, and as text on the terminal."""
from __future__ import annotations

import sys
import webbrowser
from collections.abc import Sequence
from pathlib import Path

from torchspore.base.files import write_atomically
from torchspore.base.suggest import closest
from torchspore.base.text import message, with_hint
from torchspore.cli.grammar import USAGE_ERROR, Parser, returns_exit_code
from torchspore.translations import translate

PAGE = "trace_view.html"


@returns_exit_code
def run(words: Sequence[str]) -> int:
    """Run the command; return 2 if the trace does not exist or the page can't be written."""
    if words and not words[0].startswith("-") and words[0] != "view":
        near = closest(words[0], ("view",))
        hint = translate("write `{command}`").format(command=f"torchspore trace view {'PATH' if near else words[0]}")
        print(message(f"torchspore trace {words[0]}", "view", hint=hint), file=sys.stderr)
        return USAGE_ERROR
    options = parser().parse_args(list(words))
    from torchspore.html_pages import trace

    try:
        file = trace.find(Path(options.path).expanduser())
        content = trace.read(file)
    except trace.NotATrace as error:
        hint = translate("name the folder that mindspore.Profiler or enable_profiling wrote, or a trace in Chrome's format")
        text = translate("{setting}: {reason}.").format(setting=f"torchspore trace view {options.path}", reason=error)
        print(with_hint(text, hint), file=sys.stderr)
        return USAGE_ERROR
    except OSError as error:
        text = translate("torchspore trace view {path}: it can't be read ({reason}).")
        print(text.format(path=options.path, reason=error.strerror or type(error).__name__), file=sys.stderr)
        return USAGE_ERROR
    page = Path(options.output).expanduser() if options.output else file.with_name(PAGE)
    try:
        write_atomically(page, trace.page(content, file))
    except OSError as error:
        text = translate("{command}: {path} can't be written ({reason}).").format(
            command="torchspore trace view", path=page, reason=error.strerror or type(error).__name__)
        print(with_hint(text, translate("write --output FILE for another path")), file=sys.stderr)
        return USAGE_ERROR
    for line in trace.lines(content):
        print(line)
    print(f"\n{translate('written: {path}').format(path=page)}")
    if options.open or (sys.stdout.isatty() and not options.no_open):
        webbrowser.open(page.absolute().as_uri())
    return 0


def parser() -> Parser:
    """Return the parser of the command."""
    command = Parser(prog="torchspore trace", description="Shows a profile as a page.", examples=["torchspore trace view profiler/"])
    actions = command.add_subparsers(required=True, metavar="view", parser_class=Parser)
    view = actions.add_parser("view", help="writes one HTML page: timeline, operators, where a step's time goes, memory")
    view.add_argument("path", help="a profile's folder, or a trace: of torchspore, MindSpore or torch (.json, .json.gz)")
    view.add_argument("--output", metavar="FILE", help=f"the path of the page (default: {PAGE} next to the trace)")
    view.add_argument("--open", action="store_true", help="opens the page in the browser, which is the default on a terminal")
    view.add_argument("--no-open", action="store_true", help="does not open the browser")
    return command
