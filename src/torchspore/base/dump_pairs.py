"""Two dumps lined up: which operators of one compute what operators of the other compute.

Operators with one name on both sides are pairs. MindSpore's graphs split or rename many operators: the last operators of a forward layer
are a pair where their results have one shape, and the gradients and the optimizer of a layer are compared as a whole.
"""
from __future__ import annotations

import hashlib
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence

from torchspore.base import operator_names
from torchspore.base.dumps import Compared, Dump, Operator, Pair, Unreadable, array, compare

_NO_UPDATES = ("Assign", "AssignAdd", "AssignSub", "Mul", "Add", "Sub", "Gather", "Cast")
_GRADIENT_OF = re.compile(r"_?Grad_[A-Za-z0-9]+$")


def compared(first: Dump, second: Dump, rtol: float, atol: float) -> list[Pair]:
    """All pairs with what came of their results; outputs that nothing which departs has read do not count."""
    result = []
    for iteration in sorted(first.iterations.keys() & second.iterations.keys()):
        listed = [
            Pair(iteration, one, other, by, _results(one, other, by, rtol, atol))
            for one, other, by in _aligned(first.iterations[iteration], second.iterations[iteration])
        ]
        _settle_unused_outputs(listed)
        result += listed
    return result


def pairs(first: Dump, second: Dump) -> Iterator[tuple[int, Operator, Operator, str]]:
    """The operators of both, in the order of the first one: (iteration, one, other, by what they were paired)."""
    for iteration in sorted(first.iterations.keys() & second.iterations.keys()):
        for one, other, by in _aligned(first.iterations[iteration], second.iterations[iteration]):
            yield iteration, one, other, by


def _aligned(ours: list[Operator], theirs: list[Operator]) -> list[tuple[Operator, Operator, str]]:
    biased = _by_bias(ours, theirs)
    taken = {id(one) for pair in biased for one in pair}
    layers = _differently_split(ours, theirs)
    rest = [one for one in ours if id(one) not in taken and id(one) not in layers]
    others = [one for one in theirs if id(one) not in taken and id(one) not in layers]
    named = _by_name(rest, others)
    result = [(one, named[one.name], "name") for one in rest if one.name in named]
    result = [(one, other, by if one.plain_name == other.plain_name else "scope") for one, other, by in result]
    result += [(one, other, "scope") for one, other in biased]
    taken |= {id(one) for pair in result for one in pair[:2]}
    result += [(one, other, "scope") for one, other in _last_of_scopes(ours, theirs, taken)]
    taken |= {id(one) for pair in result for one in pair[:2]}
    result += [(one, other, "layer") for one, other in _of_layers(ours, theirs, taken)]
    return sorted(result, key=lambda pair: pair[0].order)


def _is_whole_layer(operator: Operator) -> bool:
    """Return whether an operator belongs to a gradient or to an optimizer, whose operators are compared together."""
    return operator.scope.startswith("Gradients") or "optimizer-" in operator.scope


def _differently_split(ours: list[Operator], theirs: list[Operator]) -> set[int]:
    """The updates of optimizers, by identity, that one side runs for all Parameters at once or that another framework ran.

    MindSpore's kernels on CPUs leave the outputs of an update unwritten and write the Parameter, which is an input.
    """
    counts = [Counter(one.plain_name for one in side) for side in (ours, theirs)]
    is_foreign = any(one.line for one in ours) != any(one.line for one in theirs)
    return {
        id(one) for one in (*ours, *theirs)
        if _is_update(one) and (is_foreign or counts[0][one.plain_name] != counts[1][one.plain_name])
    }


def _is_update(operator: Operator) -> bool:
    """Return whether an operator of an optimizer updates Parameters; others keep the step and the powers of beta."""
    return "optimizer-" in operator.scope and operator.kind not in _NO_UPDATES


