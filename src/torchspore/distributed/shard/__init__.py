"""Graphs that are split over devices: the graph of a step for one device becomes that of each of N, with collectives.

`partitioner` is the pass over a captured graph, `rules` states how each operator may be split, and `redistribution` finds the collectives
between two layouts. `rank_binding` and `simulation` run the result: for one rank, or for all of them in this process.
"""
