"""Options of tuning: searches by measurement for the fastest form of a graph."""

from __future__ import annotations

from torchspore.context.kinds import Choice, Members
from torchspore.context.option import Alias, Option
from torchspore.errors import OptionTypeError, OptionValueError

_READER = "graph.settings"

auto_tune_mode = Option(
    kind=Choice("NO_TUNE", "RL", "GA", "RL,GA", also={"GA,RL": "RL,GA"}, none=OptionTypeError), default="NO_TUNE",
    instead="aoe_tune_mode", in_graph_key=True, read_by=_READER, graph_only=True, fixed_outcomes={"NO_TUNE": "nothing is searched for"},
    example="set_context(auto_tune_mode='GA')",
    since="1.2",
    doc="Searches for the fastest form of each graph during compilation: by reinforcement learning (RL), by a genetic algorithm (GA), or "
        "by both in the given order.",
)
aoe_tune_mode = Option(
    kind=Choice("online", "offline"), default="", in_graph_key=True, read_by=_READER, graph_only=True,
    example="set_context(aoe_tune_mode='online')",
    since="2.1",
    doc="Searches for the fastest form of each graph when it is compiled (online), or saves the graphs for `torchspore tune` (offline). "
        "Later runs use the results.",
)
aoe_config = Option(
    kind=Members(), default={}, in_graph_key=True, read_by=_READER, graph_only=True, example="set_context(aoe_config={'job_type': '2'})",
    since="2.2",
    doc="Settings of the tuner.",
)
job_type = Option(
    member_of="aoe_config", top_level=False, kind=Choice("1", "2", no_str=OptionValueError), default="2", read_by=_READER,
    example="set_context(aoe_config={'job_type': '2'})", doc="The subject of the tuning: '1' the entire graph, '2' its operators one by "
        "one.",
)
aoe_job_type = Alias(of="aoe_config.job_type", since="2.2", until=None, doc="The member `job_type` of `aoe_config`.")