def _by_bias(ours: list[Operator], theirs: list[Operator]) -> list[tuple[Operator, Operator]]:
    """Operators that add a bias themselves, with the BiasAdd of the same layer on the other side."""
    result = []
    for one_side, other_side in ((ours, theirs), (theirs, ours)):
        adds, producers = defaultdict(list), defaultdict(list)
        for other in other_side:
            if other.kind == "BiasAdd":
                adds[other.scope].append(other)
        has_adds = {one.scope for one in one_side if one.kind == "BiasAdd"}
        for one in one_side:
            if operator_names.includes_bias(one.kind) and one.scope in adds and one.scope not in has_adds:
                producers[one.scope].append(one)
        for scope, listed in producers.items():
            if len(listed) == len(adds[scope]):
                both = zip(listed, adds[scope]) if one_side is ours else zip(adds[scope], listed)
                result += list(both)
    return result


def _by_name(ours: list[Operator], theirs: list[Operator]) -> dict[str, Operator]:
    """For each of ours the other one of its name: by the number of the call too where both have that, else by its turn."""
    same = {other.name: other for other in theirs}
    partners = {one.name: same[one.name] for one in ours if one.name in same}
    turns: Counter[str] = Counter()
    by_turn = {}
    for other in theirs:
        if other.name not in partners:
            by_turn[other.plain_name, turns[other.plain_name]] = other
            turns[other.plain_name] += 1
    turns.clear()
    for one in ours:
        if one.name not in partners:
            partner = by_turn.get((one.plain_name, turns[one.plain_name]))
            turns[one.plain_name] += 1
            if partner is not None:
                partners[one.name] = partner
    return partners


def _last_of_scopes(ours: list[Operator], theirs: list[Operator], taken: set[int]) -> Iterator[tuple[Operator, Operator]]:
    """The last operators of a forward layer, where their results have one shape."""
    last_of_theirs = {other.scope: other for other in theirs}
    last_of_ours = {one.scope: one for one in ours}
    for scope, one in last_of_ours.items():
        other = last_of_theirs.get(scope)
        if scope and other is not None and not {id(one), id(other)} & taken and not _is_whole_layer(one):
            if _shape(one) is not None and _shape(one) == _shape(other):
                yield one, other


def _of_layers(ours: list[Operator], theirs: list[Operator], taken: set[int]) -> Iterator[tuple[Operator, Operator]]:
    """The remaining operators of each gradient and optimizer, joined to one operator on each side."""
    sides: list[dict[str, list[Operator]]] = []
    for side in (ours, theirs):
        layers: dict[str, list[Operator]] = defaultdict(list)
        for one in side:
            if id(one) not in taken and _is_whole_layer(one):
                layers[_GRADIENT_OF.sub("", one.scope)].append(one)
        sides.append(layers)
    for layer, listed in sides[0].items():
        if layer in sides[1]:
            yield _joined(listed), _joined(sides[1][layer])


def _joined(operators: list[Operator]) -> Operator:
    """One operator with the results of several, numbered through, in the place of the last of them."""
    if len(operators) == 1:
        return operators[0]
    last = operators[-1]
    names = ", ".join(dict.fromkeys(one.full_name for one in operators))
    joined = Operator(last.kind, last.name, names, last.order, last.line, last.note, members=tuple(operators))
    slot = 0
    for one in operators:
        for key in sorted({*one.files, *one.statistics}):
            if key[0] == "output":
                if key in one.files:
                    joined.files["output", slot] = one.files[key]
                if key in one.statistics:
                    joined.statistics["output", slot] = one.statistics[key]
                slot += 1
    return joined


def _shape(one: Operator) -> tuple[int, ...] | None:
    path = one.files.get(("output", 0))
    try:
        return None if path is None else array(path).shape
    except Unreadable:
        return None


# ---- results

def _results(one: Operator, other: Operator, by: str, rtol: float, atol: float) -> list[Compared]:
    """The outputs; where none were dumped the inputs."""
    if by == "layer" and "optimizer-" in one.scope:
        return _of_updates(one, other, rtol, atol)
    if by == "layer":
        return _of_a_layer(one, other, rtol, atol)
    results = compare(one, other, "output", rtol, atol)
    if by == "scope":
        results = results[:1]
    return results or (compare(one, other, "input", rtol, atol) if by == "name" else [])


