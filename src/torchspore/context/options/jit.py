"""Options of how graphs are compiled and stored."""

from __future__ import annotations

from torchspore.context.kinds import Bool, Choice, Members, Named, Path, Wrong
from torchspore.context.option import Option
from torchspore.errors import OptionValueError


def _check_infer_boost(config: dict[str, object]) -> None:
    if config.get("infer_boost") == "on" and config.get("jit_level", "O0") != "O0":
        raise Wrong(OptionValueError, "infer_boost 'on' only together with jit_level 'O0'", hint="write 'jit_level': 'O0'")


jit_syntax_level = Option(
    kind=Named({"STRICT": 0, "COMPATIBLE": 1, "LAX": 2}), default=2, in_graph_key=True, environment_wins=True,
    environment=("MS_DEV_JIT_SYNTAX_LEVEL",), read_by="graph.settings", graph_only=True,
    example="set_context(jit_syntax_level=STRICT)",
    since="2.1",
    doc="The Python syntax that compiled code may use. STRICT allows code that fits into one graph, COMPATIBLE also containers and "
        "code that only needs Python, such as `try`, and LAX as much as possible.",
)
jit_config = Option(
    kind=Members(validate=_check_infer_boost), default={}, in_graph_key=True, read_by="graph.settings",
    example="set_context(jit_config={'jit_level': 'O1'})",
    since="2.3",
    doc="Settings for the compilation of Cells and jit functions. A JitConfig on a Cell overrides them.",
)
jit_level = Option(
    member_of="jit_config", kind=Choice("O0", "O1", "O2", no_str=OptionValueError), default="", read_by="graph.settings",
    example="set_context(jit_config={'jit_level': 'O1'})",
    since="2.3",
    doc="The optimization level of graphs. O0 compiles fast, O1 fuses operators where this is faster, and O2 uses all optimizations that "
        "the machine supports.",
)
infer_boost = Option(
    member_of="jit_config", kind=Choice("on", "off", no_str=OptionValueError), default="off", read_by="graph.settings",
    fixed_outcomes={"off": "graphs serve training and inference"},
    example="set_context(jit_config={'infer_boost': 'on'})",
    since="2.3",
    doc="Compiles graphs for inference only: batch norms are folded and weights are packed. Training raises an error. The option requires "
        "jit_level O0.",
)
exec_order = Option(
    kind=Choice("bfs", "dfs", no_str=OptionValueError), default="bfs", in_graph_key=True, example="set_context(exec_order='bfs')",
    read_by="graph.settings", graph_only=True, since="2.4",
    doc="The order in which the operators of a graph run: layer by layer (bfs), or each branch to its end (dfs). If it is not set, they "
        "run in the program's order.",
)
enable_compile_cache = Option(
    kind=Bool(), default=None, environment=("MS_COMPILER_CACHE_ENABLE",), example="set_context(enable_compile_cache=True)",
    read_by="graph.compile_cache", graph_only=True, since="2.1",
    doc="Stores compiled graphs on disk and reuses them while the program's source stays the same. "
        "The getter returns None until it is set.",
)
compile_cache_path = Option(
    kind=Path(), default="", environment=("MS_COMPILER_CACHE_PATH",), example="set_context(compile_cache_path='cache')",
    read_by="graph.compile_cache", graph_only=True, since="1.6",
    doc="The directory of compiled graphs; by default the working directory.",
)
save_compile_cache = Option(
    kind=Bool(), default=False, instead="enable_compile_cache", example="set_context(save_compile_cache=True)",
    read_by="graph.compile_cache", graph_only=True, since="1.3", until="2.6",
    doc="Always compiles, and stores the compiled graphs on disk.",
)
load_compile_cache = Option(
    kind=Bool(), default=False, instead="enable_compile_cache", example="set_context(load_compile_cache=True)",
    read_by="graph.compile_cache", graph_only=True, since="1.3", until="2.6",
    doc="Uses compiled graphs from disk without checking whether the source has changed.",
)
