"""Options for debugging: what is recorded and written to files."""

from __future__ import annotations

from torchspore.context import prepare
from torchspore.context.kinds import INT32, Absolute, Bool, Directory, Int, JsonFile, Kind, Named, Path, PrintPath
from torchspore.context.option import Option
from torchspore.errors import OptionValueError
from torchspore.translations import translate


class Levels(Kind):
    """A level of detail from 0 to 3; True means 2."""

    stub = "bool | Literal[0, 1, 2, 3]"

    @property
    def read_stub(self) -> str:
        return "int"

    @property
    def expected(self) -> str:
        return translate("a bool, or a level from 0 to 3")

    def parse(self, value: object) -> int:
        if isinstance(value, bool):
            return 2 if value else 0
        if not isinstance(value, int):
            raise self.wrong_type(int(value) if isinstance(value, str) and value in ("0", "1", "2", "3") else None)
        if value not in range(4):
            raise self.wrong_value(min(3, max(0, value)))
        return value

    def parse_text(self, raw: str) -> int:
        if not raw.strip().isdigit():
            raise self.wrong_value()
        return self.parse(int(raw))


save_graphs = Option(
    kind=Levels(), default=0, environment_wins=True, environment=("MS_DEV_SAVE_GRAPHS",), example="set_context(save_graphs=2)",
    read_by="graph.save_graphs", graph_only=True, fixed_outcomes={0: "nothing is written"}, since="0.1",
    doc="The amount of information that is written about each compiled graph: 0 nothing, 1 the main stages and a page to view them, 2 also "
        "the steps of the back end and each branch and loop, 3 also every pass and drawings of all stages. True means 2 with drawings of "
        "the main stages.",
)
save_graphs_path = Option(
    kind=Directory(), default=".", environment_wins=True, environment=("MS_DEV_SAVE_GRAPHS_PATH",), prepare=prepare.directory,
    example="set_context(save_graphs_path='graphs')",
    read_by="graph.save_graphs", graph_only=True, since="0.1",
    doc="The directory for the files of `save_graphs`; it is created when the option is set.",
)
print_file_path = Option(
    kind=PrintPath(resolve=True, not_directory=True), default="", example="set_context(print_file_path='print.pb')",
    effect="engine.execution.printing:select", process_wide=True, since="0.5",
    doc="The file to which ops.Print writes instead of the screen; `parse_print` reads it.",
)
env_config_path = Option(
    kind=JsonFile({"sys.mem_Reuse": "sys.mem_reuse", "mem_reuse": "sys.mem_reuse", "mem_Reuse": "sys.mem_reuse"}), default="",
    example="set_context(env_config_path='config.json')",
    effect="observe.debug.recorder:configure", process_wide=True, since="1.2",
    doc="A JSON file that configures the recorder of running data and the reuse of memory.",
)
rdr_enable = Option(
    member_of="env_config_path", top_level=False, as_json=True, name="rdr.enable", kind=Bool(), default=False,
    environment=("MS_RDR_ENABLE",),
    read_by="observe.debug.recorder", example='{"rdr": {"enable": true}}',
    doc="Records data about the run: graphs, the last operators, memory, stacks. `torchspore rdr show` prints a record.",
)
rdr_mode = Option(
    member_of="env_config_path", top_level=False, as_json=True, name="rdr.mode", kind=Int(1, 2), default=1, environment=("MS_RDR_MODE",),
    read_by="observe.debug.recorder", example='{"rdr": {"mode": 1}}',
    doc="The times at which a record is written: 1 after a fault, 2 also at a normal end.",
)
rdr_path = Option(
    member_of="env_config_path", top_level=False, as_json=True, name="rdr.path", kind=Absolute(), default="./",
    read_by="observe.debug.recorder", environment=("MS_RDR_PATH",), example='{"rdr": {"path": "/tmp/records"}}',
    doc="The directory for records, which are written to `rank_N/rdr` in it.",
)
rdr_replay = Option(
    member_of="env_config_path", top_level=False, as_json=True, name="rdr.replay", kind=Int(0, INT32), default=0,
    read_by="observe.debug.recorder", environment=("MS_RDR_REPLAY",), example='{"rdr": {"replay": 1}}',
    doc="Saves every N-th step, so that `torchspore replay` can run it again. A saved step consists of its inputs and the Parameters and "
        "random state before it, copied to host memory. 0 saves no steps. MindSpore does not have this option.",
)
sys_mem_reuse = Option(
    member_of="env_config_path", top_level=False, as_json=True, name="sys.mem_reuse", kind=Bool(), default=True, in_graph_key=True,
    read_by="graph.settings", graph_only=True, fixed_outcomes={True: "values of a graph share memory one after the other"},
    example='{"sys": {"mem_reuse": true}}',
    doc="Lets Tensors of a graph share memory. If False, each Tensor has separate memory and can be inspected.",
)
precompile_only = Option(
    kind=Bool(), default=False, environment_wins=True, environment=("MS_DEV_PRECOMPILE_ONLY",), example="set_context(precompile_only=True)",
    read_by="graph.dispatch", graph_only=True, since="0.1", until="2.6",
    doc="Compiles calls in Graph mode without running them; they return None.",
)
reserve_class_name_in_scope = Option(
    kind=Bool(none=OptionValueError), default=True, in_graph_key=True, example="set_context(reserve_class_name_in_scope=False)",
    read_by="graph.report.provenance", graph_only=True, since="0.1",
    doc="Adds the class of each Cell to its attribute name in the names of a graph's nodes.",
)
debug_level = Option(
    kind=Named({"RELEASE": 0, "DEBUG": 1}), default=0, in_graph_key=True, example="set_context(debug_level=DEBUG)",
    read_by="graph.report.provenance", graph_only=True, since="2.3",
    doc="The amount of information that a compiled graph records about its origin. DEBUG records more than RELEASE and makes compilation "
        "slower.",
)
enable_dump = Option(
    kind=Bool(), default=False, example="set_context(enable_dump=True)", effect="observe.debug.dump:switch",
    since="0.1", until="2.4",
    doc="Writes the inputs and outputs of each operator to files in `save_dump_path`, in both modes and on every device. The file that "
        "MINDSPORE_DUMP_CONFIG names sets the details. `torchspore diff` compares two such folders.",
)
save_dump_path = Option(
    kind=Path(), default=".", example="set_context(save_dump_path='dump')", effect="observe.debug.dump:select_folder",
    since="0.1", until="2.4",
    doc="The directory for the files of `enable_dump`.",
)
