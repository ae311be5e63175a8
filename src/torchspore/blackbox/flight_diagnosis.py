"""Diagnoses a hanging job from the dumps of all ranks: the first exchange that the ranks of a group begin differently, with the user's
lines."""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from torchspore.base.text import consecutive_spans
from torchspore.blackbox import flight_dumps
from torchspore.blackbox.flight_dumps import Dump, DumpDamaged, Exchange
from torchspore.translations import translatable, translate

_UNEVEN = frozenset({"AlltoAll", "CollectiveGather", "CollectiveScatter", "Send", "Receive"})
"""Exchanges of which each rank may send another shape."""
_MOST_SHOWN = 8
_ROW = translatable("    {ranks}: {text}")
_STATES = {"scheduled": translatable("scheduled"), "started": translatable("started"), "completed": translatable("completed")}


def describe(folder: Path) -> list[str]:
    """Return the lines of a report about the dumps in a folder; no lines without dumps. A file that is no dump is named in a line."""
    dumps, unreadable = [], []
    for rank, path in flight_dumps.files(folder).items():
        try:
            dumps.append(flight_dumps.read(path, rank))
        except (DumpDamaged, OSError) as error:
            unreadable.append(str(error))
    if not dumps:
        return unreadable
    head = translate("exchanges of {ranks}, from torch's Flight Recorder:").format(ranks=_shown([dump.rank for dump in dumps]))
    return [head, *unreadable, *_diagnosed(dumps)]


def _diagnosed(dumps: Sequence[Dump]) -> list[str]:
    by_group: dict[str, dict[int, dict[int, tuple[Exchange, ...]]]] = {}
    for dump in dumps:
        for exchange in dump.exchanges:
            if not exchange.is_between_two:
                numbers = by_group.setdefault(exchange.group, {}).setdefault(dump.rank, {})
                numbers[exchange.number] = (*numbers.get(exchange.number, ()), exchange)
    lines = []
    for group, ranks in by_group.items():
        members = next((dump.groups[group] for dump in dumps if group in dump.groups), tuple(ranks))
        lines += _of_group(group, ranks, members, {dump.rank for dump in dumps})
    lines += _messages(dumps)
    return lines or [translate("  no rank waits in an exchange: all have begun the same ones, and these are completed")]


def _of_group(group: str, ranks: Mapping[int, Mapping[int, tuple[Exchange, ...]]], members: Sequence[int], dumped: set[int]) -> list[str]:
    """Return lines about the first exchange of a group that its ranks do not begin alike, or else the last one if it is not completed."""
    oldest = max(min(numbers) for numbers in ranks.values())              # before it, the buffer of a rank has no entries
    newest = max(max(numbers) for numbers in ranks.values())
    absent = [rank for rank in members if rank in dumped and rank not in ranks]
    for number in range(oldest, newest + 1):
        begun = {rank: numbers[number] for rank, numbers in ranks.items() if number in numbers}
        late = [*absent, *(rank for rank in ranks if rank not in begun)]
        if len({_signature(exchanges) for exchanges in begun.values()}) > 1:
            return [translate("  {group}, exchange {number}: the ranks differ").format(group=group, number=number), *_rows(begun)]
        if late:
            rows = [translate(_ROW).format(ranks=_shown([rank]), text=_last(ranks.get(rank, {}))) for rank in late[:_MOST_SHOWN]]
            head = translate("  {group}, exchange {number}: {ranks} has not begun it") if len(late) == 1 else translate(
                "  {group}, exchange {number}: {ranks} have not begun it")
            return [head.format(group=group, number=number, ranks=_shown(late)), *_rows(begun), *rows, *_more(len(late))]
    lines = []
    silent = [rank for rank in members if rank not in dumped]
    last = {rank: numbers[max(numbers)] for rank, numbers in ranks.items()}
    if silent:
        text = translate("  {group}: no dump of {ranks}; it had ended, or wrote none") if len(silent) == 1 else translate(
            "  {group}: no dump of {ranks}; they had ended, or wrote none")
        lines.append(text.format(group=group, ranks=_shown(silent)))
    if any(exchange.state != "completed" for exchanges in last.values() for exchange in exchanges):
        text = translate("  {group}, exchange {number}: all ranks with a dump have begun it, and not all have completed it")
        lines.append(text.format(group=group, number=newest))
        lines += _rows(last, True)
    return lines


def _signature(exchanges: Iterable[Exchange]) -> tuple[object, ...]:
    """Return what must be equal in all ranks."""
    return tuple((exchange.kind, exchange.dtypes, None if exchange.kind in _UNEVEN else exchange.sizes) for exchange in exchanges)


def _rows(begun: Mapping[int, tuple[Exchange, ...]], with_state: bool = False) -> list[str]:
    """Return a line for each different exchange, with its ranks: the one of most ranks first."""
    texts: dict[str, list[int]] = {}
    for rank, exchanges in begun.items():
        for exchange in exchanges:
            state = translate(" ({state})").format(state=translate(_STATES.get(exchange.state, exchange.state))) if with_state else ""
            texts.setdefault(f"{exchange.what}{state}{_at(exchange)}", []).append(rank)
    ordered = sorted(texts.items(), key=lambda item: (-len(item[1]), item[1]))
    return [*(translate(_ROW).format(ranks=_shown(ranks), text=text) for text, ranks in ordered[:_MOST_SHOWN]), *_more(len(ordered))]


def _more(count: int) -> list[str]:
    """Return a line for the rows that are not shown."""
    return [translate("    and {count} more").format(count=count - _MOST_SHOWN)] if count > _MOST_SHOWN else []


def _at(exchange: Exchange) -> str:
    return translate(" at {line}").format(line=exchange.line) if exchange.line else ""


def _last(numbers: Mapping[int, tuple[Exchange, ...]]) -> str:
    if not numbers:
        return translate("no exchange of this group")
    exchange = numbers[max(numbers)][-1]
    return translate("its last one was {what}, exchange {number}").format(what=exchange.what, number=exchange.number) + _at(exchange)


def _messages(dumps: Sequence[Dump]) -> list[str]:
    """Return lines about messages between two ranks that are not completed, if their dumps know it."""
    waiting = Counter(
        translate(_ROW).format(ranks=_shown([dump.rank]), text=f"{exchange.what}{_at(exchange)}")
        for dump in dumps for exchange in dump.exchanges if exchange.is_between_two and exchange.state == "started"
    )
    return [translate("  messages between two ranks that are not completed"), *list(waiting)[:_MOST_SHOWN]] if waiting else []


def _shown(ranks: Sequence[int]) -> str:
    """Return ranks as text: 'rank 3', 'ranks 0 to 5, 7'."""
    spans = consecutive_spans(sorted(ranks))
    span = translate("{first} to {last}")
    texts = [
        str(first) if first == last else f"{first}, {last}" if last == first + 1 else span.format(first=first, last=last)
        for first, last in spans
    ]
    text = translate("rank {ranks}") if len(ranks) == 1 else translate("ranks {ranks}")
    return text.format(ranks=f"{', '.join(texts[:12])}{', ..' if len(texts) > 12 else ''}")
