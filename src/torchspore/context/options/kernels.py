"""Graph kernels: whether neighbouring operators are fused into generated kernels, and the flags that steer it."""

from __future__ import annotations

from torchspore.context.kinds import Bool, GraphKernelFlags, Int, Kind, Str, Words
from torchspore.context.option import Option
from torchspore.names.kernels import EXPRESSIONS, OPERATORS, PASSES

_OPERATORS = Words("operators", OPERATORS)
_EXPRESSIONS = Words("rules", EXPRESSIONS)
_PASSES = Words("passes", PASSES)
_READER = "graph.settings"


def _kinds() -> dict[str, Kind]:
    return {name: member.kind for name, member in graph_kernel_flags.members.items()}


enable_graph_kernel = Option(
    kind=Bool(), default=False, in_graph_key=True, read_by=_READER, graph_only=True, example="set_context(enable_graph_kernel=True)",
    since="0.5",
    doc="Fuses neighbouring operators of a graph into generated kernels, as the `opt_level` of `graph_kernel_flags` says, which is then 2.",
)
graph_kernel_flags = Option(
    kind=GraphKernelFlags(_kinds), default="", in_graph_key=True, wins=True, read_by=_READER, graph_only=True,
    environment=("MS_GRAPH_KERNEL_FLAGS", "MS_DEV_GRAPH_KERNEL_FLAGS"),
    example="set_context(graph_kernel_flags='--opt_level=2 --dump_as_text')",
    since="1.3",
    doc="Details of the fusion of operators. They win over `enable_graph_kernel`. What is no flag is named in a warning.",
)
opt_level = Option(
    within="graph_kernel_flags", top_level=False, kind=Int(0, 3), default=None, read_by=_READER,
    example="set_context(graph_kernel_flags='--opt_level=2')",
    doc="How far operators are fused: 0 not at all, 1 elementwise ones, 2 with reductions at the end and simplified arithmetic, 3 with "
        "everything. Where it is not given, 2 with `enable_graph_kernel` and else 0.",
)
dump_as_text = Option(
    within="graph_kernel_flags", top_level=False, kind=Bool(), default=False, read_by=_READER,
    example="set_context(graph_kernel_flags='--dump_as_text')",
    doc="Writes what was fused into the directory graph_kernel_dump.",
)
path = Option(
    within="graph_kernel_flags", top_level=False, kind=Str("the path of a JSON file"), default="", read_by=_READER,
    example="set_context(graph_kernel_flags='--path=flags.json')",
    doc="A JSON file with more flags, as texts by name; flags in the text itself win over it.",
)
enable_stitch_fusion = Option(
    within="graph_kernel_flags", top_level=False, kind=Bool(), default=None, read_by=_READER,
    example="set_context(graph_kernel_flags='--enable_stitch_fusion=false')",
    doc="Makes one kernel of a reduction and what reads it; on at opt_level 3.",
)
enable_recompute_fusion = Option(
    within="graph_kernel_flags", top_level=False, kind=Bool(), default=None, read_by=_READER,
    example="set_context(graph_kernel_flags='--enable_recompute_fusion=false')",
    doc="Computes cheap values again where they are read instead of keeping them; on from opt_level 2.",
)
enable_parallel_fusion = Option(
    within="graph_kernel_flags", top_level=False, kind=Bool(), default=None, read_by=_READER,
    example="set_context(graph_kernel_flags='--enable_parallel_fusion=false')",
    doc="Makes one kernel of independent small ones of one shape; on at opt_level 3.",
)
enable_horizontal_fusion = Option(
    within="graph_kernel_flags", top_level=False, kind=Bool(), default=None, read_by=_READER,
    example="set_context(graph_kernel_flags='--enable_horizontal_fusion=false')",
    doc="Makes one kernel of independent ones that read the same value; on at opt_level 3.",
)
enable_auto_tensor_inplace = Option(
    within="graph_kernel_flags", top_level=False, kind=Bool(), default=False,
    example="set_context(graph_kernel_flags='--enable_auto_tensor_inplace')",
    doc="Asks kernels to write over values that die.",
    idle="a kernel's results go to fresh memory, which is that of values that died before",
)
enable_dynamic_batch = Option(
    within="graph_kernel_flags", top_level=False, kind=Bool(), default=True,
    example="set_context(graph_kernel_flags='--enable_dynamic_batch')",
    doc="Asks for kernels that take batches of any size.",
    idle="kernels are compiled for fixed lengths, and a graph with an open one runs without them",
)
enable_low_precision = Option(
    within="graph_kernel_flags", top_level=False, kind=Bool(), default=False,
    example="set_context(graph_kernel_flags='--enable_low_precision')",
    doc="Asks for kernels that compute in a lower precision.",
    idle="a kernel computes in the dtypes of its operators; ascend_config's precision_mode changes those",
)
enable_csr_fusion = Option(
    within="graph_kernel_flags", top_level=False, kind=Bool(), default=False,
    example="set_context(graph_kernel_flags='--enable_csr_fusion')",
    doc="Asks for kernels of sparse CSR operators.",
    idle="sparse CSR operators are calls of torch's library, no generator writes kernels of them",
)
enable_debug_mode = Option(
    within="graph_kernel_flags", top_level=False, kind=Bool(), default=False,
    example="set_context(graph_kernel_flags='--enable_debug_mode')",
    doc="Asks for kernels that can be looked into.",
    idle="TORCHSPORE_LOG=graph tells of each kernel as it is compiled",
)
enable_lite_conv_tuning = Option(
    within="graph_kernel_flags", top_level=False, kind=Bool(), default=False,
    example="set_context(graph_kernel_flags='--enable_lite_conv_tuning')",
    doc="Asks MindSpore Lite to tune its convolutions.",
    idle="convolutions are calls of oneDNN; MindSpore Lite is not here",
)
enable_vectorization = Option(
    within="graph_kernel_flags", top_level=False, kind=Bool(), default=True, read_by=_READER,
    example="set_context(graph_kernel_flags='--enable_vectorization=false')",
    doc="Lets kernels use vector instructions of the processor.",
)
enable_dynamic_shape_fusion = Option(
    within="graph_kernel_flags", top_level=False, kind=Bool(), default=False,
    example="set_context(graph_kernel_flags='--enable_dynamic_shape_fusion')",
    doc="Asks for the fusion of graphs with open lengths.",
    idle="kernels are compiled for fixed lengths, and a graph with an open one runs without them",
)
enable_parallel_op_combine = Option(
    within="graph_kernel_flags", top_level=False, kind=Bool(), default=False,
    example="set_context(graph_kernel_flags='--enable_parallel_op_combine')",
    doc="Asks for one product in the place of several that read the same value.",
    idle="putting the weights of several products together would copy them at each call",
)
disable_matmul_post_fusion = Option(
    within="graph_kernel_flags", top_level=False, kind=Bool(), default=False,
    example="set_context(graph_kernel_flags='--disable_matmul_post_fusion')",
    doc="Forbids the fusion of what follows a product into it.",
    idle="products are calls of a library; nothing is fused into them here",
)
enable_allreduce_prologue_fusion = Option(
    within="graph_kernel_flags", top_level=False, kind=Bool(), default=False,
    example="set_context(graph_kernel_flags='--enable_allreduce_prologue_fusion')",
    doc="Asks for kernels that hold what comes before a collective.",
    idle="collectives are calls of a library; nothing is fused into them",
)
enable_allreduce_epilogue_fusion = Option(
    within="graph_kernel_flags", top_level=False, kind=Bool(), default=False,
    example="set_context(graph_kernel_flags='--enable_allreduce_epilogue_fusion')",
    doc="Asks for kernels that hold what comes after a collective.",
    idle="collectives are calls of a library; nothing is fused into them",
)
exact_precision_mode = Option(
    within="graph_kernel_flags", top_level=False, kind=Bool(), default=False, read_by=_READER,
    example="set_context(graph_kernel_flags='--exact_precision_mode')",
    doc="Fuses only operators whose kernels give the bits of the operators one by one.",
)
enable_cce_lib = Option(
    within="graph_kernel_flags", top_level=False, kind=Bool(), default=False,
    example="set_context(graph_kernel_flags='--enable_cce_lib')",
    doc="Asks for Ascend's own library of kernels.",
    idle="it is a library of Ascend's own compiler",
)
reduce_fuse_depth = Option(
    within="graph_kernel_flags", top_level=False, kind=Int(-1), default=-1, read_by=_READER,
    example="set_context(graph_kernel_flags='--reduce_fuse_depth=2')",
    doc="How many operators before a reduction go into its kernel; -1 is any number, 0 leaves reductions out.",
)
online_tuning = Option(
    within="graph_kernel_flags", top_level=False, kind=Int(0), default=0, read_by=_READER,
    example="set_context(graph_kernel_flags='--online_tuning=1')",
    doc="From 1 on, measures each kernel beside its operators and keeps the faster.",
)
cpu_refer_thread_num = Option(
    within="graph_kernel_flags", top_level=False, kind=Int(1), default=None, read_by=_READER,
    example="set_context(graph_kernel_flags='--cpu_refer_thread_num=4')",
    doc="How many threads a kernel is written for; as many as torch uses where it is not given.",
)
fusion_ops_level = Option(
    within="graph_kernel_flags", top_level=False, kind=Int(0), default=None, read_by=_READER,
    example="set_context(graph_kernel_flags='--fusion_ops_level=1')",
    doc="Which operators may fuse: 0 the plain ones, from 1 on also joining, stacking and padding; 1 at opt_level 3, else 0.",
)
parallel_ops_level = Option(
    within="graph_kernel_flags", top_level=False, kind=Int(0), default=0,
    example="set_context(graph_kernel_flags='--parallel_ops_level=1')",
    doc="Which products may be combined.",
    idle="products are not combined, see enable_parallel_op_combine",
)
recompute_increment_threshold = Option(
    within="graph_kernel_flags", top_level=False, kind=Int(0), default=0, read_by=_READER,
    example="set_context(graph_kernel_flags='--recompute_increment_threshold=1048576')",
    doc="How many bytes may be kept longer for a value that is computed again.",
)
recompute_peak_threshold = Option(
    within="graph_kernel_flags", top_level=False, kind=Int(0), default=0, read_by=_READER,
    example="set_context(graph_kernel_flags='--recompute_peak_threshold=4096')",
    doc="Values of fewer bytes are kept and not computed again.",
)
composite_op_limit_size = Option(
    within="graph_kernel_flags", top_level=False, kind=Int(2), default=200, read_by=_READER,
    example="set_context(graph_kernel_flags='--composite_op_limit_size=20')",
    doc="How many operators one kernel holds at most.",
)
repository_path = Option(
    within="graph_kernel_flags", top_level=False, kind=Str("a path"), default="",
    example="set_context(graph_kernel_flags='--repository_path=schedules')",
    doc="Where AKG finds schedules that were tuned before.",
    idle="it holds schedules of AKG; what torchspore measures is kept by aoe_tune_mode and enable_compile_cache",
)
target_os = Option(
    within="graph_kernel_flags", top_level=False, kind=Str(), default="linux",
    example="set_context(graph_kernel_flags='--target_os=linux')",
    doc="The system that kernels are written for.",
    idle="kernels are compiled for the machine that runs them",
)
cpu_arch = Option(
    within="graph_kernel_flags", top_level=False, kind=Str(), default="",
    example="set_context(graph_kernel_flags='--cpu_arch=x86_64')",
    doc="The processor that kernels are written for.",
    idle="kernels are compiled for the machine that runs them",
)
cpu_feature = Option(
    within="graph_kernel_flags", top_level=False, kind=Str(), default="",
    example="set_context(graph_kernel_flags='--cpu_feature=avx512')",
    doc="The instructions that kernels are written for.",
    idle="kernels are compiled for the machine that runs them",
)
cpu_type = Option(
    within="graph_kernel_flags", top_level=False, kind=Str(), default="",
    example="set_context(graph_kernel_flags='--cpu_type=skylake-avx512')",
    doc="The model of the processor that kernels are written for.",
    idle="kernels are compiled for the machine that runs them",
)
kernel_generator = Option(
    within="graph_kernel_flags", top_level=False, kind=Str(), default="AKG",
    example="set_context(graph_kernel_flags='--kernel_generator=AKG')",
    doc="What writes the kernels.",
    idle="torch's Inductor writes the kernels",
)
enable_expand_ops = Option(
    within="graph_kernel_flags", top_level=False, kind=_OPERATORS, default=(), read_by=_READER,
    example="set_context(graph_kernel_flags='--enable_expand_ops=LayerNorm')",
    doc="Operators such as Softmax that may become parts of a kernel besides those of the opt_level.",
)
enable_expand_ops_only = Option(
    within="graph_kernel_flags", top_level=False, kind=_OPERATORS, default=(), read_by=_READER,
    example="set_context(graph_kernel_flags='--enable_expand_ops_only=Softmax')",
    doc="The only operators such as Softmax that may become parts of a kernel.",
)
disable_expand_ops = Option(
    within="graph_kernel_flags", top_level=False, kind=_OPERATORS, default=(), read_by=_READER,
    example="set_context(graph_kernel_flags='--disable_expand_ops=Softmax')",
    doc="Operators such as Softmax that stay whole.",
)
enable_cluster_ops = Option(
    within="graph_kernel_flags", top_level=False, kind=_OPERATORS, default=(), read_by=_READER,
    example="set_context(graph_kernel_flags='--enable_cluster_ops=ReduceSum')",
    doc="Operators that may fuse besides those of the opt_level.",
)
enable_cluster_ops_only = Option(
    within="graph_kernel_flags", top_level=False, kind=_OPERATORS, default=(), read_by=_READER,
    example="set_context(graph_kernel_flags='--enable_cluster_ops_only=Add,ReLU')",
    doc="The only operators that may fuse.",
)
disable_cluster_ops = Option(
    within="graph_kernel_flags", top_level=False, kind=_OPERATORS, default=(), read_by=_READER,
    example="set_context(graph_kernel_flags='--disable_cluster_ops=Exp')",
    doc="Operators that may not fuse.",
)
enable_simplify_exprs_only = Option(
    within="graph_kernel_flags", top_level=False, kind=_EXPRESSIONS, default=(), read_by=_READER,
    example="set_context(graph_kernel_flags='--enable_simplify_exprs_only=mul_one')",
    doc="The only rules of arithmetic that are applied.",
)
disable_simplify_exprs = Option(
    within="graph_kernel_flags", top_level=False, kind=_EXPRESSIONS, default=(), read_by=_READER,
    example="set_context(graph_kernel_flags='--disable_simplify_exprs=pow_two')",
    doc="Rules of arithmetic that are not applied.",
)
enable_pass = Option(
    within="graph_kernel_flags", top_level=False, kind=_PASSES, default=(), read_by=_READER,
    example="set_context(graph_kernel_flags='--enable_pass=stitch_fusion')",
    doc="Passes that run though the opt_level leaves them out.",
)
disable_pass = Option(
    within="graph_kernel_flags", top_level=False, kind=_PASSES, default=(), read_by=_READER,
    example="set_context(graph_kernel_flags='--disable_pass=graph_kernel_cse')",
    doc="Passes that do not run.",
)
