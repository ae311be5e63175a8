"""`torchspore completion SHELL`: print a script that completes commands, options and files in a shell."""
from __future__ import annotations

import sys
from collections.abc import Sequence

from torchspore.base.text import with_hint
from torchspore.cli.grammar import Parser, returns_exit_code, tree, word_of
from torchspore.translations import translate

MISSING_PACKAGE = 1
SHELLS = ("bash", "zsh", "tcsh")


def parser() -> Parser:
    """Return the parser of the command."""
    command = Parser(
        prog="torchspore completion",
        description="Prints a script that completes commands, options and files. It needs the package shtab.",
        examples=["torchspore completion bash > ~/.local/share/bash-completion/completions/torchspore",
                  "torchspore completion zsh > ~/.zfunc/_torchspore"],
        hints={"SHELL": "write `torchspore completion bash`"},
    )
    command.add_argument("shell", metavar="SHELL", type=word_of(*SHELLS), help="bash, zsh or tcsh")
    return command


@returns_exit_code
def run(words: Sequence[str]) -> int:
    """Run the command; return 1 if the package shtab is missing."""
    options = parser().parse_args(list(words))
    try:
        import shtab
    except ImportError:
        text = translate("torchspore completion: it needs the package shtab.")
        print(with_hint(text, "pip install 'torchspore[completion]'"), file=sys.stderr)
        return MISSING_PACKAGE
    from torchspore.cli.main import COMMANDS

    print(shtab.complete(tree(COMMANDS), shell=options.shell))
    return 0
