"""Graph mode equals PyNative call by call, by whatever road a program reads Python's state, and each mark it leaves is left once."""
from __future__ import annotations

import builtins
import types
from pathlib import Path

import mindspore as ms
import pytest
from mindspore import Tensor, nn

import torchspore
from tests.unit.graph.state.programs import CONTEXTS, EFFECTS, ROADS, Road, history, load, sample, text_of
from torchspore.context.public import scope

QUICK = {(road.name, context, is_effect) for number, (road, context, is_effect) in enumerate(sample(7)) if number % 3 == 0}
QUICK |= {(name, "cell", False) for name in (
    "module", "class_attribute", "class_through_object", "array_large", "list_long", "list_deep", "closure", "default", "slots", "deque",
    "generator", "environment", "builtin_replaced", "class_of_an_object_replaced", "bases_replaced", "builtin_hidden",
    "variable_that_comes", "import_replaced", "tensor_attribute", "parameter_attribute", "parameter_name", "parameter_flag",
    "library_function_replaced", "builtin_of_all_replaced", "operator_replaced", "argv", "argv_appended", "decimal_context", "numpy_errors",
    "numpy_format", "module_by_computed_name", "single_dispatch", "flags_of_a_cell",
    "recursion_limit", "garbage_collector", "logger_asked", "logger_above",
    "dict_values", "bound_get", "weak_reference", "ctypes_array", "text_stream", "tensor_method_replaced", "library_class_attribute",
    "library_method_that_comes", "registered", "registered_with_a_librarys", "subclasses", "class_name", "globals_computed", "globals_get",
    "cells_method_by_computed_name", "class_by_computed_name", "names_of_a_module", "cells_method_of_its_class", "cells_method_in_its_vars",
    "object_by_computed_name", "object_in_vars", "module_that_makes_names", "method_of_a_cell_that_is_made", "copied_in_a_library",
    "class_of_a_cell_replaced", "class_of_a_cell_asked", "own_module", "module_by_its_name",
)}
QUICK |= {(name, "jit", True) for name in ("array", "counter", "random", "deque", "class", "module", "slots", "messages")}
"""The programs that `make test` runs; the others are slow tests."""


def cases() -> list[object]:
    results: list[object] = []
    for roads, is_effect in ((ROADS, False), (EFFECTS, True)):
        for road in roads:
            for context in CONTEXTS:
                marks = [] if (road.name, context, is_effect) in QUICK else [pytest.mark.slow]
                name = f"{road.name}-{context}-{'effect' if is_effect else 'read'}"
                results.append(pytest.param(road, context, is_effect, marks=marks, id=name))
    return results


@pytest.mark.parametrize(("road", "context", "is_effect"), cases())
def test_graphs_see_the_state_that_pynative_sees(road: Road, context: str, is_effect: bool, tmp_path: Path) -> None:
    text = text_of(road, context, is_effect)
    expected = history(text.replace("@ms.jit\n", ""), tmp_path, 1)
    assert history(text, tmp_path, 0) == expected
    if not is_effect and road.name not in ("cached_stale", "cached_property"):
        assert len({str(shown) for shown in expected}) > 1, "the change makes no difference: the program shows nothing"


loss = 0.0


def test_an_attribute_asks_for_no_variable_of_its_name() -> None:
    class Scored(nn.Cell):
        def __init__(self) -> None:
            super().__init__()
            self.loss, self.factor = nn.MSELoss(), 2.0

        def construct(self, x):
            return self.loss(x * self.factor, x)

    global loss
    ms.set_context(mode=ms.GRAPH_MODE)
    net = Scored()
    for _ in range(4):
        loss = loss + float(net(Tensor([1.0])))
    ms.set_context(mode=ms.PYNATIVE_MODE)
    assert loss == 4.0 and [graph.runs for graph in torchspore.graphs(net)] == [4]


def test_a_computed_name_asks_for_nothing_else() -> None:
    settings = types.ModuleType("settings")
    settings.width1, settings.log = 2.0, []                      # type: ignore[attr-defined]

    class Named(nn.Cell):
        def construct(self, x):
            return x * getattr(settings, f"width{x.ndim}")

    net = Named()
    with scope(mode=ms.GRAPH_MODE):
        for _ in range(4):
            assert net(Tensor([1.0])).asnumpy() == 2.0
            settings.log.append(1)
    assert [graph.runs for graph in torchspore.graphs(net)] == [4] and getattr is GETATTR is builtins.getattr


GETATTR = getattr

SINGLE_GRAPH = (
    "class_of_a_cell_replaced", "class_of_a_cell_asked",
    "cells_method_of_its_class", "cells_method_in_its_vars", "object_by_computed_name", "path_of_names", "module_that_makes_names",
    "tensor_method_replaced", "library_class_attribute", "registered", "subclasses", "class_name", "globals_get", "class_by_computed_name",
    "names_of_a_module", "names_of_a_class", "method_by_computed_name", "registered_with_a_librarys",
)


@pytest.mark.parametrize("name", SINGLE_GRAPH)
def test_what_is_watched_costs_no_graph(name: str, tmp_path: Path) -> None:
    road = next(road for road in ROADS if road.name == name)
    ms.set_context(mode=ms.GRAPH_MODE)
    module = load(text_of(road, "jit"), tmp_path)
    for i in (2, 4):
        module.call(), module.call(), module.change(i)
    ms.set_context(mode=ms.PYNATIVE_MODE)
    assert len(torchspore.graphs(module.run)) == 2
