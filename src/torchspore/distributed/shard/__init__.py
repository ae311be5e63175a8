"""Splits graphs over devices: the graph of a step on one device becomes the graph of each of N devices, with collectives.

`partitioner` is the pass over a captured graph, `propagation_rules` state how each operator may be split, and `redistribution` finds the
collectives between two layouts. `rank_binding` and `simulation` run the result: for one rank, or for all ranks in this process.
"""
