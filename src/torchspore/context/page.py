"""The documentation of an option, derived from its declaration."""

from __future__ import annotations

from collections.abc import Iterator

from torchspore.base.text import short
from torchspore.context.option import SETTERS, Alias, On, Option, When
from torchspore.context.options import ALIASES, OPTIONS

ACTS, IDLE, NOT_YET = "acts", "idle", ""


def state(item: Option | Alias) -> str:
    """Return whether an option, or the target of an alias, acts, is accepted without a meaning here, or is not built yet."""
    option = OPTIONS[item.of] if isinstance(item, Alias) else item
    return ACTS if option.acts else IDLE if option.idle else NOT_YET


def summary() -> str:
    """Return a sentence with the number of options in each state; members and aliases are counted."""
    everything: list[Option | Alias] = [*OPTIONS.values(), *ALIASES.values()]
    acting, idle, not_yet = (sum(state(item) == requested for item in everything) for requested in (ACTS, IDLE, NOT_YET))
    text = f"{acting} of {len(everything)} options have an effect. {idle} are accepted without an effect, each with a reason."
    return f"{text} The effect of the other {not_yet} is not built yet: their values are checked and stored." if not_yet else text


def facts(item: Option | Alias) -> Iterator[tuple[str, str]]:
    """Yield (heading, text) for every fact about an option."""
    if isinstance(item, Alias):
        yield "the same as", OPTIONS[item.of].name
        yield "MindSpore", _versions(item)
        return
    yield "values", item.kind.expected
    yield "default", _default(item)
    yield "devices", "all" if item.on is On.ALL else ", ".join(item.on.names())
    if item.when is not When.ANY_TIME:
        yield "may change", item.when.value
    if item.idle:
        yield "effect", f"no effect here: {item.idle}"
    else:
        yield "effect", "yes" if item.acts else "not built yet: the value is checked and stored"
    if item.experimental:
        yield "experimental", item.experimental
    if item.process_wide:
        yield "threads", "affects the entire process; a `context.scope` accepts it only in the main thread while no other thread runs"
    if item.environment:
        verb = "overrides the code" if item.environment_wins else "used if the code does not set the option"
        yield "environment", f"{', '.join(item.environment)} ({verb})"
    if item.member_of is not None:
        yield "member of", item.member_of + ("; its name alone works too" if item.top_level and item.settable else "")
    if item.group is not None:
        yield "also in", f"the JSON file that ascend_config's {item.group}_path names"
    if _versions(item):
        yield "MindSpore", _versions(item)
    if item.instead is not None:
        yield "newer", item.instead
    if item.example is not None:
        yield "example", item.example


def plain(item: Option | Alias) -> Iterator[str]:
    """Yield the lines of an option's page for a terminal."""
    yield f"{item.name}  ({SETTERS[item.api]})"
    yield ""
    yield item.doc
    yield ""
    for head, text in facts(item):
        yield f"  {head:12} {text}"


def _default(item: Option) -> str:
    if not callable(item.default):
        return short(item.default)
    if item.name == "runtime_num_threads":
        return "the number of cores, 30 at most"
    by_device = {device: item.default_on(device) for device in ("CPU", "GPU", "Ascend")}
    return ", ".join(f"{value!r} on {device}" for device, value in by_device.items())


def _versions(item: Option | Alias) -> str:
    since, until = item.since, item.until
    if not since and isinstance(item, Option):
        owner = OPTIONS.get(item.parent or "")
        since, until = (owner.since, owner.until) if owner is not None else ("", None)
    if not since:
        return ""
    return f"since {since}, gone after {until}" if until else f"since {since}"
