"""torch's interpreter of graphs without its progress bar."""
from __future__ import annotations

from typing import Any

import torch


class Interpreter(torch.fx.Interpreter):
    """Runs the nodes of a graph, one after another.

    torch's `run` creates a progress bar of tqdm even if it shows none. tqdm starts a thread and takes a lock that forked processes share:
    if such a process is killed while it has the lock, all others wait forever.
    """

    def run(self, *inputs: Any) -> Any:  # type: ignore[override]
        """Run the graph with these inputs and return its results."""
        self.env: dict[torch.fx.Node, Any] = {}
        self.args_iter = iter(self.graph.process_inputs(*inputs))
        for node in self.graph.nodes:
            self.env[node] = self.run_node(node)
            for unused in self.user_to_last_uses.get(node, ()):
                del self.env[unused]
            if node.op == "output":
                return self.graph.process_outputs(self.env[node])
        raise ValueError("the graph has no output.")
