"""The documentation of an option, derived from its declaration."""

from __future__ import annotations

from collections.abc import Iterator

from torchspore.base.columns import pad
from torchspore.base.text import short
from torchspore.context.option import SETTERS, Alias, On, Option, When
from torchspore.context.options import ALIASES, OPTIONS
from torchspore.translations import translatable, translate

ACTS, IDLE, NOT_YET = translatable("acts"), translatable("idle"), ""


def state(item: Option | Alias) -> str:
    """Return whether an option, or the target of an alias, acts, is accepted without a meaning here, or is not built yet."""
    option = OPTIONS[item.of] if isinstance(item, Alias) else item
    return ACTS if option.acts else IDLE if option.idle else NOT_YET


def summary() -> str:
    """Return a sentence with the number of options in each state; members and aliases are counted."""
    everything: list[Option | Alias] = [*OPTIONS.values(), *ALIASES.values()]
    acting, idle, not_yet = (sum(state(item) == requested for item in everything) for requested in (ACTS, IDLE, NOT_YET))
    text = translate("{acting} of {count} options have an effect. {idle} are accepted without an effect, each with a reason.")
    text = text.format(acting=acting, count=len(everything), idle=idle)
    more = translate(" The effect of the other {count} is not built yet: their values are checked and stored.")
    return text + more.format(count=not_yet) if not_yet else text


def facts(item: Option | Alias) -> Iterator[tuple[str, str]]:
    """Yield (heading, text) for every fact about an option."""
    if isinstance(item, Alias):
        yield translate("the same as"), OPTIONS[item.of].name
        yield "MindSpore", _versions(item)
        return
    yield translate("values"), item.kind.expected
    yield translate("default"), _default(item)
    yield translate("devices"), translate("all") if item.on is On.ALL else ", ".join(item.on.names())
    if item.when is not When.ANY_TIME:
        yield translate("may change"), translate(item.when.value)
    yield translate("effect"), _effect(item)
    if item.experimental:
        yield translate("experimental"), translate(item.experimental)
    if item.process_wide:
        yield translate("threads"), translate(
            "affects the entire process; a `context.scope` accepts it only in the main thread while no other thread runs")
    if item.environment:
        verb = translate("overrides the code") if item.environment_wins else translate("used if the code does not set the option")
        yield translate("environment"), f"{', '.join(item.environment)} ({verb})"
    if item.member_of is not None:
        is_option = item.top_level and item.settable
        yield translate("member of"), item.member_of + (translate("; its name alone works too") if is_option else "")
    if item.group is not None:
        yield translate("also in"), translate("the JSON file that ascend_config's {group}_path names").format(group=item.group)
    if _versions(item):
        yield "MindSpore", _versions(item)
    if item.instead is not None:
        yield translate("newer"), item.instead
    if item.example is not None:
        yield translate("example"), item.example


def _effect(item: Option) -> str:
    if item.idle:
        return translate("no effect here: {reason}").format(reason=translate(item.idle))
    return translate("yes") if item.acts else translate("not built yet: the value is checked and stored")


def plain(item: Option | Alias) -> Iterator[str]:
    """Yield the lines of an option's page for a terminal."""
    yield f"{item.name}  ({SETTERS[item.api]})"
    yield ""
    yield translate(item.doc)
    yield ""
    for head, text in facts(item):
        yield f"  {pad(head, 12)} {text}"


def _default(item: Option) -> str:
    if not callable(item.default):
        return short(item.default)
    if item.name == "runtime_num_threads":
        return translate("the number of cores, 30 at most")
    by_device = {device: item.default_on(device) for device in ("CPU", "GPU", "Ascend")}
    return ", ".join(translate("{value!r} on {device}").format(value=value, device=device) for device, value in by_device.items())


def _versions(item: Option | Alias) -> str:
    since, until = item.since, item.until
    if not since and isinstance(item, Option):
        owner = OPTIONS.get(item.parent or "")
        since, until = (owner.since, owner.until) if owner is not None else ("", None)
    if not since:
        return ""
    return translate("since {since}, gone after {until}").format(since=since, until=until) if until else translate(
        "since {since}").format(since=since)
