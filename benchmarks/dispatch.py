"""What one small operator costs. `python benchmarks/dispatch.py [--oracle PYTHON]`."""
from __future__ import annotations

import torch
import turns

import torchspore


def main() -> None:
    """Measures an add, a relu and a call of an empty Cell."""
    options = turns.arguments(__doc__ or "")
    torchspore.install()
    import mindspore
    from mindspore import nn, ops
    from programs import add

    mindspore.set_context(mode=mindspore.PYNATIVE_MODE)
    own, other = mindspore.Tensor([1.0, 2.0]), torch.tensor([1.0, 2.0])
    cell = nn.Identity()
    contenders = {
        "torch: a + a": turns.here(lambda: other + other), "torchspore: a + a": turns.here(lambda: own + own),
        "torch: relu": turns.here(lambda: torch.relu(other)), "torchspore: ops.relu": turns.here(lambda: ops.relu(own)),
        "torchspore: an empty Cell": turns.here(lambda: cell(own)),
    }
    away = turns.Elsewhere(options.oracle, "oracle_worker.py", add.__name__.rpartition(".")[2], "pynative") if options.oracle else None
    if away:
        contenders["MindSpore 2.10: a + a"] = away.seconds
    turns.compare("one operator on two floats", contenders, "torch: a + a", min(options.seconds, 0.1), options.rounds, "us")
    if away:
        away.close()


if __name__ == "__main__":
    main()
