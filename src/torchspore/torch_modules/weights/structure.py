"""Tensors of two models are paired: by names first, then by structure and shape, in the order of definition where numbers give one.

Both sides are trees of paths. Equal names are paired first. Then sub-structures with equal shapes are paired if there is one on each side,
or if the names of both sides are numbers of one row (`blocks.0`, `blocks.1`). Sub-structures without a counterpart are dissolved, and their
contents are compared with the rest. Everything else remains unpaired: a wrong pair would go unnoticed.
"""
from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from functools import cached_property
from typing import NamedTuple, TypeAlias

from torchspore.torch_modules.weights.slots import Link, Shape, Slot

_SYNONYMS = {
    "down_sample": "downsample", "down_sample_layer": "downsample",
    "query": "q", "q_proj": "q", "wq": "q", "q_lin": "q", "query_proj": "q", "to_q": "q", "q_linear": "q",
    "key": "k", "k_proj": "k", "wk": "k", "k_lin": "k", "key_proj": "k", "to_k": "k", "k_linear": "k",
    "value": "v", "v_proj": "v", "wv": "v", "v_lin": "v", "value_proj": "v", "to_v": "v", "v_linear": "v",
    "gate_proj": "gate", "up_proj": "up", "down_proj": "down",
}
"""Names of MindCV, timm and Hugging Face for one layer, where the shapes do not tell these layers from their neighbours."""
_JOINED = frozenset({"qkv", "c_attn", "qkv_proj", "to_qkv", "in_proj_qkv"})
"""Names of a layer that joins queries, keys and values, in this order."""
_KINDS = frozenset({"weight", "bias", "running_mean", "running_var"})
_NUMBER = re.compile(r"\d+")
Key = tuple[Shape, str]
Signature = tuple[tuple[Key, int], ...]


class Branch:
    """A sub-structure: its contents by name, in the order of definition. They do not change once it is compared."""

    def __init__(self) -> None:
        self.contents: dict[str, Node] = {}

    @cached_property
    def leaves(self) -> list[Slot]:
        """The tensors at every depth."""
        return [slot for node in self.contents.values() for slot in _leaves(node)]

    @cached_property
    def counts(self) -> Counter[Key]:
        """The number of tensors of each key."""
        return Counter(map(_key, self.leaves))

    @cached_property
    def signature(self) -> Signature:
        """The counts, in a form in which those of two sub-structures can be compared."""
        return tuple(sorted(self.counts.items()))

    @cached_property
    def inner_signatures(self) -> Counter[Signature]:
        """The number of tensors and sub-structures of each signature, at every depth; one that has a single content counts as this."""
        total: Counter[Signature] = Counter() if len(self.contents) == 1 else Counter([self.signature])
        for node in self.contents.values():
            total.update(_inner_signatures(node))
        return total


Node: TypeAlias = "Branch | Slot"
Pool = dict[str, Node]
"""The unpaired contents of a sub-structure, by their paths in it."""


class Matched(NamedTuple):
    """The pairs, the paired sub-structures, and the tensors of each side that remain."""

    links: list[Link]
    mindspore: list[Slot]
    torch: list[Slot]


def match(mindspore: Iterable[Slot], torch: Iterable[Slot]) -> Matched:
    """Pair the tensors of two sides."""
    links: list[Link] = []
    rest = _match_pools(_tree(mindspore), _tree(torch), links)
    return Matched(links, *([slot for node in pool.values() for slot in _leaves(node)] for pool in rest))


def candidates(slot: Slot, others: Iterable[Slot]) -> list[Slot]:
    """Return the tensors with the shape of `slot`; those of its kind, if there are such."""
    fitting = [other for other in others if other.oriented_dimensions == slot.oriented_dimensions]
    return [other for other in fitting if _key(other) == _key(slot)] or fitting


def _tree(slots: Iterable[Slot]) -> Pool:
    root = Branch()
    for slot in slots:
        branch = root
        *parents, last = slot.path.split(".")
        for parent in parents:
            inner = branch.contents.setdefault(parent, Branch())
            if isinstance(inner, Slot):                  # a tensor whose name is the beginning of another's
                inner = branch.contents[f"{parent}."] = Branch()
            branch = inner
        branch.contents[last if last not in branch.contents else f"{last}#"] = slot
    return root.contents


