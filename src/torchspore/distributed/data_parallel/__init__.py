"""Training on several processes that hold the same parameters: sums of gradients, and optimizer states that are split.

| file | subject |
|---|---|
| `settings` | the context's settings, and whether they fit the processes |
| `fusion` | which gradients share a message |
| `gradient_reduction` | gradients over all processes, after the backward pass |
| `overlap` | the same during the backward pass (PyNative) |
| `parameter_broadcast` | the parameters of process 0 for all, before the first step |
| `decision_agreement` | decisions that all processes must make alike |
| `optimizer_shards` | the optimizer's state, gradients and weights split among the processes |
| `sharded_weights` | a weight that is complete only while an operator uses it |
| `option_effects` | the report of `explain` about the options |
"""
