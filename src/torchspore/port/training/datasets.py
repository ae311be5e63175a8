"""Data sets as classes of torch.utils.data."""
from __future__ import annotations

import ast
from typing import Any

from torchspore.port.analysis.call import Call
from torchspore.port.rules.rule import Bound, NoRule, bind, declare, literal
from torchspore.port.rules.training import DATASETS
from torchspore.port.training import dataset_files
from torchspore.port.training.facts import Facts

_WITHOUT_EFFECT = frozenset("num_parallel_workers python_multiprocessing max_rowsize num_shards shard_id column_names".split())
_TRANSFORMS = {
    rule.name: rule for rule in (declare(*line.split(" = ")) for line in """
Rescale(rescale, shift) = @Rescale({rescale}, {shift})
Normalize(mean, std, is_hwc=True) = @Normalize({mean}, {std}<, is_hwc={is_hwc}>)
HWC2CHW() = @channels_first
Decode() = @decode_picture
CenterCrop(size) = @CenterCrop({size})
HorizontalFlip() = @flip_horizontally
VerticalFlip() = @flip_vertically
OneHot(num_classes, smoothing_rate=0.0) = @OneHotLabels({num_classes}<, {smoothing_rate}>)
ToTensor() = @to_tensor
""".strip().splitlines())
}
"""Transforms of pictures that have no choice of rounding or chance."""
_CASTS = frozenset("float32 float16 float64 int8 int16 int32 int64 uint8".split())
_CHANGES = ("batch", "map", "shuffle", "repeat", "rename", "project", "take", "skip")
"""The methods that return another data set and have a rule."""
_WITHOUT_RULE = frozenset("zip concat split filter padded_batch".split())
_READ = frozenset(("source", "data", "shuffle"))
_ITERATORS = frozenset("create_tuple_iterator create_dict_iterator get_dataset_size".split())