def _leaves(node: Node) -> list[Slot]:
    return [node] if isinstance(node, Slot) else node.leaves


def _size(node: Node) -> int:
    return len(_leaves(node))


def _key(slot: Slot) -> Key:
    """Return what slots must have in common: the dimensions, of matrices as (out, in), and the kind."""
    last = slot.path.rpartition(".")[2]
    return slot.oriented_dimensions, last if last in _KINDS else ""


def _counts(node: Node) -> Counter[Key]:
    return Counter([_key(node)]) if isinstance(node, Slot) else node.counts


def _signature(node: Node) -> Signature:
    return ((_key(node), 1),) if isinstance(node, Slot) else node.signature


def _inner_signatures(node: Node) -> Counter[Signature]:
    return Counter([_signature(node)]) if isinstance(node, Slot) else node.inner_signatures


def _everywhere(pool: Pool) -> Counter[Signature]:
    """Return the number of tensors and sub-structures of each signature in a pool, at every depth."""
    total: Counter[Signature] = Counter()
    for node in pool.values():
        total.update(_inner_signatures(node))
    return total


def _plain(name: str) -> str:
    return ".".join(_SYNONYMS.get(part, part) for part in name.split("."))


def _end(name: str) -> str:
    """Return the last part of a name that says something: a number does only in its row, and `weight` with its layer."""
    parts = _plain(name).split(".")
    start = len(parts) - 1
    while start > 0 and (parts[start].isdigit() or parts[start] in _KINDS):
        start -= 1
    return ".".join(parts[start:])


def _match_pools(ours: Pool, theirs: Pool, links: list[Link]) -> tuple[Pool, Pool]:
    """Pair the contents of two sub-structures; return what remains of each."""
    ours, theirs = dict(ours), dict(theirs)
    while True:
        if not any(pair(ours, theirs, links) for pair in _STEPS) and not _dissolve(ours, theirs):
            return ours, theirs


def _dissolve(ours: Pool, theirs: Pool) -> bool:
    """Replace the largest sub-structures by their contents, and all with equal shapes; return whether there were such."""
    branches = [node for pool in (ours, theirs) for node in pool.values() if isinstance(node, Branch)]
    if not branches or not ours or not theirs:
        return False
    largest = max(branches, key=_size).signature
    for pool in (ours, theirs):
        items = list(pool.items())
        pool.clear()
        for name, node in items:
            if isinstance(node, Branch) and node.signature == largest:
                pool.update((f"{name}.{inner}", content) for inner, content in node.contents.items())
            else:
                pool[name] = node
    return True


def _pair(ours: Pool, our_name: str, theirs: Pool, their_name: str, links: list[Link]) -> bool:
    """Pair two nodes; what remains of them goes back to the pools. Return whether anything was paired."""
    our_node, their_node = ours[our_name], theirs[their_name]
    if isinstance(our_node, Slot) and isinstance(their_node, Slot):
        if our_node.oriented_dimensions != their_node.oriented_dimensions:
            return False
        del ours[our_name], theirs[their_name]
        links.append(Link((our_node,), (their_node,)))
        return True
    if isinstance(our_node, Slot) or isinstance(their_node, Slot):
        return False
    count = len(links)
    our_rest, their_rest = _match_pools(our_node.contents, their_node.contents, links)
    if len(links) == count:
        return False
    del ours[our_name], theirs[their_name]
    ours.update((f"{our_name}.{name}", node) for name, node in our_rest.items())
    theirs.update((f"{their_name}.{name}", node) for name, node in their_rest.items())
    return True


def _pair_alike(ours: Pool, theirs: Pool, links: list[Link]) -> bool:
    """Pair nodes with equal shapes, if their names or numbers decide, or if there is one on each side."""
    our_groups, their_groups = _groups(ours), _groups(theirs)
    our_total, their_total = _everywhere(ours), _everywhere(theirs)
    has_paired = False
    for group, our_names in our_groups.items():
        their_names = their_groups.get(group, [])
        is_all = our_total[group[1]] == len(our_names) and their_total[group[1]] == len(their_names)
        for our_name, their_name in _decided(our_names, their_names, is_all):
            has_paired |= _pair(ours, our_name, theirs, their_name, links)
    return has_paired


