"""`torchspore trace view`: show a trace as one page that a browser opens without a network, and as text on the terminal."""
from __future__ import annotations

import sys
import webbrowser
from collections.abc import Sequence
from pathlib import Path

from torchspore.base.files import write_atomically
from torchspore.base.suggest import closest
from torchspore.base.text import with_hint
from torchspore.cli.grammar import USAGE_ERROR, Parser, returns_exit_code

PAGE = "trace_view.html"


@returns_exit_code
def run(words: Sequence[str]) -> int:
    """Run the command; return 2 if the trace does not exist or the page can't be written."""
    if words and not words[0].startswith("-") and words[0] != "view":
        near = closest(words[0], ("view",))
        print(with_hint(f"torchspore trace {words[0]}: expected view.", f"write `torchspore trace view {'PATH' if near else words[0]}`"),
              file=sys.stderr)
        return USAGE_ERROR
    options = parser().parse_args(list(words))
    from torchspore.view import trace

    try:
        file = trace.find(Path(options.path).expanduser())
        content = trace.read(file)
    except trace.NotATrace as error:
        hint = "name the folder that mindspore.Profiler or enable_profiling wrote, or a trace in Chrome's format"
        print(with_hint(f"torchspore trace view {options.path}: {error}.", hint), file=sys.stderr)
        return USAGE_ERROR
    except OSError as error:
        print(f"torchspore trace view {options.path}: it can't be read ({error.strerror or type(error).__name__}).", file=sys.stderr)
        return USAGE_ERROR
    page = Path(options.output).expanduser() if options.output else file.with_name(PAGE)
    try:
        write_atomically(page, trace.page(content, file))
    except OSError as error:
        text = f"torchspore trace view: {page} can't be written ({error.strerror or type(error).__name__})."
        print(with_hint(text, "write --output FILE for another path"), file=sys.stderr)
        return USAGE_ERROR
    for line in trace.lines(content):
        print(line)
    print(f"\nwritten: {page}")
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
