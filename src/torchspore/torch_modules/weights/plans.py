"""The plan of a conversion: which tensors of a Cell and of a torch model have the same values, and what remains."""
from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from torchspore.base.text import message, with_hint
from torchspore.torch_modules.weights import presets, structure
from torchspore.torch_modules.weights.presets import Choices
from torchspore.torch_modules.weights.slots import Link, Slot, check_links, count_values

_DIGITS = re.compile(r"(?<![^.])\d+(?![^.])")
_MOST_GROUPS = 12
_KINDS = ("weight", "bias", "running_mean", "running_var")


class Sides(NamedTuple):
    """The tensors of MindSpore's side and of torch's."""

    mindspore: list[Slot]
    torch: list[Slot]


class Plan(NamedTuple):
    """The links, the tensors of each side without a counterpart, and the kind of model whose conventions decided."""

    links: list[Link]
    mindspore: list[Slot]
    torch: list[Slot]
    family: str | None = None


class Rename(NamedTuple):
    """A line `--map old=new`: `old` is a name, or the beginning of names, of the file that is read; `*` is a number or another part.

    `a.q+a.k+a.v=b.qkv` joins the rows of layers, and the reverse divides them.
    """

    old: str
    new: str


def parse_maps(texts: Iterable[str]) -> list[Rename]:
    """Parse the values of `--map`. Raises ValueError for another form."""
    renames = []
    for text in texts:
        old, equals, new = text.partition("=")
        parts = [part for side in (old, new) for part in side.split("+")]
        if not equals or not all(parts) or len({part.count("*") for part in parts}) > 1:
            raise ValueError(message(f"--map {text}", "old=new, two names or beginnings of names with equal numbers of *"))
        renames.append(Rename(old, new))
    return renames


def plan(sides: Sides, renames: Sequence[Rename], is_to_torch: bool, choices: Choices, matrices: str | None = None) -> Plan:
    """Pair the tensors of both sides. `matrices` ('same' or 'transposed') decides the layout of square Conv1D weights that nothing tells.

    Raises ValueError for a `--map` that names nothing or tensors that do not fit, and for layouts that remain open.
    """
    has_unknown = any(slot.is_in_out is None and len(slot.dimensions) == 2 for slot in sides.mindspore)
    if not has_unknown or not any(slot.is_in_out for slot in sides.torch):
        return _plan(sides, renames, is_to_torch, choices)
    as_stored = Sides(sides.mindspore, [slot._replace(is_in_out=False) for slot in sides.torch])
    transposed, same = (_tried(version, renames, is_to_torch, choices) for version in (sides, as_stored))
    scores = [0 if isinstance(result, ValueError) else count_values(slot for link in result.links for slot in link.torch)
              for result in (transposed, same)]
    names = [slot.name for slot in sides.torch if slot.is_in_out and len(slot.dimensions) == 2]
    is_equal = scores[0] == scores[1] and not isinstance(transposed, ValueError) and transposed.family is None
    if is_equal and matrices is None and _has_open_matrix(transposed, names):
        raise ValueError(with_hint(
            f"{', '.join(names[:3])}: torch stores these matrices as (in, out). The other file does not tell whether it does.",
            "pass --cell, or --matrices same or --matrices transposed",
        ))
    chosen = same if matrices == "same" or (matrices is None and scores[1] > scores[0]) else transposed
    if isinstance(chosen, ValueError):
        raise chosen
    return chosen


def _tried(sides: Sides, renames: Sequence[Rename], is_to_torch: bool, choices: Choices) -> Plan | ValueError:
    try:
        return _plan(sides, renames, is_to_torch, choices)
    except ValueError as error:
        return error


def _has_open_matrix(result: Plan | ValueError, names: list[str]) -> bool:
    """Return whether a link of one of the matrices `names` depends on the layout of MindSpore's side, which is unknown."""
    return isinstance(result, Plan) and any(
        slot.name in names and link.mindspore[0].is_in_out is None for link in result.links for slot in link.torch)


def _plan(sides: Sides, renames: Sequence[Rename], is_to_torch: bool, choices: Choices) -> Plan:
    joins = [rename for rename in renames if "+" in f"{rename.old}{rename.new}"]
    joined = [link for rename in joins for link in _joined(sides, rename, is_to_torch)]
    links, sides = _forced(_without(sides, joined), [rename for rename in renames if rename not in joins], is_to_torch)
    links += joined
    family, family_links = presets.link(*sides, choices)
    links += family_links
    matched = structure.match(*_without(sides, family_links))
    links += matched.links
    check_links(links)
    return Plan(links, matched.mindspore, matched.torch, family)


def _without(sides: Sides, links: Sequence[Link]) -> Sides:
    """Return the tensors that no link has."""
    ours, theirs = {slot.name for link in links for slot in link.mindspore}, {slot.name for link in links for slot in link.torch}
    return Sides([slot for slot in sides.mindspore if slot.name not in ours], [slot for slot in sides.torch if slot.name not in theirs])


def _joined(sides: Sides, rename: Rename, is_to_torch: bool) -> list[Link]:
    """Return the links of a `--map` that joins or divides rows. Raises ValueError if a layer is missing."""
    names = [rename.old.split("+"), rename.new.split("+")]
    slots = [{name: slot for slot in side for name in (slot.name, slot.path)} for side in (sides if is_to_torch else sides[::-1])]
    pattern = re.compile(re.escape(names[0][0]).replace(r"\*", r"([^.]+)") + r"(?=\.|$)")
    links: dict[str, Link] = {}
    for name, slot in slots[0].items():
        match = pattern.match(name)
        if match is None or slot.name in links:
            continue
        filled = [[_filled(part, match.groups()) + name[match.end():] for part in side] for side in names]
        if all(part in by_name for by_name, side in zip(slots, filled) for part in side):
            sources, targets = (tuple(by_name[part] for part in side) for by_name, side in zip(slots, filled))
            links[slot.name] = Link(sources, targets) if is_to_torch else Link(targets, sources)
    if not links:
        raise ValueError(message(f"--map {rename.old}={rename.new}", "layers that both sides have"))
    return list(links.values())


