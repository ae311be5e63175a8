"""Pair the operators of two dumps that compute the same.

Operators with the same name on both sides are pairs. MindSpore's graphs split or rename many operators: the last operators of a forward
layer are a pair if their results have the same shape, and the gradients and the optimizer of a layer are each compared as one unit.
"""
from __future__ import annotations

import hashlib
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from torchspore.base import operator_names
from torchspore.cli.dump_comparison.dumps import Dump, Operator, Pair, TensorComparison, Unreadable, array, compare

_NO_UPDATES = ("Assign", "AssignAdd", "AssignSub", "Mul", "Add", "Sub", "Gather", "Cast")
_GRADIENT_OF = re.compile(r"_?Grad_[A-Za-z0-9]+$")


def compare_dumps(first_dump: Dump, second_dump: Dump, rtol: float, atol: float) -> list[Pair]:
    """Return all pairs with their compared results; outputs that differ but that no differing operator reads do not count."""
    result = []
    for iteration in sorted(first_dump.iterations.keys() & second_dump.iterations.keys()):
        listed = [
            Pair(iteration, first, second, by, _compare_pair(first, second, by, rtol, atol))
            for first, second, by in _align(first_dump.iterations[iteration], second_dump.iterations[iteration])
        ]
        _settle_unused_outputs(listed)
        result += listed
    return result


def pairs(first_dump: Dump, second_dump: Dump) -> Iterator[tuple[int, Operator, Operator, str]]:
    """Yield the paired operators in the order of the first dump: (iteration, first, second, what they were paired by)."""
    for iteration in sorted(first_dump.iterations.keys() & second_dump.iterations.keys()):
        for first, second, by in _align(first_dump.iterations[iteration], second_dump.iterations[iteration]):
            yield iteration, first, second, by


def _align(ours: list[Operator], theirs: list[Operator]) -> list[tuple[Operator, Operator, str]]:
    biased = _pair_biases(ours, theirs)
    taken = {id(operator) for pair in biased for operator in pair}
    layers = _differently_split(ours, theirs)
    unpaired = [operator for operator in ours if id(operator) not in taken and id(operator) not in layers]
    unpaired_theirs = [operator for operator in theirs if id(operator) not in taken and id(operator) not in layers]
    pairs_by_name = _pair_by_name(unpaired, unpaired_theirs)
    result = [(operator, pairs_by_name[operator.name], "name") for operator in unpaired if operator.name in pairs_by_name]
    result = [(first, second, by if first.plain_name == second.plain_name else "scope") for first, second, by in result]
    result += [(first, second, "scope") for first, second in biased]
    taken |= {id(operator) for pair in result for operator in pair[:2]}
    result += [(first, second, "scope") for first, second in _pair_last_of_scopes(ours, theirs, taken)]
    taken |= {id(operator) for pair in result for operator in pair[:2]}
    result += [(first, second, "layer") for first, second in _pair_layers(ours, theirs, taken)]
    return sorted(result, key=lambda pair: pair[0].order)


def _is_compared_by_layer(operator: Operator) -> bool:
    """Return whether an operator belongs to a gradient or to an optimizer, whose operators are compared together."""
    return operator.scope.startswith("Gradients") or "optimizer-" in operator.scope


def _differently_split(ours: list[Operator], theirs: list[Operator]) -> set[int]:
    """Return the ids of optimizer updates that one side runs for all Parameters at once or that another framework ran.

    MindSpore's CPU kernels do not fill the outputs of an update; they write the Parameter, which is an input.
    """
    counts = [Counter(operator.plain_name for operator in side) for side in (ours, theirs)]
    is_foreign = any(operator.line for operator in ours) != any(operator.line for operator in theirs)
    return {
        id(operator) for operator in (*ours, *theirs)
        if _is_update(operator) and (is_foreign or counts[0][operator.plain_name] != counts[1][operator.plain_name])
    }


def _is_update(operator: Operator) -> bool:
    """Return whether an operator of an optimizer updates Parameters; others store the step and the powers of beta."""
    return "optimizer-" in operator.scope and operator.kind not in _NO_UPDATES


def _pair_biases(ours: list[Operator], theirs: list[Operator]) -> list[tuple[Operator, Operator]]:
    """Pair each operator that adds a bias itself with the BiasAdd of the same layer on the other side."""
    result = []
    for side, other_side in ((ours, theirs), (theirs, ours)):
        adds, producers = defaultdict(list), defaultdict(list)
        for other in other_side:
            if other.kind == "BiasAdd":
                adds[other.scope].append(other)
        has_adds = {operator.scope for operator in side if operator.kind == "BiasAdd"}
        for operator in side:
            if operator_names.includes_bias(operator.kind) and operator.scope in adds and operator.scope not in has_adds:
                producers[operator.scope].append(operator)
        for scope, listed in producers.items():
            if len(listed) == len(adds[scope]):
                both = zip(listed, adds[scope]) if side is ours else zip(adds[scope], listed)
                result += list(both)
    return result


