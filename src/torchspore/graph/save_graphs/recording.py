"""The recording of a compilation: each stage is written to files as soon as it exists, and all stages to a page at the end."""
from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping
from typing import Any

import torch

from torchspore.context import effects
from torchspore.context.effects import Outcome
from torchspore.engine.torch_internals import node_metadata
from torchspore.graph.save_graphs import dot, ir, operator_times
from torchspore.graph.save_graphs.compilation_record import Compilation, Stage
from torchspore.graph.save_graphs.folder import Folder
from torchspore.graph.save_graphs.snapshot import Inputs, Snapshot, Taker
from torchspore.translations import translatable, translate

MAIN = ("bootstrap", "type_inference", "gradient", "control_flow", "optimize", "validate", "backend_pass", "task_emit", "execute")
"""The stages that every level writes, in their order; the names that they share with MindSpore mean the same there."""

ABOUT = {
    "bootstrap": translatable("the operators of the trace, up to the first gradient that the program takes"),
    "type_inference": translatable("the same with the dtype and shape of each value, which a trace knows immediately"),
    "gradient": translatable("the complete trace, with the operators of the gradients"),
    "control_flow": translatable("branches and loops on Tensors as calls of separate graphs"),
    "optimize": translatable("after the passes that every level runs"),
    "validate": translatable("checked: nothing in it that a graph can't hold"),
    "backend_pass": translatable("after the steps that switches request: precision, memory, graph kernels"),
    "task_emit": translatable("the form that the compile level chose, with its kernels"),
    "execute": translatable("what runs, in this order"),
}

_numbers = itertools.count()


