"""Semi-automatic parallelism: the graph of a step for one device becomes that of each of N, with the collectives it needs.

`layout` says which part of a value a device holds, `redistribution` how one layout becomes another, `rules` how each operator may be split,
`localizing` is the pass over a captured graph, `binding` and `simulation` run what it gives: one rank, or all of them in this process.
"""
