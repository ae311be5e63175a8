"""The constructs that jit_syntax_level STRICT and COMPATIBLE refuse, and the error texts."""
from __future__ import annotations

import ast
from collections.abc import Iterable
from pathlib import Path
from types import CellType, CodeType, FunctionType

from torchspore.base.text import with_hint
from torchspore.errors import CompileError
from torchspore.graph.capture.converted_code import original
from torchspore.graph.control_flow import source
from torchspore.graph.control_flow import syntax as names
from torchspore.graph.refusal import Kind, Refusal
from torchspore.translations import translatable, translate

_STATEMENTS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Try: (translatable("`try`"), translatable("test with `if` what could go wrong")),
    ast.With: (translatable("`with`"), translatable("enter the block around the call")),
    ast.Import: (translatable("`import`"), translatable("import at the top of the file")),
    ast.ImportFrom: (translatable("`import`"), translatable("import at the top of the file")),
    ast.ClassDef: (translatable("`class`"), translatable("define the class outside")),
    ast.Delete: (translatable("`del`"), translatable("leave the name alone")),
}
_EXPRESSIONS: dict[type[ast.AST], tuple[str, str]] = {
    ast.Set: (translatable("a set"), translatable("write a tuple or a list")),
    ast.SetComp: (translatable("a set"), translatable("write a list")),
    ast.GeneratorExp: (translatable("a generator"), translatable("write a list")),
}

_ATTRIBUTE = ("In JIT strict mode, if need to modify a member attribute of a class with self.attribute, "
              "the member attribute must be of the Parameter type.")


def error(name: str, refusal: Refusal, syntax: str, saved: Path | None) -> CompileError:
    """The compile error for a call of `name` that was refused; `saved` is the file that shows the graph up to there."""
    reason, _, sides = refusal.reason.partition("\n")
    hint = translate(refusal.hint or refusal.kind.hint)
    text = translate("{line}: {name} {reason}, which jit_syntax_level {level} does not allow")
    text = text.format(line=refusal.line, name=name, reason=reason.removesuffix(":"), level=syntax)
    text += ":\n" + sides if sides else translate(".")
    if refusal.kind is Kind.WRITES_ATTRIBUTE:
        text += " " + _ATTRIBUTE
    if saved is not None:
        text += "\n\n" + translate("The graph up to there: {file}").format(file=saved)
    return refusal.kind.error(with_hint(text, hint))


def check(ran: Iterable[CodeType]) -> None:
    """Check the source of the functions that ran for statements that act only while tracing. Raises Refusal."""
    for code in {original(code): None for code in ran}:
        function = FunctionType(code, {}, code.co_name, None, tuple(CellType() for _ in code.co_freevars))
        function.__qualname__ = getattr(code, "co_qualname", code.co_name)
        try:
            node = source.definition(function)
        except source.NoSource:
            continue
        for part in names.nodes_in_scope(ast.iter_child_nodes(node)):
            _look(part, code)


def _look(part: ast.AST, code: CodeType) -> None:
    reason = _STATEMENTS.get(type(part)) or _EXPRESSIONS.get(type(part))
    if reason is None:
        return
    what, hint = reason
    line = f"{code.co_filename}:{getattr(part, 'lineno', code.co_firstlineno)}"
    refusal = Refusal(translate("has {construct}").format(construct=translate(what)), line)
    refusal.hint = translate("{hint}, or leave jit_syntax_level at LAX").format(hint=translate(hint))
    raise refusal
