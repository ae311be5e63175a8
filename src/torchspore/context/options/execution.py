"""Options of how a program runs."""

from __future__ import annotations

from torchspore.context.kinds import Bool, Choice, Int, Named
from torchspore.context.option import On, Option
from torchspore.errors import OptionValueError

mode = Option(
    kind=Named({"GRAPH_MODE": 0, "PYNATIVE_MODE": 1}, none=OptionValueError), default=1, read_by="mindspore.nn.cell",
    fixed_outcomes={1: "operators run as Python reaches them"}, example="set_context(mode=GRAPH_MODE)",
    since="0.1",
    doc="Runs each Cell operator by operator (PYNATIVE_MODE) or as one captured graph (GRAPH_MODE). A program may change the mode at any "
        "time; the same Cells work in both modes and compute the same numbers.",
)
deterministic = Option(
    kind=Choice("ON", "OFF"), default="OFF", effect="engine.execution.determinism:select", process_wide=True, in_graph_key=True,
    example="set_context(deterministic='ON')",
    since="2.0",
    doc="Selects kernels that compute equal bits from equal inputs in every run. An operator without such a kernel runs with a warning. ON "
        "also sets HCCL_DETERMINISTIC and TE_PARALLEL_COMPILER, and OFF removes them.",
)
pynative_synchronize = Option(
    kind=Bool(), default=False, on=On.GPU | On.ASCEND, effect="engine.execution.pynative:synchronize", process_wide=True,
    example="set_context(pynative_synchronize=True)",
    since="1.5",
    doc="Waits for each operator, so that an error appears at the line that caused it. On the CPU, Python always waits.",
)
max_call_depth = Option(
    kind=Int(1), default=1000, example="set_context(max_call_depth=1000)",
    read_by="graph.capture.depth", graph_only=True, since="0.7",
    doc="The maximum depth of nested calls of Cells and functions while a graph is captured. `set_recursion_limit` sets the same option.",
)
check_bprop = Option(
    kind=Bool(), default=False, in_graph_key=True, example="set_context(check_bprop=True)",
    read_by="engine.autograd.bprop", since="0.5",
    doc="Checks that the bprop method of a Cell returns gradients with the shapes and dtypes of its inputs.",
)
grad_for_scalar = Option(
    kind=Bool(), default=False, in_graph_key=True, example="set_context(grad_for_scalar=True)",
    read_by="engine.autograd.scalar_gradients", since="1.2", until="2.6",
    doc="Allows gradients with respect to Python numbers.",
)
enable_reduce_precision = Option(
    kind=Bool(), default=True, in_graph_key=True, read_by="engine.execution.unsupported_dtypes",
    example="set_context(enable_reduce_precision=False)",
    fixed_outcomes={True: "operators that lack a kernel in their dtype compute in float32 and are cast back",
            False: "an operator that lacks a kernel in its dtype is an error"},
    since="0.1",
    doc="Lets an operator run in a lower precision if the device does not support the requested one. If False, such an operator raises an "
        "error.",
)
enable_auto_mixed_precision = Option(
    kind=Bool(), default=False, in_graph_key=True, effect="engine.execution.precision:follow_auto_mixed", read_by="graph.settings",
    fixed_outcomes={False: "no policy is chosen automatically"}, example="set_context(enable_auto_mixed_precision=True)",
    since="0.1",
    doc="Enables mixed precision for the complete program: the policy allow_mix_precision of `precision_mode`, if `precision_mode` is not "
        "set.",
)
enable_sparse = Option(
    kind=Bool(), default=False, in_graph_key=True, read_by="mindspore.ops.arrays.table_lookups",
    fixed_outcomes={False: "gradients of gathers have the size of the table, except for EmbeddingLookup and SparseGatherV2"},
    example="set_context(enable_sparse=True)",
    since="0.7",
    doc="Computes gradients of gathers along axis 0 of a Parameter (nn.Embedding, ops.gather, ops.Gather) as RowTensors. Gradients of "
        "nn.EmbeddingLookup and ops.SparseGatherV2 are always RowTensors. Adam, LazyAdam, FTRL and ProximalAdagrad update only the rows of "
        "a RowTensor.",
)
support_binary = Option(
    kind=Bool(), default=False, environment=("MS_SUPPORT_BINARY",), example="set_context(support_binary=True)",
    read_by="graph.specialization.compilation", graph_only=True, since="1.8",
    doc="Stores the source of Cells in the program, so that Graph mode can convert Cells of a compiled .pyc or .so.",
)