def _of_a_layer(one: Operator, other: Operator, rtol: float, atol: float) -> list[Compared]:
    """The outputs of two sets of operators: of each size, as many must agree as the side with fewer of them has."""
    result = []
    sizes = [_slots_by_size(operator) for operator in (one, other)]
    for size in sizes[0].keys() & sizes[1].keys():
        ours, theirs = list(sizes[0][size]), list(sizes[1][size])
        needed = min(len(ours), len(theirs))
        departing = []
        for slot in ours:
            tried = [(_compare_slots(one, other, slot, partner, rtol, atol), partner) for partner in theirs]
            agreeing = next(((item, partner) for item, partner in tried if item.state in ("equal", "close")), None)
            if agreeing is not None:
                result.append(agreeing[0])
                theirs.remove(agreeing[1])
                needed -= 1
            elif tried:
                departing.append(min(tried, key=lambda item: item[0].largest)[0])
        result += departing[:max(needed, 0)]
    return sorted(result, key=lambda item: item.slot)


def _of_updates(one: Operator, other: Operator, rtol: float, atol: float) -> list[Compared]:
    """The updated Parameters: each update of the side with more of them has its Parameter among the outputs of the other side.

    The Parameter is the first output of an update, or its first input as it is after the update.
    """
    sides = [operator.members or (operator,) for operator in (one, other)]
    is_turned = len(sides[0]) > len(sides[1])
    updates, outputs = (sides[0], other) if is_turned else (sides[1], one)
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


def _compare_slots(one: Operator, other: Operator, slot: int, partner: int, rtol: float, atol: float) -> Compared:
    return compare(_single(one, ("output", slot), slot), _single(other, ("output", partner), slot), "output", rtol, atol)[0]


def _single(operator: Operator, key: tuple[str, int], slot: int) -> Operator:
    """An operator with one tensor, as its output of this slot."""
    single = Operator(operator.kind, operator.name, operator.full_name, operator.order)
    if key in operator.files:
        single.files["output", slot] = operator.files[key]
    if key in operator.statistics:
        single.statistics["output", slot] = operator.statistics[key]
    return single


def _slots_by_size(operator: Operator) -> dict[int, list[int]]:
    """The outputs by their number of values."""
    sizes: dict[int, list[int]] = defaultdict(list)
    for side, slot in sorted({*operator.files, *operator.statistics}):
        size = _size(operator, (side, slot)) if side == "output" else None
        if size is not None:
            sizes[size].append(slot)
    return sizes


def _size(operator: Operator, key: tuple[str, int]) -> int | None:
    """The number of values of a tensor; None where it is not known."""
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
    """Mark outputs that depart as unused where they are a kernel's own values and no operator that departs reads them."""
    for number, pair in enumerate(listed):
        if pair.by != "name" or not operator_names.has_auxiliary_outputs(pair.first.kind):
            continue
        for result in pair.results:
            is_auxiliary = result.side == "output" and result.slot > 0 and result.state == "departs"
            if is_auxiliary and not _is_read(pair, result.slot, listed[number + 1 :]):
                result.state = "unused"


def _is_read(pair: Pair, slot: int, later: Sequence[Pair]) -> bool:
    """Return whether a later operator that departs has this output of either side as an input."""
    for operator, which in ((pair.first, "first"), (pair.second, "second")):
        value = _fingerprint(operator, ("output", slot))
        for other in later:
            if other.departs and value is not None:
                reader = getattr(other, which)
                members = reader.members or (reader,)
                inputs = [(member, key) for member in members for key in {*member.files, *member.statistics} if key[0] == "input"]
                if any(_fingerprint(member, key) == value for member, key in inputs):
                    return True
    return False


def _fingerprint(operator: Operator, key: tuple[str, int]) -> object:
    """What two tensors with equal values have in common; None where nothing is known."""
    path = operator.files.get(key)
    if path is not None:
        try:
            values = array(path)
        except Unreadable:
            return None
        return str(values.dtype), values.size, hashlib.sha256(values.tobytes()).hexdigest()
    statistics = operator.statistics.get(key)
    return None if statistics is None else tuple(sorted((title, text) for title, text in statistics.items() if title != "Shape"))
