"""The profiling switches of MindSpore 1.x; `mindspore.profiler.Profiler` replaced them."""

from __future__ import annotations

from torchspore.context.kinds import Bool, Choice, Profiling, Str
from torchspore.context.option import Option

_OTHER_NAMES = {"aicpu": "aicpu_trace", "aic_metrics": "ai_core_metrics"}
_MEMBERS = {
    "output", "result_path", "training_trace", "task_trace", "aicpu_trace", "fp_point", "bp_point", "ai_core_metrics", "op_trace",
}

enable_profiling = Option(
    kind=Bool(), default=False, instead="mindspore.profiler.Profiler", example="set_context(enable_profiling=True)",
    since="0.3", effect="observe.profiling.legacy_option:enable", process_wide=True,
    doc="Collects the data that `profiling_options` requests while the program runs, and writes it at the end. By default it collects only "
        "the times of steps.",
)
profiling_options = Option(
    kind=Profiling(("training_trace", "task_trace", "op_trace"), _OTHER_NAMES, _MEMBERS), default="training_trace",
    instead="mindspore.profiler.Profiler", effect="observe.profiling.legacy_option:configure", process_wide=True,
    example="""set_context(profiling_options='{"output": "data", "training_trace": "on"}')""",
    since="0.3",
    doc="The contents of the profile, and its folder. The getter returns the text that was set.",
)


def _switch(doc: str) -> Option:
    return Option(member_of="profiling_options", top_level=False, as_json=True, kind=Choice("on", "off"), default="off", doc=doc,
                  read_by="observe.profiling.legacy_option", example="""set_context(profiling_options='{"training_trace": "on"}')""")


def _text(doc: str) -> Option:
    return Option(member_of="profiling_options", top_level=False, as_json=True, kind=Str(), default="", doc=doc,
                  read_by="observe.profiling.legacy_option", example="""set_context(profiling_options='{"output": "data"}')""")


output = _text("The directory for the results.")
result_path = _text("An older name of `output`.")
training_trace = _switch("Times of each step: input, forward and backward, reduction of gradients, update.")
task_trace = _switch("Start and end of each piece of work on the device.")
aicpu_trace = _switch("The work of the device's CPU on the input data.")
op_trace = _switch("The cost of single operators.")
fp_point = _text("The operator that marks the start of the forward pass; detected automatically if empty.")
bp_point = _text("The operator that marks the end of the backward pass; detected automatically if empty.")
ai_core_metrics = Option(
    member_of="profiling_options", top_level=False, as_json=True, read_by="observe.profiling.legacy_option", default="PipeUtilization",
    kind=Choice("ArithmeticUtilization", "PipeUtilization", "Memory", "MemoryL0", "ResourceConflictRatio"),
    example="""set_context(profiling_options='{"ai_core_metrics": "Memory"}')""",
    doc="The group of counters that is read from the device's cores.",
)
