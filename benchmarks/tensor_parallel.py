#!/usr/bin/env python3
"""The cost of semi_auto_parallel's local graph: a step over two processes, compared with hand-written tensor parallel torch.

    python benchmarks/tensor_parallel.py [mlp] [gpt] [--rounds 9] [--seconds 0.6]

Both have the same operators and exchanges; the contenders take turns as in parallel.py.
"""
from __future__ import annotations

import argparse

import parallel
import turns


def main() -> None:
    """Run the named benchmarks, or both."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="*", help="mlp, gpt")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--seconds", type=float, default=0.6)
    options = parser.parse_args()
    for what in options.what or ("mlp", "gpt"):
        started: dict[str, parallel.Ranks] = {}
        try:
            for how in ("torch", "semi-auto"):
                started[how] = parallel.Ranks(what, how, "tensor_parallel_worker.py")
                started[how].sleep()
            steps = {how: parallel.timer_of(ranks) for how, ranks in started.items()}
            turns.compare(f"tensor parallel step of {what}, two processes", steps, "torch", options.seconds, options.rounds)
        finally:
            for ranks in started.values():
                ranks.wake()
                ranks.close()


if __name__ == "__main__":
    main()