def _filled(name: str, parts: Sequence[str]) -> str:
    """Return a name of `--map` with its * replaced."""
    remaining = iter(parts)
    return re.sub(r"\*", lambda _: next(remaining), name)


def _forced(sides: Sides, renames: Sequence[Rename], is_to_torch: bool) -> tuple[list[Link], Sides]:
    """Return the links that `--map` decides, and the remaining tensors of both sides, under their new paths."""
    sources, targets = sides if is_to_torch else Sides(sides.torch, sides.mindspore)
    by_name = {name: slot for slot in targets for name in (slot.path, slot.name, *slot.aliases)}
    pairs: list[tuple[Slot, Slot]] = []
    remaining: list[Slot] = []
    unused = set(renames)
    for slot in sources:
        renamed = [(rename, name) for rename in sorted(renames, key=lambda rename: -len(rename.old)) for name in _renamed(slot, rename)]
        unused -= {rename for rename, _ in renamed}
        counterpart = next((by_name[name] for _, name in renamed if name in by_name), None)
        if counterpart is not None:
            pairs.append((slot, counterpart))
        else:
            remaining.append(slot._replace(path=renamed[0][1]) if renamed else slot)
    if unused:
        rename = min(unused)
        raise ValueError(message(f"--map {rename.old}={rename.new}", f"a name, or the beginning of names, of the file: {_listed(sources)}"))
    links = [Link((source,), (target,)) if is_to_torch else Link((target,), (source,)) for source, target in pairs]
    check_links(links)
    rest = [slot for slot in targets if slot.name not in {target.name for _, target in pairs}]
    return links, Sides(remaining, rest) if is_to_torch else Sides(rest, remaining)


def _renamed(slot: Slot, rename: Rename) -> list[str]:
    """Return the names that `--map` gives a tensor, in torch's spelling first; none if it does not concern the tensor."""
    pattern = re.compile(re.escape(rename.old).replace(r"\*", r"([^.]+)") + r"(?=\.|$)")
    names = []
    for name in dict.fromkeys((slot.path, slot.name)):
        match = pattern.match(name)
        if match:
            names.append(_filled(rename.new, match.groups()) + name[match.end():])
    return names


def check_complete(result: Plan, is_to_torch: bool) -> None:
    """Raises ValueError if a tensor has no counterpart, with the candidates and the `--map` lines that decide."""
    sources, targets = (result.mindspore, result.torch) if is_to_torch else (result.torch, result.mindspore)
    targets = [slot for slot in targets if not slot.is_buffer]
    sources = [slot for slot in sources if not slot.is_buffer]
    if not sources and not targets:
        return
    linked = len(result.links)
    lines = [f"tensors without a certain counterpart: {len(targets)} of the output, {len(sources)} of the file; {linked} pairs are."]
    groups: dict[str, list[Slot]] = {}
    for slot in targets:
        groups.setdefault(_DIGITS.sub("*", slot.name), []).append(slot)
    for pattern, slots in list(groups.items())[:_MOST_GROUPS]:
        lines += [line for line in _group_lines(pattern, slots, sources) if line not in lines]
    if len(groups) > _MOST_GROUPS:
        lines.append(f"  .. and {len(groups) - _MOST_GROUPS} more groups")
    fitting = {_DIGITS.sub("*", other.name) for slot in targets for other in structure.candidates(slot, sources)}
    surplus = list(dict.fromkeys(name for slot in sources if (name := _DIGITS.sub("*", slot.name)) not in fitting))
    if surplus:
        lines.append(f"  only in the file: {', '.join(surplus[:8])}{' ..' if len(surplus) > 8 else ''}")
    lines.append("Pass --map for each pair, or --partial to leave out what has no counterpart.")
    raise ValueError("\n".join(lines))


def _group_lines(pattern: str, slots: list[Slot], sources: list[Slot]) -> list[str]:
    count = f" ({len(slots)} tensors)" if len(slots) > 1 else ""
    fitting = structure.candidates(slots[0], sources)
    names = list(dict.fromkeys(_DIGITS.sub("*", other.name) for other in fitting))
    lines = [f"  {pattern} {list(slots[0].shape)}{count}: {'candidates' if names else 'no candidate of this shape'}"]
    pairs = [_layer(name, pattern) for name in names if name.count("*") == pattern.count("*")] or [
        _layer(other.name, slots[0].name) for other in fitting]
    return lines + [f"    --map '{name}={target}'" for name, target in pairs[:4]]


def _layer(source: str, target: str) -> tuple[str, str]:
    """Return the names of the layers of two tensors, if the last parts of the names mean the same; else the names."""
    (source_head, _, source_leaf), (target_head, _, target_leaf) = source.rpartition("."), target.rpartition(".")
    is_same = {"gamma": "weight", "beta": "bias", "embedding_table": "weight"}.get(source_leaf, source_leaf) == target_leaf
    return (source_head, target_head) if is_same and source_head and target_head else (source, target)


def _listed(slots: Iterable[Slot]) -> str:
    names = [slot.name for slot in slots]
    return ", ".join(names[:5]) + (" .." if len(names) > 5 else "")
