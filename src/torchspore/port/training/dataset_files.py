"""Data sets of files: the helper that reads each, and its columns."""
from __future__ import annotations

import ast
from typing import Any

from torchspore.port.analysis.call import Call
from torchspore.port.rules.rule import ANY, Bound, NoRule, literal

_TEMPLATES = {
    "MnistDataset": "@Mnist({dataset_dir}<, {usage}>)",
    "FashionMnistDataset": "@Mnist({dataset_dir}<, {usage}>)",
    "Cifar10Dataset": "@Cifar10({dataset_dir}<, {usage}>)",
    "Cifar100Dataset": "@Cifar100({dataset_dir}<, {usage}>)",
    "ImageFolderDataset": "@ImageFolder({dataset_dir}<, decode={decode}><, extensions={extensions}><, class_indexing={class_indexing}>)",
    "CSVDataset": "@CsvRows({dataset_files}, {column_defaults}<, delimiter={field_delim}>)",
    "MindDataset": "@MindRecord({dataset_files}<, {columns_list}>)",
}
_COLUMNS = {
    "MnistDataset": ["image", "label"], "FashionMnistDataset": ["image", "label"], "Cifar10Dataset": ["image", "label"],
    "Cifar100Dataset": ["image", "coarse_label", "fine_label"], "ImageFolderDataset": ["image", "label"],
}
_LISTED = {"CSVDataset": "column_names", "MindDataset": "columns_list"}
"""The argument that lists the columns."""
NAMES = frozenset(_TEMPLATES)
READ = frozenset(
    "dataset_dir usage decode extensions class_indexing dataset_files field_delim column_defaults columns_list num_samples shuffle".split())
"""The arguments that have an effect in the port."""


def expression(call: Call, name: str) -> str:
    """Return the torch form of a data set of files. Raises NoRule."""
    if name == "CSVDataset" and not call.has("column_defaults"):
        raise NoRule("CSVDataset without column_defaults, whose columns are texts")
    text = call.fill(_TEMPLATES[name])
    if name == "CSVDataset" and (not call.has("column_names") or call.value("column_names") is None):
        text = f"{text[:-1]}, has_names=True)"
    if not call.has("num_samples"):
        return text
    if call.value("shuffle") is not False:
        raise NoRule("num_samples of rows in random order: write shuffle=False")
    return f"{call.helper('limited')}({text}, {call.text('num_samples')})"


def columns(facts: Any, name: str, bound: Bound) -> list[str]:
    """Return the names of the columns; none if the file does not show them."""
    if name in _COLUMNS:
        return _COLUMNS[name]
    value = literal(facts.value(bound.nodes.get(_LISTED[name])))
    return [str(each) for each in value] if isinstance(value, (list, tuple)) else []


def order(call: Call) -> str:
    """Return torch's argument `shuffle` for the argument `shuffle` of a data set. Raises NoRule for an order by files."""
    if not call.has("shuffle") or call.value("shuffle") is None:
        return "True"
    node = call.argument("shuffle")
    if call.value("shuffle") is ANY and isinstance(node, ast.Attribute) and node.attr in ("GLOBAL", "FILES", "INFILE"):
        if node.attr != "GLOBAL":
            raise NoRule(f"Shuffle.{node.attr}: write shuffle=True or shuffle=False")
        return "True"
    return call.text("shuffle")


def replaced(names: list[str], taken: list[str], outputs: list[str]) -> list[str]:
    """Return the columns of a map: at the same positions if the numbers agree, otherwise before the others. Raises NoRule."""
    if set(outputs) & (set(names) - set(taken)) or len(set(outputs)) < len(outputs):
        raise NoRule("output_columns that replace other columns")
    if len(taken) == len(outputs):
        return [dict(zip(taken, outputs)).get(name, name) for name in names]
    return outputs + [name for name in names if name not in taken]
