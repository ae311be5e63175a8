"""Pipelines: the graph of a step is cut by stages, each of which has its own devices, and parts of a batch pass from one to the next.

`assigning` says which stage runs each operator, `passing` puts a transfer wherever a value goes to another stage, `scheduling` says in
which order the stages compute the parts, `ordering` puts the graph into that order, and `cutting` gives the graph of one stage.
"""
