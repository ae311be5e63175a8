"""Pipeline parallelism: the graph of a step is split into stages on separate devices; micro batches pass from stage to stage.

`stage_assignment` assigns each operator to a stage, `transfers` inserts a transfer where a value goes to another stage, `schedule` orders
the micro batches on the stages, `step_order` puts the graph into that order, and `stage_graph` returns the graph of one stage.
"""