class Recording:
    """Receives the stages of a compilation and writes the files of the level."""

    def __init__(self, name: str, line: str, settings: Mapping[str, str], level: int, draws: bool, writes: bool = True) -> None:
        """`level` is 1 to 3; with `draws` the main stages become drawings at level 2 too. Without `writes` texts are kept, and no file."""
        self.compilation = Compilation(name, line, settings)
        self.folder = Folder(writes)
        self._level, self._draws = level, draws
        self._name = "".join(c if c.isalnum() else "_" for c in name)
        self._taker = Taker()
        self._inputs: Inputs | None = None
        self._part = ""
        self._last: tuple[int, Any] | None = None
        self._steps = itertools.count()
        self._started = time.perf_counter()

    # ---- what is handed in

    def began(self, capture: Any) -> None:
        """Discard the stages of an earlier trace of the call, which ended in a Refusal."""
        self._taker = Taker()

    def traced(self, module: torch.fx.GraphModule, lifted: list[Any], function: Any, args: tuple[Any, ...], kwargs: Any) -> None:
        """Record the complete trace, and `lifted`, the Tensors that are its inputs."""
        self._inputs = Inputs(lifted, function, args, kwargs)
        nodes = module.graph.nodes
        first = next((n.name for n in nodes if n.op == "call_function" and node_metadata.is_backward(n.meta)), None)
        before = self._taker.snapshot(module, self._name, self._inputs, "bootstrap", first)
        self._main("bootstrap", before)
        self._main("type_inference", before)
        self._main("gradient", self._taker.snapshot(module, self._name, self._inputs, "gradient"))

    def keep(self, name: str, module: torch.fx.GraphModule) -> None:
        """Record the graph after a main stage, or after a step of the back end."""
        if name in MAIN:
            self._main(name, self._snapshot(module, name))
        elif self._level >= 2:
            self._minor(f"hwopt_{next(self._steps)}_{name}", translatable("a step of the back end"), module)

    def emitted(self, module: torch.fx.GraphModule, inputs: Callable[[], list[torch.Tensor]]) -> None:
        """Record the graph that runs as the last stages, and measure its operators if that is requested."""
        self.keep("task_emit", module)
        self.keep("execute", module)
        if operator_times.are_requested():
            self.compilation.times.update(operator_times.seconds(module, inputs))

    def keep_pass(self, name: str, module: torch.fx.GraphModule) -> None:
        """Record the graph after a pass of the optimizer, which level 3 writes."""
        if self._level >= 3:
            self._minor(f"opt_pass_{next(self._steps)}_{name}", translatable("a pass of the optimizer"), module)

    def part(self, name: str) -> None:
        """Report that the following stages belong to one half of the graph, `forward` or `backward`."""
        self._part, self._inputs, self._last = name, None, None

    def finish(self) -> None:
        """Write the final graphs and the page, and report the written files."""
        for stage in self._finals():
            self._write(f"graph_build_{next(_numbers)}", "graph_build", "the final graph", stage.snapshot, self._level >= 3)
        self.compilation.seconds = time.perf_counter() - self._started
        if not self.folder.writes:
            return
        from torchspore.graph.save_graphs.page import write  # what it reads from files is read once something is saved

        write(self.folder, self.compilation)
        self._report_folder()

    # ---- files

    def _snapshot(self, module: torch.fx.GraphModule, step: str) -> Snapshot:
        name = f"{self._name}_{self._part}" if self._part else self._name
        return self._taker.snapshot(module, name, self._inputs, step)

    def _main(self, name: str, snapshot: Snapshot) -> None:
        title = f"{MAIN.index(name):02d}_{name}"
        self._stage(title, title, ABOUT[name], snapshot, self._draws or self._level >= 3)
        if self._level >= 2:
            for inner in snapshot.inner if self.compilation.stages[-1].duplicate_of is None else []:
                self._write(f"verbose_ir_files/{title}_{inner.name}", title, f"a graph inside {snapshot.name}", inner, self._level >= 3)

    def _minor(self, title: str, about: str, module: torch.fx.GraphModule) -> None:
        self._stage(title, title, about, self._snapshot(module, title), self._level >= 3)

    def _stage(self, stem: str, title: str, about: str, snapshot: Snapshot, draws: bool) -> None:
        """Write a stage; if its graph equals that of an earlier stage, write a reference to it."""
        stages, contents = self.compilation.stages, snapshot.contents()
        if self._last is not None and self._last[1] == contents:
            other = stages[self._last[0]]
            file = self._put(stem, draws, lambda: ir.is_equal_stage(title, other.file), lambda: dot.edge_between(title, other.title))
            stages.append(Stage(title, about, file, other.snapshot, self._last[0], self._part))
            return
        file = self._write(stem, title, about, snapshot, draws)
        self._last = (len(stages), contents)
        stages.append(Stage(title, about, file, snapshot, None, self._part))

    def _write(self, stem: str, title: str, about: str, snapshot: Snapshot, draws: bool) -> str:
        head = (f"{title}: {about}", f"compiled for {self.compilation.line}")
        return self._put(stem, draws, lambda: ir.text(snapshot, self.compilation.settings, head), lambda: dot.text(snapshot))

    def _put(self, stem: str, draws: bool, text: Callable[[], str], drawing: Callable[[], str]) -> str:
        name = self.folder.put(stem, "ir", text())
        if draws:
            self.folder.put(stem, "dot", drawing())
        return name

    def _finals(self) -> list[Stage]:
        """The last stage of each half."""
        return list({stage.part: stage for stage in self.compilation.stages if stage.part or not self._part}.values())

    def _report_folder(self) -> None:
        if not self.folder.usable:
            outcome = Outcome.no_effect(translate("{folder} can't be written").format(folder=self.folder.root))
            effects.report("save_graphs", outcome)
            effects.report("save_graphs_path", outcome)
            return
        text = translate("level {level}: see {page}").format(level=self._level, page=self.folder.root / "index.html")
        effects.report("save_graphs", Outcome.applied(text))
        effects.report("save_graphs_path", Outcome.applied(translate("graphs are saved in {folder}").format(folder=self.folder.root)))
        compilation = self.compilation
        count = sum(stage.duplicate_of is None for stage in compilation.stages)
        counts = translate("{stages} stages, {differing} that differ, {files} files in {folder}").format(
            stages=len(compilation.stages), differing=count, files=self.folder.files, folder=self.folder.root)
        text = f"{compilation.line}: {compilation.name}: {counts}"
        effects.note("saved graphs", text)