class DatasetWriter:
    """Writes data sets."""

    def __init__(self, rewriter: Any, facts: Facts) -> None:
        self.rewriter, self.facts = rewriter, facts

    def is_dataset(self, node: ast.expr | None, depth: int = 0) -> bool:
        """Return whether an expression is a data set of MindSpore."""
        if node is None or depth > 6:
            return False
        if isinstance(node, ast.Name):
            values = self.facts.origins(node)
            return bool(values) and any(self.is_dataset(value, depth + 1) for value in values if not _reads(value, node.id))
        if isinstance(node, ast.Attribute):
            return any(self.is_dataset(value, depth + 1) for value in self.facts.of_attribute(node))
        if not isinstance(node, ast.Call):
            return False
        if (self.facts.source.mindspore_name(node.func) or "").startswith("dataset."):
            return (self.facts.last_name(node)).endswith("Dataset")
        if isinstance(node.func, ast.Attribute) and node.func.attr in _CHANGES:
            return self.is_dataset(node.func.value, depth + 1)
        function = self.facts.function(node)
        return function is not None and any(self.is_dataset(value, depth + 1) for value in self.facts.returned(function))

    def expression(self, node: ast.Call) -> str | None:
        """Return the torch form of a call that creates, changes or reads a data set; None for another. Raises NoRule."""
        name = self.facts.last_name(node)
        if name.endswith("Dataset") and (self.facts.source.mindspore_name(node.func) or "").startswith("dataset."):
            return self._source(name, node)
        if (transform := self._transform(node)) is not None:
            return transform
        if not isinstance(node.func, ast.Attribute):
            return None
        attribute = node.func.attr
        if attribute in _ITERATORS:
            return self._read(attribute, node)
        if attribute in DATASETS and self.is_dataset(node.func.value):
            return str(getattr(self, f"_{attribute}")(Call(self.rewriter, node, bind(DATASETS[attribute], node)), node.func.value))
        if attribute in _WITHOUT_RULE and self.is_dataset(node.func.value):
            raise NoRule(f"the method {attribute} of data sets")
        return None

    def _source(self, name: str, node: ast.Call) -> str:
        if name not in DATASETS:
            raise NoRule(f"{name}: read its files by a torch.utils.data.Dataset")
        call = Call(self.rewriter, node, bind(DATASETS[name], node))
        arguments_with_rules = _WITHOUT_EFFECT | (dataset_files.READ if name in dataset_files.NAMES else _READ)
        for argument in call.bound.nodes:
            if call.has(argument) and argument not in arguments_with_rules:
                raise NoRule(f"the argument {argument}")
        if name == "NumpySlicesDataset":
            return call.fill("@Slices({data})")
        if name in dataset_files.NAMES:
            return dataset_files.expression(call, name)
        if not self._is_indexable(call.argument("source")):
            return call.fill("@FromGenerator({source})")
        names = literal(self.facts.value(call.argument("column_names")))
        return call.fill("{source}" if isinstance(names, (list, tuple)) and len(names) > 1 else "@Rows({source})")

    def _has_rows(self, source: ast.Call) -> bool:
        """Return whether a source has rows that are read by their numbers."""
        name = self.facts.last_name(source)
        if name == "NumpySlicesDataset" or name in dataset_files.NAMES:
            return True
        return self._is_indexable(bind(DATASETS[name], source).nodes["source"])

    def _is_indexable(self, node: ast.expr | None) -> bool:
        """Return whether a source has `__getitem__`. Raises NoRule if the file does not show it."""
        value = self.facts.value(node)
        if isinstance(value, (ast.List, ast.ListComp)):
            return True
        if isinstance(value, ast.Subscript) and isinstance(value.slice, ast.Slice):
            return self._is_indexable(value.value)
        passed = self.facts.passed(value) if isinstance(value, ast.Name) else []
        if passed:
            are_indexable = {self._is_indexable(each) for each in passed}
            if len(are_indexable) > 1:
                raise NoRule("sources of two kinds")
            return are_indexable.pop()
        if isinstance(value, (ast.Lambda, ast.GeneratorExp)):
            return False
        name = value.func.id if isinstance(value, ast.Call) and isinstance(value.func, ast.Name) else getattr(value, "id", "")
        target = (self.facts.file, name) if name in self.facts.file.defining else self.facts.file.resolve(name) if name else None
        if target is None:
            raise NoRule("a source that the file does not define")
        statement = target[0].defining[target[1]][-1]
        if isinstance(statement, ast.FunctionDef):
            return False
        methods = {item.name for item in getattr(statement, "body", []) if isinstance(item, ast.FunctionDef)}
        return "__getitem__" in methods

    def sources(self, node: ast.expr | None, depth: int = 0) -> list[ast.Call]:
        """Return the calls that create and change a data set, the source first. Raises NoRule if they are not in the file."""
        if depth > 20:
            raise NoRule("a data set whose source the file does not show")
        if isinstance(node, ast.Name):
            values = self.facts.assigned(node.id, node)
            before = [value for value in values if _is_earlier(value, node)] or values
            if before:
                return self.sources(before[-1], depth + 1)
        if isinstance(node, (ast.Name, ast.Attribute)) and (values := self.facts.origins(node)):
            return self._sources_of_all(values, depth)
        if isinstance(node, ast.Call):
            if (self.facts.source.mindspore_name(node.func) or "").startswith("dataset."):
                if self.facts.last_name(node) not in DATASETS:
                    raise NoRule(f"{self.facts.last_name(node)}: read its files by a torch.utils.data.Dataset")
                return [node]
            if isinstance(node.func, ast.Attribute):
                return [*self.sources(node.func.value, depth + 1), node]
            function = self.facts.function(node)
            if function is not None and self.facts.returned(function):
                return self.sources(self.facts.returned(function)[-1], depth + 1)
        raise NoRule("a data set whose source the file does not show")

    def _sources_of_all(self, values: list[ast.expr], depth: int) -> list[ast.Call]:
        """Return the sources of a data set that has several values, if they are read in the same way. Raises NoRule."""
        kinds = {(tuple(self.columns(value)), self.is_batched(value), self._order(value)) for value in values} if len(values) > 1 else set()
        if len(kinds) > 1:
            raise NoRule("data sets that are read in several ways")
        return self.sources(values[-1], depth + 1)

    def columns(self, node: ast.expr | None) -> list[str]:
        """Return the names of the columns, if the source lists them."""
        try:
            source, *changes = self.sources(node)
        except NoRule:
            return []
        names = self._columns_of_source(source)
        for change in changes:
            method = getattr(change.func, "attr", "")
            if names and method == "rename":
                old, new = (self._names_in(argument) for argument in bind(DATASETS["rename"], change).nodes.values())
                names = [dict(zip(old, new)).get(name, name) for name in names]
            elif names and method == "project":
                names = self._names_in(bind(DATASETS["project"], change).nodes["columns"])
            elif names and method == "map":
                names = self._columns_of_map(names, bind(DATASETS["map"], change))
        return names

    def _columns_of_map(self, names: list[str], bound: Bound) -> list[str]:
        """Return the columns behind a map. Raises NoRule."""
        if "output_columns" not in bound.nodes or literal(bound.nodes["output_columns"]) is None:
            return names
        taken = self._names_in(bound.nodes["input_columns"]) if "input_columns" in bound.nodes else names[:1]
        return dataset_files.replaced(names, taken, self._names_in(bound.nodes["output_columns"]))

    def _names_in(self, node: ast.expr | None) -> list[str]:
        """Return the names of columns in an argument. Raises NoRule if the file does not show them."""
        value = literal(self.facts.value(node))
        if isinstance(value, str):
            return [value]
        if not isinstance(value, (list, tuple)):
            raise NoRule("columns that the file does not name")
        return [str(name) for name in value]

    def _columns_of_source(self, source: ast.Call) -> list[str]:
        name = self.facts.last_name(source)
        bound = bind(DATASETS[name], source) if name in DATASETS else None
        if bound is not None and name in dataset_files.NAMES:
            return dataset_files.columns(self.facts, name, bound)
        value = literal(self.facts.value(bound.nodes.get("column_names"))) if bound is not None else None
        if isinstance(value, str):
            return [value]
        data = self.facts.value(bound.nodes.get("data")) if bound is not None else None
        if isinstance(data, ast.Dict):
            return [str(literal(key)) for key in data.keys]
        return [str(name) for name in value] if isinstance(value, (list, tuple)) else []

    def is_batched(self, node: ast.expr | None) -> bool:
        """Return whether the rows of a data set are batches."""
        return any(isinstance(call.func, ast.Attribute) and call.func.attr == "batch" for call in self.sources(node))

    def loader(self, node: ast.expr) -> str:
        """Return an expression whose items are batches of tensors."""
        text = str(self.rewriter.text(node))
        if self.is_batched(node):
            return text
        shuffle = self._order(node)
        return f"DataLoader({text}, batch_size=None{f', shuffle={shuffle}' if shuffle != 'False' else ''})"

    def _order(self, node: ast.expr) -> str:
        """Return torch's argument `shuffle` for a data set that is not batched yet."""
        calls = self.sources(node)
        name = self.facts.last_name(calls[0])
        call = Call(self.rewriter, calls[0], bind(DATASETS[name], calls[0]))
        is_indexable = self._has_rows(calls[0])
        changed = [each for each in calls[1:] if isinstance(each.func, ast.Attribute) and each.func.attr == "shuffle"]
        if changed:
            if not is_indexable:
                raise NoRule("the shuffle of a generator's rows")
            self.rewriter.note("MindSpore shuffles within a buffer, torch all rows")
            return "True"
        if not is_indexable:
            return "False"
        return dataset_files.order(call)

    def _batch(self, call: Call, node: ast.expr) -> str:
        for argument in ("per_batch_map", "input_columns", "output_columns"):
            if call.has(argument):
                raise NoRule(f"the argument {argument} of batch")
        if self.is_batched(node):
            raise NoRule("a batch of batches")
        if any(isinstance(each.func, ast.Attribute) and each.func.attr == "repeat" for each in self.sources(node)):
            raise NoRule("batch after repeat")
        shuffle = self._order(node)
        words = [str(self.rewriter.text(node)), f"batch_size={call.text('batch_size')}"]
        words += [f"shuffle={shuffle}"] if shuffle != "False" else []
        words += [f"drop_last={call.text('drop_remainder')}"] if call.has("drop_remainder") else []
        return f"DataLoader({', '.join(words)})"

    def _map(self, call: Call, node: ast.expr) -> str:
        for argument in ("column_order", "callbacks", "cache"):
            if call.has(argument):
                raise NoRule(f"the argument {argument} of map")
        if self.is_batched(node):
            raise NoRule("a map of batches")
        columns = self.columns(node)
        named = literal(self.facts.value(call.argument("input_columns"))) if call.has("input_columns") else columns[:1]
        named = [named] if isinstance(named, str) else named
        if not columns or not isinstance(named, (list, tuple)) or not set(named) <= set(columns):
            raise NoRule("a map of columns that the file does not name")
        self._columns_of_map(columns, call.bound)
        call.read.add("output_columns")
        operations = self._operations(call.argument("operations"))
        source = self.sources(node)[0]
        helper = call.helper("Mapped" if self._has_rows(source) else "MappedIterable")
        return f"{helper}({self.rewriter.text(node)}, {operations}, {[columns.index(name) for name in named]})"

    def _operations(self, node: ast.expr | None) -> str:
        """Return a list of functions of arrays. Raises NoRule for transforms of MindSpore that have none."""
        value = self.facts.value(node)
        if not isinstance(value, (ast.List, ast.Tuple)):
            return f"[{self._operation(node)}]"
        texts = [self._operation(operation) for operation in value.elts]
        return f"[{', '.join(texts)}]" if node is value else str(self.rewriter.text(node))

    def _operation(self, node: ast.expr | None) -> str:
        """Return a function of arrays. Raises NoRule."""
        value = self.facts.value(node)
        transform = self._transform(value)
        if transform is not None:
            return transform if node is value else str(self.rewriter.text(node))
        is_local = isinstance(value, ast.Lambda) or (isinstance(value, ast.Name) and value.id in self.facts.file.defining)
        if node is None or not is_local or self._uses_mindspore(value):
            name = self.facts.last_name(value) if value is not None else ""
            raise NoRule(f"{name or 'a transform of MindSpore'} in map: write it as a function of arrays")
        if isinstance(node, ast.Lambda):                     # of arrays
            return self.facts.source.text[slice(*self.facts.source.span(node))]
        return str(self.rewriter.text(node))

    def _transform(self, node: ast.expr | None) -> str | None:
        """Return the torch form of a call that creates a transform of MindSpore; None for another expression, or one without a rule."""
        name = self.facts.source.mindspore_name(node.func) if isinstance(node, ast.Call) else None
        if name is None or not name.startswith("dataset.") or not isinstance(node, ast.Call):
            return None
        last = name.rpartition(".")[2]
        if last == "TypeCast" and len(node.args) == 1:
            dtype = (self.facts.source.mindspore_name(node.args[0]) or "").rpartition(".")[2]
            return f'{self.rewriter.helper("TypeCast")}("{dtype}")' if dtype in _CASTS else None
        rule = _TRANSFORMS.get(last)
        if rule is None:
            return None
        assert isinstance(rule.template, str)
        return Call(self.rewriter, node, bind(rule.parameters, node)).fill(rule.template)

    def _uses_mindspore(self, node: Any) -> bool:
        body = self.facts.file.defining[node.id][-1] if isinstance(node, ast.Name) else node
        names = [part for part in ast.walk(body) if isinstance(part, (ast.Name, ast.Attribute))]
        return any(self.facts.source.mindspore_name(part) is not None for part in names)

    def _repeat(self, call: Call, node: ast.expr) -> str:
        if not call.has("count") or literal(call.argument("count")) == -1:
            raise NoRule("repeat without a number")
        return call.fill(f"@Repeated({self.loader(node)}, {{count}})") if literal(call.argument("count")) != 1 else self.loader(node)

    def _rename(self, call: Call, node: ast.expr) -> str:
        if not self.columns(node):
            raise NoRule("a rename of columns that the file does not name")
        call.read.update(call.bound.nodes)
        return str(self.rewriter.text(node))

    def _project(self, call: Call, node: ast.expr) -> str:
        columns, names = self.columns(node), self._names_in(call.argument("columns"))
        if self.is_batched(node) or not set(names) <= set(columns):
            raise NoRule("a project of batches, or of columns that the file does not name")
        helper = call.helper("Columns" if self._has_rows(self.sources(node)[0]) else "IterableColumns")
        return f"{helper}({self.rewriter.text(node)}, {[columns.index(name) for name in names]})"

    def _take(self, call: Call, node: ast.expr) -> str:
        if not call.has("count") or call.value("count") == -1:
            return str(self.rewriter.text(node))
        return self._part(call, node, "limited", "FirstBatches")

    def _skip(self, call: Call, node: ast.expr) -> str:
        return self._part(call, node, "without_first", "LaterBatches")

    def _part(self, call: Call, node: ast.expr, of_rows: str, of_batches: str) -> str:
        """Return some rows, or some batches. Raises NoRule for rows in random order, which are others in each epoch."""
        is_batched = self.is_batched(node)
        if not is_batched and (not self._has_rows(self.sources(node)[0]) or self._order(node) != "False"):
            raise NoRule("some rows of a generator, or of rows in random order: write shuffle=False, or take batches")
        return f"{call.helper(of_batches if is_batched else of_rows)}({self.rewriter.text(node)}, {call.text('count')})"

    def _shuffle(self, call: Call, node: ast.expr) -> str:
        if self.is_batched(node):
            raise NoRule("a shuffle of batches")
        call.read.add("buffer_size")
        return str(self.rewriter.text(node))

    def _read(self, attribute: str, node: ast.Call) -> str:
        receiver = node.func.value  # type: ignore[attr-defined]
        if attribute == "get_dataset_size":
            return f"len({self.rewriter.text(receiver)})"
        numpy = [keyword.value for keyword in node.keywords if keyword.arg == "output_numpy"]
        numpy += node.args[1:2] if attribute == "create_dict_iterator" else node.args[2:3]
        has_arrays = literal(numpy[0]) if numpy else False
        if not isinstance(has_arrays, bool):
            raise NoRule("an output_numpy that is not a literal")
        if attribute == "create_tuple_iterator" and self._has_columns(node):
            raise NoRule("the argument columns of create_tuple_iterator")
        loader = self.loader(receiver)
        loader = f"{self.rewriter.helper('ArraysOf')}({loader})" if has_arrays else loader
        around = self.facts.parents.get(node)
        is_next = isinstance(around, ast.Call) and isinstance(around.func, ast.Name) and around.func.id == "next"
        if attribute == "create_tuple_iterator":
            return f"iter({loader})" if is_next else loader
        columns = self.columns(receiver)
        if not columns:
            raise NoRule("create_dict_iterator of columns that the file does not name")
        if not is_next and not isinstance(around, (ast.For, ast.comprehension)):             # several loops may read it
            return f"{self.rewriter.helper('NamedBatches')}({loader}, {columns!r})"
        batch = self.facts.fresh("columns", "columns_of_batch")
        return f"(dict(zip({columns!r}, {batch})) for {batch} in {loader})"


    @staticmethod
    def _has_columns(node: ast.Call) -> bool:
        """Return whether create_tuple_iterator chooses columns."""
        chosen = [*node.args[:1], *(keyword.value for keyword in node.keywords if keyword.arg == "columns")]
        return bool(chosen) and literal(chosen[0]) is not None


def _reads(node: ast.AST, name: str) -> bool:
    return any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(node))


def _is_earlier(node: ast.expr, other: ast.expr) -> bool:
    return (node.end_lineno or node.lineno, node.end_col_offset or 0) <= (other.lineno, other.col_offset)
