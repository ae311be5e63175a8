"""Graph kernels: whether adjacent operators are fused into generated kernels, and the flags that control it."""

from __future__ import annotations

from torchspore.context.kinds import Bool, GraphKernelFlags, Int, Kind, Str, Words
from torchspore.context.option import On, Option
from torchspore.public_names.kernels import EXPRESSIONS, OPERATORS, PASSES

_OPERATORS = Words("operators", OPERATORS)
_EXPRESSIONS = Words("rules", EXPRESSIONS)
_PASSES = Words("passes", PASSES)
_READER = "graph.settings"


def _kinds() -> dict[str, Kind]:
    return {name: member.kind for name, member in graph_kernel_flags.members.items()}


enable_graph_kernel = Option(
    kind=Bool(), default=False, in_graph_key=True, read_by=_READER, graph_only=True, example="set_context(enable_graph_kernel=True)",
    since="0.5",
    doc="Fuses adjacent operators of a graph into generated kernels, controlled by `opt_level` of `graph_kernel_flags`, by default 2.",
)
graph_kernel_flags = Option(
    kind=GraphKernelFlags(_kinds), default="", in_graph_key=True, environment_wins=True, read_by=_READER, graph_only=True,
    environment=("MS_GRAPH_KERNEL_FLAGS", "MS_DEV_GRAPH_KERNEL_FLAGS"),
    example="set_context(graph_kernel_flags='--opt_level=2 --dump_as_text')",
    since="1.3",
    doc="Settings for the fusion of operators. They override `enable_graph_kernel`. Text that is not a flag causes a warning.",
)
opt_level = Option(
    member_of="graph_kernel_flags", top_level=False, kind=Int(0, 3), default=None, read_by=_READER,
    example="set_context(graph_kernel_flags='--opt_level=2')",
    doc="The level of fusion: 0 none, 1 elementwise operators, 2 also reductions at the end of a kernel and simplified arithmetic, 3 all. "
        "The default is 2 with `enable_graph_kernel`, otherwise 0.",
)
dump_as_text = Option(
    member_of="graph_kernel_flags", top_level=False, kind=Bool(), default=False, read_by=_READER,
    example="set_context(graph_kernel_flags='--dump_as_text')",
    doc="Writes the fused kernels to the directory graph_kernel_dump.",
)
path = Option(
    member_of="graph_kernel_flags", top_level=False, kind=Str("the path of a JSON file"), default="", read_by=_READER,
    example="set_context(graph_kernel_flags='--path=flags.json')",
    doc="A JSON file with further flags, as strings by name. Flags in `graph_kernel_flags` override it.",
)
enable_stitch_fusion = Option(
    member_of="graph_kernel_flags", top_level=False, kind=Bool(), default=None, read_by=_READER,
    example="set_context(graph_kernel_flags='--enable_stitch_fusion=false')",
    doc="Fuses a reduction and its consumers into one kernel; enabled at opt_level 3.",
)
enable_recompute_fusion = Option(
    member_of="graph_kernel_flags", top_level=False, kind=Bool(), default=None, read_by=_READER,
    example="set_context(graph_kernel_flags='--enable_recompute_fusion=false')",
    doc="Recomputes cheap values where they are read instead of storing them; enabled from opt_level 2.",
)
enable_parallel_fusion = Option(
    member_of="graph_kernel_flags", top_level=False, kind=Bool(), default=None, read_by=_READER,
    example="set_context(graph_kernel_flags='--enable_parallel_fusion=false')",
    doc="Joins independent small kernels of the same shape into one kernel; enabled at opt_level 3.",
)
enable_horizontal_fusion = Option(
    member_of="graph_kernel_flags", top_level=False, kind=Bool(), default=None, read_by=_READER,
    example="set_context(graph_kernel_flags='--enable_horizontal_fusion=false')",
    doc="Joins independent kernels that read the same value into one kernel; enabled at opt_level 3.",
)
enable_auto_tensor_inplace = Option(
    member_of="graph_kernel_flags", top_level=False, kind=Bool(), default=False,
    example="set_context(graph_kernel_flags='--enable_auto_tensor_inplace')",
    doc="Requests kernels that overwrite values that are no longer needed.",
    idle="kernels write into new memory; the memory of a value is reused as soon as no operator needs it",
)
enable_dynamic_batch = Option(
    member_of="graph_kernel_flags", top_level=False, kind=Bool(), default=True, read_by=_READER,
    example="set_context(graph_kernel_flags='--enable_dynamic_batch=false')",
    doc="Compiles kernels for graphs in which only the first axis of the inputs has a variable length, once for all lengths. If False, "
        "such a graph runs without kernels.",
)
enable_low_precision = Option(
    member_of="graph_kernel_flags", top_level=False, kind=Bool(), default=False,
    example="set_context(graph_kernel_flags='--enable_low_precision')",
    doc="Requests kernels that compute in a lower precision.",
    idle="a kernel computes in the dtypes of its operators; ascend_config's precision_mode changes those",
)
enable_csr_fusion = Option(
    member_of="graph_kernel_flags", top_level=False, kind=Bool(), default=False, read_by=_READER,
    example="set_context(graph_kernel_flags='--enable_csr_fusion')",
    doc="Fuses also the lookups of sparse CSR operators, which read the elements of a Tensor at the positions of a matrix.",
)
enable_debug_mode = Option(
    member_of="graph_kernel_flags", top_level=False, kind=Bool(), default=False, read_by=_READER, on=On.CPU,
    example="set_context(graph_kernel_flags='--enable_debug_mode')",
    doc="Compiles kernels without optimization and with debug symbols, so that a debugger such as gdb shows their source lines.",
)
enable_lite_conv_tuning = Option(
    member_of="graph_kernel_flags", top_level=False, kind=Bool(), default=False,
    example="set_context(graph_kernel_flags='--enable_lite_conv_tuning')",
    doc="Lets MindSpore Lite tune its convolutions.",
    idle="convolutions are calls of oneDNN; MindSpore Lite is not used",
)
enable_vectorization = Option(
    member_of="graph_kernel_flags", top_level=False, kind=Bool(), default=True, read_by=_READER,
    example="set_context(graph_kernel_flags='--enable_vectorization=false')",
    doc="Lets kernels use vector instructions of the processor.",
)
enable_dynamic_shape_fusion = Option(
    member_of="graph_kernel_flags", top_level=False, kind=Bool(), default=False, read_by=_READER,
    example="set_context(graph_kernel_flags='--enable_dynamic_shape_fusion')",
    doc="Also compiles kernels for graphs in which axes other than the first have a variable length, once for all lengths.",
)
enable_parallel_op_combine = Option(
    member_of="graph_kernel_flags", top_level=False, kind=Bool(), default=False, read_by=_READER,
    example="set_context(graph_kernel_flags='--enable_parallel_op_combine')",
    doc="Computes matrix products of equal shapes that share an operand as one batched product. The other operands are copied into one "
        "Tensor, constant weights only once. Sums may be rounded differently.",
)
disable_matmul_post_fusion = Option(
    member_of="graph_kernel_flags", top_level=False, kind=Bool(), default=False, read_by=_READER,
    example="set_context(graph_kernel_flags='--disable_matmul_post_fusion')",
    doc="Disables the fusion of a matrix product with the activation that follows it. `infer_boost` and the levels O1 and O2 fuse them "
        "otherwise.",
)
enable_allreduce_prologue_fusion = Option(
    member_of="graph_kernel_flags", top_level=False, kind=Bool(), default=False,
    example="set_context(graph_kernel_flags='--enable_allreduce_prologue_fusion')",
    doc="Requests kernels that include the operators before a collective.",
    idle="collectives are calls of a library; nothing is fused into them",
)
enable_allreduce_epilogue_fusion = Option(
    member_of="graph_kernel_flags", top_level=False, kind=Bool(), default=False,
    example="set_context(graph_kernel_flags='--enable_allreduce_epilogue_fusion')",
    doc="Requests kernels that include the operators after a collective.",
    idle="collectives are calls of a library; nothing is fused into them",
)
exact_precision_mode = Option(
    member_of="graph_kernel_flags", top_level=False, kind=Bool(), default=False, read_by=_READER,
    example="set_context(graph_kernel_flags='--exact_precision_mode')",
    doc="Fuses only operators whose kernels compute the same bits as the separate operators.",
)
enable_cce_lib = Option(
    member_of="graph_kernel_flags", top_level=False, kind=Bool(), default=False,
    example="set_context(graph_kernel_flags='--enable_cce_lib')",
    doc="Requests Ascend's library of kernels.",
    idle="it is a library of Ascend's own compiler",
)
reduce_fuse_depth = Option(
    member_of="graph_kernel_flags", top_level=False, kind=Int(-1), default=-1, read_by=_READER,
    example="set_context(graph_kernel_flags='--reduce_fuse_depth=2')",
    doc="The number of operators before a reduction that are fused into its kernel. -1 means any number; 0 excludes reductions.",
)
online_tuning = Option(
    member_of="graph_kernel_flags", top_level=False, kind=Int(0), default=0, read_by=_READER,
    example="set_context(graph_kernel_flags='--online_tuning=1')",
    doc="If 1 or more, measures each kernel and its separate operators, and uses the faster form.",
)
cpu_refer_thread_num = Option(
    member_of="graph_kernel_flags", top_level=False, kind=Int(1), default=None, read_by=_READER,
    example="set_context(graph_kernel_flags='--cpu_refer_thread_num=4')",
    doc="The number of threads for which a kernel is generated; by default the number that torch uses.",
)
fusion_ops_level = Option(
    member_of="graph_kernel_flags", top_level=False, kind=Int(0), default=None, read_by=_READER,
    example="set_context(graph_kernel_flags='--fusion_ops_level=1')",
    doc="The operators that may be fused: 0 the basic ones, 1 or more also concat, stack and pad. The default is 1 at opt_level 3, "
        "otherwise 0.",
)
parallel_ops_level = Option(
    member_of="graph_kernel_flags", top_level=False, kind=Int(0), default=0, read_by=_READER,
    example="set_context(graph_kernel_flags='--parallel_ops_level=1')",
    doc="If 1 or more, `enable_parallel_fusion` and `enable_parallel_op_combine` also join operators that are far apart in the graph and "
        "share no value, if none of them depends on another. Values are then stored longer. 0 joins neighbours, and products that share an "
        "operand.",
)
recompute_increment_threshold = Option(
    member_of="graph_kernel_flags", top_level=False, kind=Int(0), default=0, read_by=_READER,
    example="set_context(graph_kernel_flags='--recompute_increment_threshold=1048576')",
    doc="The maximum number of additional bytes that may stay in memory for a recomputed value.",
)
recompute_peak_threshold = Option(
    member_of="graph_kernel_flags", top_level=False, kind=Int(0), default=0, read_by=_READER,
    example="set_context(graph_kernel_flags='--recompute_peak_threshold=4096')",
    doc="The size in bytes below which values are stored and not recomputed.",
)
composite_op_limit_size = Option(
    member_of="graph_kernel_flags", top_level=False, kind=Int(2), default=200, read_by=_READER,
    example="set_context(graph_kernel_flags='--composite_op_limit_size=20')",
    doc="The largest number of operators in one kernel.",
)
repository_path = Option(
    member_of="graph_kernel_flags", top_level=False, kind=Str("a path"), default="",
    example="set_context(graph_kernel_flags='--repository_path=schedules')",
    doc="The folder in which AKG finds schedules from earlier tuning.",
    idle="it contains schedules of AKG; aoe_tune_mode and enable_compile_cache store what torchspore measures",
)
target_os = Option(
    member_of="graph_kernel_flags", top_level=False, kind=Str(), default="linux",
    example="set_context(graph_kernel_flags='--target_os=linux')",
    doc="The operating system for which kernels are generated.",
    idle="kernels are compiled for the machine that runs them",
)
cpu_arch = Option(
    member_of="graph_kernel_flags", top_level=False, kind=Str(), default="",
    example="set_context(graph_kernel_flags='--cpu_arch=x86_64')",
    doc="The processor for which kernels are generated.",
    idle="kernels are compiled for the machine that runs them",
)
cpu_feature = Option(
    member_of="graph_kernel_flags", top_level=False, kind=Str(), default="", read_by=_READER, on=On.CPU,
    example="set_context(graph_kernel_flags='--cpu_feature=avx512')",
    doc="The vector instructions that kernels use: sse (no wide vectors), avx (256 bits), avx512 or neon. The default is the widest "
        "of the machine.",
)
cpu_type = Option(
    member_of="graph_kernel_flags", top_level=False, kind=Str(), default="",
    example="set_context(graph_kernel_flags='--cpu_type=skylake-avx512')",
    doc="The model of the processor for which kernels are generated.",
    idle="kernels are compiled for the machine that runs them; cpu_feature chooses their vector instructions",
)
kernel_generator = Option(
    member_of="graph_kernel_flags", top_level=False, kind=Str(), default="AKG",
    example="set_context(graph_kernel_flags='--kernel_generator=AKG')",
    doc="The generator of the kernels.",
    idle="torch's Inductor writes the kernels",
)
enable_expand_ops = Option(
    member_of="graph_kernel_flags", top_level=False, kind=_OPERATORS, default=(), read_by=_READER,
    example="set_context(graph_kernel_flags='--enable_expand_ops=LayerNorm')",
    doc="Composite operators such as Softmax that may be expanded in a kernel, in addition to those of the opt_level.",
)
enable_expand_ops_only = Option(
    member_of="graph_kernel_flags", top_level=False, kind=_OPERATORS, default=(), read_by=_READER,
    example="set_context(graph_kernel_flags='--enable_expand_ops_only=Softmax')",
    doc="The only composite operators such as Softmax that may be expanded in a kernel.",
)
disable_expand_ops = Option(
    member_of="graph_kernel_flags", top_level=False, kind=_OPERATORS, default=(), read_by=_READER,
    example="set_context(graph_kernel_flags='--disable_expand_ops=Softmax')",
    doc="Composite operators such as Softmax that are not expanded.",
)
enable_cluster_ops = Option(
    member_of="graph_kernel_flags", top_level=False, kind=_OPERATORS, default=(), read_by=_READER,
    example="set_context(graph_kernel_flags='--enable_cluster_ops=ReduceSum')",
    doc="Operators that may be fused, in addition to those of the opt_level.",
)
enable_cluster_ops_only = Option(
    member_of="graph_kernel_flags", top_level=False, kind=_OPERATORS, default=(), read_by=_READER,
    example="set_context(graph_kernel_flags='--enable_cluster_ops_only=Add,ReLU')",
    doc="The only operators that may be fused.",
)
disable_cluster_ops = Option(
    member_of="graph_kernel_flags", top_level=False, kind=_OPERATORS, default=(), read_by=_READER,
    example="set_context(graph_kernel_flags='--disable_cluster_ops=Exp')",
    doc="Operators that must not be fused.",
)
enable_simplify_exprs_only = Option(
    member_of="graph_kernel_flags", top_level=False, kind=_EXPRESSIONS, default=(), read_by=_READER,
    example="set_context(graph_kernel_flags='--enable_simplify_exprs_only=mul_one')",
    doc="The only arithmetic rules that are applied.",
)
disable_simplify_exprs = Option(
    member_of="graph_kernel_flags", top_level=False, kind=_EXPRESSIONS, default=(), read_by=_READER,
    example="set_context(graph_kernel_flags='--disable_simplify_exprs=pow_two')",
    doc="Arithmetic rules that are not applied.",
)
enable_pass = Option(
    member_of="graph_kernel_flags", top_level=False, kind=_PASSES, default=(), read_by=_READER,
    example="set_context(graph_kernel_flags='--enable_pass=stitch_fusion')",
    doc="Passes that run even if the opt_level excludes them.",
)
disable_pass = Option(
    member_of="graph_kernel_flags", top_level=False, kind=_PASSES, default=(), read_by=_READER,
    example="set_context(graph_kernel_flags='--disable_pass=graph_kernel_cse')",
    doc="Passes that do not run.",
)