def _pair_by_name(ours: list[Operator], theirs: list[Operator]) -> dict[str, Operator]:
    """Map each name of ours to its partner: by the number of the call if both names have it, otherwise by its turn."""
    theirs_by_name = {other.name: other for other in theirs}
    partners = {operator.name: theirs_by_name[operator.name] for operator in ours if operator.name in theirs_by_name}
    turns: Counter[str] = Counter()
    by_turn = {}
    for other in theirs:
        if other.name not in partners:
            by_turn[other.plain_name, turns[other.plain_name]] = other
            turns[other.plain_name] += 1
    turns.clear()
    for operator in ours:
        if operator.name not in partners:
            partner = by_turn.get((operator.plain_name, turns[operator.plain_name]))
            turns[operator.plain_name] += 1
            if partner is not None:
                partners[operator.name] = partner
    return partners


def _pair_last_of_scopes(ours: list[Operator], theirs: list[Operator], taken: set[int]) -> Iterator[tuple[Operator, Operator]]:
    """Yield the last operators of a forward layer if their results have the same shape."""
    last_of_theirs = {other.scope: other for other in theirs}
    last_of_ours = {operator.scope: operator for operator in ours}
    for scope, first in last_of_ours.items():
        second = last_of_theirs.get(scope)
        if scope and second is not None and not {id(first), id(second)} & taken and not _is_compared_by_layer(first):
            if _shape(first) is not None and _shape(first) == _shape(second):
                yield first, second


def _pair_layers(ours: list[Operator], theirs: list[Operator], taken: set[int]) -> Iterator[tuple[Operator, Operator]]:
    """Yield the remaining operators of each gradient and optimizer, joined to one operator on each side."""
    sides: list[dict[str, list[Operator]]] = []
    for side in (ours, theirs):
        layers: dict[str, list[Operator]] = defaultdict(list)
        for operator in side:
            if id(operator) not in taken and _is_compared_by_layer(operator):
                layers[_GRADIENT_OF.sub("", operator.scope)].append(operator)
        sides.append(layers)
    for layer, listed in sides[0].items():
        if layer in sides[1]:
            yield _join(listed), _join(sides[1][layer])


def _join(operators: list[Operator]) -> Operator:
    """Return one operator with the results of all `operators`, numbered consecutively, at the position of the last of them."""
    if len(operators) == 1:
        return operators[0]
    last = operators[-1]
    names = ", ".join(dict.fromkeys(operator.full_name for operator in operators))
    joined = Operator(last.kind, last.name, names, last.order, last.line, last.note, members=tuple(operators))
    slot = 0
    for operator in operators:
        for key in sorted({*operator.files, *operator.statistics}):
            if key[0] == "output":
                if key in operator.files:
                    joined.files["output", slot] = operator.files[key]
                if key in operator.statistics:
                    joined.statistics["output", slot] = operator.statistics[key]
                slot += 1
    return joined


def _shape(operator: Operator) -> tuple[int, ...] | None:
    path = operator.files.get(("output", 0))
    try:
        return None if path is None else array(path).shape
    except Unreadable:
        return None


# ---- results

def _compare_pair(first: Operator, second: Operator, by: str, rtol: float, atol: float) -> list[TensorComparison]:
    """Compare the outputs, or the inputs if no outputs were dumped."""
    if by == "layer" and "optimizer-" in first.scope:
        return _compare_updates(first, second, rtol, atol)
    if by == "layer":
        return _compare_layer(first, second, rtol, atol)
    results = compare(first, second, "output", rtol, atol)
    if by == "scope":
        results = results[:1]
    return results or (compare(first, second, "input", rtol, atol) if by == "name" else [])


def _compare_layer(first: Operator, second: Operator, rtol: float, atol: float) -> list[TensorComparison]:
    """Compare the outputs of two sets of operators: for each size, as many must agree as the side with fewer of them has."""
    result = []
    sizes = [_slots_by_size(operator) for operator in (first, second)]
    for size in sizes[0].keys() & sizes[1].keys():
        ours, theirs = list(sizes[0][size]), list(sizes[1][size])
        needed = min(len(ours), len(theirs))
        departing = []
        for slot in ours:
            tried = [(_compare_slots(first, second, slot, partner, rtol, atol), partner) for partner in theirs]
            agreeing = next(((item, partner) for item, partner in tried if item.state in ("equal", "close")), None)
            if agreeing is not None:
                result.append(agreeing[0])
                theirs.remove(agreeing[1])
                needed -= 1
            elif tried:
                departing.append(min(tried, key=lambda item: item[0].largest)[0])
        result += departing[:max(needed, 0)]
    return sorted(result, key=lambda item: item.slot)