def _pair_joined(ours: Pool, theirs: Pool, links: list[Link]) -> bool:
    """Pair layers of queries, keys and values with one layer that joins their rows, on either side."""
    is_torch_joined = _pair_joined_on(ours, theirs, links, False)
    return is_torch_joined or _pair_joined_on(theirs, ours, links, True)


def _pair_joined_on(parts: Pool, joined: Pool, links: list[Link], is_mindspore_joined: bool) -> bool:
    """Pair `q`, `k` and `v` of `parts` with `qkv` of `joined`: each side has one, and their rows add up."""
    names = {name: [other for other in parts if _end(other) == name] for name in ("q", "k", "v")}
    joined_names = [name for name in joined if _end(name) in _JOINED]
    if any(len(others) != 1 for others in (*names.values(), joined_names)):
        return False
    separate, single = [_by_kind(parts[others[0]]) for others in names.values()], _by_kind(joined[joined_names[0]])
    if any(set(side) != set(single) for side in separate):
        return False
    pairs = [(tuple(side[kind] for side in separate), slot) for kind, slot in single.items()]
    for slots, slot in pairs:
        rows = sum(part.oriented[0] for part in slots if part.shape)
        if not slot.shape or rows != slot.oriented[0] or any(part.oriented[1:] != slot.oriented[1:] for part in slots):
            return False
    links += [Link((slot,), slots) if is_mindspore_joined else Link(slots, (slot,)) for slots, slot in pairs]
    for pool, used in ((parts, [others[0] for others in names.values()]), (joined, joined_names)):
        for name in used:
            del pool[name]
    return True


def _by_kind(node: Node) -> dict[str, Slot]:
    """Return the tensors of a layer by the last part of their names."""
    return {} if isinstance(node, Slot) else {_key(slot)[1] or slot.path: slot for slot in node.leaves}


def _groups(pool: Pool) -> dict[tuple[bool, Signature], list[str]]:
    """Return the names of nodes with equal shapes; tensors and sub-structures are different groups."""
    groups: dict[tuple[bool, Signature], list[str]] = {}
    for name, node in pool.items():
        groups.setdefault((isinstance(node, Slot), _signature(node)), []).append(name)
    return groups


def _decided(ours: list[str], theirs: list[str], is_all: bool) -> list[tuple[str, str]]:
    """Return the pairs of names, of nodes with equal shapes, that names or numbers decide. `is_all` tells that both sides have no more
    such nodes at another depth; otherwise only equal names decide.
    """
    by_name = _by_name(ours, theirs, is_all)
    if len(ours) != len(theirs) or not is_all or len(by_name) == len(ours):
        return by_name
    our_row, their_row = _as_row(ours), _as_row(theirs)
    if len(ours) > 1 and our_row and their_row:
        in_order = list(zip(our_row, their_row))
        return in_order if set(by_name) <= set(in_order) else []          # fc1, fc2 and fc2, fc3: nothing decides
    rest = [[name for name in names if name not in {pair[side] for pair in by_name}] for side, names in enumerate((ours, theirs))]
    return by_name + (list(zip(*rest)) if len(rest[0]) == 1 else [])


def _by_name(ours: list[str], theirs: list[str], uses_ends: bool = True) -> list[tuple[str, str]]:
    """Return the pairs of equal names, then of synonyms, then of equal ends of names that occur once on each side."""
    pairs: list[tuple[str, str]] = []
    for spelled in (str, _plain, _end)[:3 if uses_ends else 2]:
        groups: list[dict[str, list[str]]] = [{}, {}]
        for side, names in enumerate((ours, theirs)):
            used = {pair[side] for pair in pairs}
            for name in names:
                if name not in used:
                    groups[side].setdefault(spelled(name), []).append(name)
        pairs += [(names[0], groups[1][key][0]) for key, names in groups[0].items() if len(names) == 1 == len(groups[1].get(key, []))]
    return pairs


