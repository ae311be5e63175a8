"""Options of the GPU."""

from __future__ import annotations

from torchspore.context.kinds import Among, Bool, Choice, Members
from torchspore.context.option import On, Option

NOT_RUN_ON_GPU = "no GPU has run cuDNN's algorithms by name yet; tests call a stand-in of the library"
"""Delete it, and the outcome's note in engine/devices/gpu/convolution.py, when tests/gpu/test_algorithms.py has passed on a GPU."""

gpu_config = Option(
    kind=Members(adds=True), default={}, on=On.GPU, in_graph_key=True, process_wide=True,
    example="set_context(gpu_config={'conv_allow_tf32': False})",
    since="2.1",
    doc="Settings of the GPU's kernels.",
)
conv_fprop_algo = Option(
    member_of="gpu_config", on=On.GPU, effect="engine.devices.gpu.convolution:forward", default="normal",
    example="set_context(gpu_config={'conv_fprop_algo': 'performance'})",
    kind=Choice("normal", "performance", "implicit_gemm", "precomp_gemm", "gemm", "direct", "fft", "fft_tiling", "winograd",
                "winograd_nonfused", also={"implicit_precomp_gemm": "precomp_gemm"}),
    since="2.1", experimental=NOT_RUN_ON_GPU,
    doc="The algorithm for the forward pass of convolutions: the library's choice (normal), the fastest one in a trial (performance), or "
        "an algorithm by name.",
)
conv_dgrad_algo = Option(
    member_of="gpu_config", on=On.GPU, effect="engine.devices.gpu.convolution:data", default="normal",
    example="set_context(gpu_config={'conv_dgrad_algo': 'algo_1'})",
    kind=Choice("normal", "performance", "algo_0", "algo_1", "fft", "fft_tiling", "winograd", "winograd_nonfused"),
    since="2.1", experimental=NOT_RUN_ON_GPU,
    doc="The algorithm for the gradient of a convolution with respect to its input. algo_0 adds in any order and is not deterministic.",
)
conv_wgrad_algo = Option(
    member_of="gpu_config", on=On.GPU, effect="engine.devices.gpu.convolution:filter", default="normal",
    example="set_context(gpu_config={'conv_wgrad_algo': 'algo_1'})",
    kind=Choice("normal", "performance", "algo_0", "algo_1", "algo_3", "fft", "fft_tiling", "winograd_nonfused"),
    since="2.1", experimental=NOT_RUN_ON_GPU,
    doc="The algorithm for the gradient of a convolution with respect to its weight.",
)
conv_allow_tf32 = Option(
    member_of="gpu_config", on=On.GPU, effect="engine.devices.gpu.tf32:conv",
    kind=Among(True, False, bools_only=True), default=True,
    example="set_context(gpu_config={'conv_allow_tf32': False})",
    since="2.2",
    doc="Allows TF32 for convolutions of float32. TF32 is faster and has 10 bits of fraction.",
)
matmul_allow_tf32 = Option(
    member_of="gpu_config", on=On.GPU, effect="engine.devices.gpu.tf32:matmul",
    kind=Among(True, False, bools_only=True), default=False,
    example="set_context(gpu_config={'matmul_allow_tf32': True})",
    since="2.2",
    doc="Allows TF32 for matrix products of float32.",
)
disable_format_transform = Option(
    kind=Bool(), default=False, on=On.CPU | On.GPU, in_graph_key=True, read_by="graph.settings",
    example="set_context(disable_format_transform=True)",
    since="1.8",
    doc="Stores images in NCHW order. Otherwise graphs of level O1 and O2 use NHWC where this is faster.",
)