def _compare_updates(first: Operator, second: Operator, rtol: float, atol: float) -> list[TensorComparison]:
    """Compare the updated Parameters: each update of the side with more of them has its Parameter among the outputs of the other side.

    The Parameter is the first output of an update, or its first input after the update.
    """
    sides = [operator.members or (operator,) for operator in (first, second)]
    is_turned = len(sides[0]) > len(sides[1])
    updates, outputs = (sides[0], second) if is_turned else (sides[1], first)
    sizes = _slots_by_size(outputs)
    result = []
    for slot, update in enumerate(updates):
        tried = []
        for key in (("output", 0), ("input", 0)):
            for partner in sizes.get(_size(update, key) or 0, ()):
                pair = (_single(update, key, slot), _single(outputs, ("output", partner), slot))
                tried.append(compare(*(pair if is_turned else pair[::-1]), "output", rtol, atol)[0])
        if tried:
            result.append(min(tried, key=lambda item: (item.state not in ("equal", "close"), item.largest)))
    return result


def _compare_slots(first: Operator, second: Operator, slot: int, partner: int, rtol: float, atol: float) -> TensorComparison:
    return compare(_single(first, ("output", slot), slot), _single(second, ("output", partner), slot), "output", rtol, atol)[0]


def _single(operator: Operator, key: tuple[str, int], slot: int) -> Operator:
    """Return an operator with one tensor of `operator` as its output in this slot."""
    single = Operator(operator.kind, operator.name, operator.full_name, operator.order)
    if key in operator.files:
        single.files["output", slot] = operator.files[key]
    if key in operator.statistics:
        single.statistics["output", slot] = operator.statistics[key]
    return single


def _slots_by_size(operator: Operator) -> dict[int, list[int]]:
    """Return the output slots by their number of values."""
    sizes: dict[int, list[int]] = defaultdict(list)
    for side, slot in sorted({*operator.files, *operator.statistics}):
        size = _size(operator, (side, slot)) if side == "output" else None
        if size is not None:
            sizes[size].append(slot)
    return sizes


def _size(operator: Operator, key: tuple[str, int]) -> int | None:
    """Return the number of values of a tensor, or None if it is unknown."""
    if key in operator.files:
        try:
            return array(operator.files[key]).size
        except Unreadable:
            return None
    if key not in operator.statistics:
        return None
    lengths = re.findall(r"\d+", operator.statistics[key].get("Shape", ""))
    return math.prod(int(length[:9]) for length in lengths[:32])


def _settle_unused_outputs(listed: Sequence[Pair]) -> None:
    """Mark differing outputs as unused if they are a kernel's auxiliary values and no differing operator reads them."""
    for number, pair in enumerate(listed):
        if pair.by != "name" or not operator_names.has_auxiliary_outputs(pair.first.kind):
            continue
        for result in pair.results:
            is_auxiliary = result.side == "output" and result.slot > 0 and result.state == "departs"
            if is_auxiliary and not _is_read(pair, result.slot, listed[number + 1 :]):
                result.state = "unused"


def _is_read(pair: Pair, slot: int, later: Sequence[Pair]) -> bool:
    """Return whether a later operator that differs has this output of either side as an input."""
    for operator, side in ((pair.first, "first"), (pair.second, "second")):
        value = _fingerprint(operator, ("output", slot))
        for other in later:
            if other.departs and value is not None:
                reader = getattr(other, side)
                members = reader.members or (reader,)
                inputs = [(member, key) for member in members for key in {*member.files, *member.statistics} if key[0] == "input"]
                if any(_fingerprint(member, key) == value for member, key in inputs):
                    return True
    return False


def _fingerprint(operator: Operator, key: tuple[str, int]) -> object:
    """Return a key that is equal for tensors with equal values, or None if nothing is known about the tensor."""
    path = operator.files.get(key)
    if path is not None:
        try:
            values = array(path)
        except Unreadable:
            return None
        return str(values.dtype), values.size, hashlib.sha256(values.tobytes()).hexdigest()
    statistics = operator.statistics.get(key)
    return None if statistics is None else tuple(sorted((title, text) for title, text in statistics.items() if title != "Shape"))