def _as_row(names: list[str]) -> list[str] | None:
    """Return names that differ only in their numbers, by these numbers; None for others."""
    numbers = {name: tuple(int(digits) for digits in _NUMBER.findall(name)) for name in names}
    is_row = len({_NUMBER.sub("#", name) for name in names}) == 1 and len(set(numbers.values())) == len(names)
    return sorted(names, key=lambda name: numbers[name]) if is_row else None


def _pair_names(ours: Pool, theirs: Pool, links: list[Link]) -> bool:
    """Pair sub-structures of equal names, of which one has more than the other."""
    has_paired = False
    for our_name, their_name in _by_name(list(ours), list(theirs)):
        is_equal = our_name == their_name
        if our_name in ours and their_name in theirs and _is_related(ours[our_name], theirs[their_name], is_equal):
            has_paired |= _pair(ours, our_name, theirs, their_name, links)
    return has_paired


def _is_related(first: Node, second: Node, is_equal: bool) -> bool:
    """Return whether two sub-structures with unequal shapes share more than half of the tensors: of the smaller if their names are equal,
    otherwise of the larger.
    """
    shared = (_counts(first) & _counts(second)).total()
    return _signature(first) != _signature(second) and shared * 2 > (min if is_equal else max)(_size(first), _size(second))


def _pair_parts(ours: Pool, theirs: Pool, links: list[Link]) -> bool:
    """Pair sub-structures of which one contains the shapes of the other, and few more, if no third one does."""
    def is_part(first: Branch, second: Branch) -> bool:
        smaller, larger = sorted((first, second), key=_size)
        return smaller.counts < larger.counts and _size(larger) < 2 * _size(smaller)        # equal ones are decided elsewhere

    branches = [{name: node for name, node in pool.items() if isinstance(node, Branch)} for pool in (ours, theirs)]
    fitting = {name: [other for other, inner in branches[1].items() if is_part(node, inner)] for name, node in branches[0].items()}
    counts = Counter(other for others in fitting.values() for other in others)
    return any(
        _pair(ours, name, theirs, others[0], links) for name, others in fitting.items() if len(others) == 1 and counts[others[0]] == 1
    )


def _pair_rows(ours: Pool, theirs: Pool, links: list[Link]) -> bool:
    """Pair the blocks of two rows of one length, which differ (joined layers, other norms) but share more than half of their tensors."""
    our_rows, their_rows = _rows(ours), _rows(theirs)
    fitting = {
        row: [other for other in their_rows if len(row) == len(other) and _is_related(ours[row[0]], theirs[other[0]], False)]
        for row in our_rows
    }
    counts = Counter(other for others in fitting.values() for other in others)
    for row, others in fitting.items():
        if len(others) == 1 and counts[others[0]] == 1:
            pairs = [_pair(ours, name, theirs, other, links) for name, other in zip(row, others[0])]
            return any(pairs)
    return False


def _rows(pool: Pool) -> list[tuple[str, ...]]:
    """Return the names of sub-structures with equal shapes that form a row of at least two."""
    groups = [names for (is_slot, _), names in _groups(pool).items() if not is_slot and len(names) > 1]
    return [tuple(row) for names in groups if (row := _as_row(names))]


def _pair_kinds(ours: Pool, theirs: Pool, links: list[Link]) -> bool:
    """Pair tensors of one shape if there is one on each side, and the name of one of them is not a layer's, such as `scale`."""
    slots = [[slot for node in pool.values() for slot in _leaves(node)] for pool in (ours, theirs)]
    counts = [Counter(slot.oriented_dimensions for slot in side) for side in slots]
    for name, node in ours.items():
        for other, inner in theirs.items():
            if isinstance(node, Slot) and isinstance(inner, Slot) and "" in (_key(node)[1], _key(inner)[1]):
                shape = node.oriented_dimensions
                if shape == inner.oriented_dimensions and counts[0][shape] == counts[1][shape] == 1:
                    return _pair(ours, name, theirs, other, links)
    return False


_STEPS = (_pair_joined, _pair_alike, _pair_names, _pair_parts, _pair_rows, _pair_kinds)
"""The ways to pair nodes, the most certain first. After each pair all are tried from the beginning."""
