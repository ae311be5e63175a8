#!/usr/bin/env python3
"""Time to the first and to the 100th step of a training in fresh processes, with an empty cache of kernels: `python benchmarks/tiers.py`.

`--nets lenet,resnet18` measures other nets than `mlp,gpt`. *O1, waiting* compiles before its first step (TORCHSPORE_WAIT=1).
*O1 at once* starts as O0 while another process compiles (TORCHSPORE_WAIT=0). *O1 in tiers*, the default, starts that process when the calls
have taken as long as a compilation. Only O0 and *O1 in tiers* run in all rounds. The last column compares them within each round, or with
torch.compile if it is faster than O0.
"""
from __future__ import annotations

import json
import statistics
import sys
import tempfile
from typing import Any

import turns

NETS: dict[str, tuple[str, dict[str, Any]]] = {
    "mlp": ("MLP 784-512-512-10, batch 128", {}), "lenet": ("LeNet-5, batch 64", {}),
    "gpt": ("GPT of four layers, width 256, batch 8 x 128", {}), "resnet18": ("ResNet-18 on 64x64, batch 16", {"size": 64, "batch": 16}),
}
COMPILE, O0, WAITING, AT_ONCE, TIERS = "torch.compile", "O0", "O1, waiting", "O1 at once", "O1 in tiers"
WAITS = {O0: "1", WAITING: "1", AT_ONCE: "0", TIERS: ""}
STEPS = 100


def start(name: str, program: str, sizes: str, folder: str) -> turns.Worker:
    """Start a contender in a process of its own."""
    if name == COMPILE:
        return turns.Worker(sys.executable, "torch_worker.py", program, "cpu", "step", sizes, "compile", environment={
            "TORCHINDUCTOR_CACHE_DIR": folder})
    return turns.Worker(sys.executable, "spore_worker.py", program, "step", sizes, name[:2], environment={
        "TORCHINDUCTOR_CACHE_DIR": folder, "TORCHSPORE_WAIT": WAITS[name]})


def main() -> None:
    """Prints the table."""
    nets = turns.selected_nets(("mlp", "gpt"))
    options = turns.arguments(__doc__ or "", rounds=3)
    names = [*([] if options.no_compile else [COMPILE]), O0, WAITING, AT_ONCE, TIERS]
    print(f"\n### Seconds to step 1 and to step {STEPS} of a training, the median of {options.rounds} fresh processes\n")
    print(f"| net | {' | '.join(names)} | {TIERS} beside the best of {', '.join(names[:-3])} (median, min .. max) |")
    print(f"|---|{'---:|' * len(names)}---|")
    for net in nets:
        title, sizes = NETS[net]
        times: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
        for turn in range(options.rounds):
            for name in names if turn == 0 else (O0, TIERS):
                with tempfile.TemporaryDirectory() as folder:
                    process = start(name, net, json.dumps(sizes), folder)
                    times[name].append((process.first, process.first + process.seconds(STEPS - 1)))
                    process.close()
        shown = [" / ".join(f"{statistics.median(part):.2f}" for part in zip(*times[name])) for name in names]
        compiled = [total for _, total in times.get(COMPILE, ())]
        best = [min([total, *compiled]) for _, total in times[O0]]
        print(f"| {title} | {' | '.join(shown)} | {turns.ratio([total for _, total in times[TIERS]], best)} |", flush=True)


if __name__ == "__main__":
    main()
