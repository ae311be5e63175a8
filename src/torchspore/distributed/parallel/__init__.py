"""Training on several processes that hold the same parameters: gradients summed over them, states of optimizers shared out.

| file | subject |
|---|---|
| `setting` | what the context says of it, and whether it fits the processes that there are |
| `fusion` | which gradients travel in one message |
| `gradients` | gradients over all processes, after the backward pass |
| `overlap` | the same while the backward pass still runs (PyNative) |
| `starting` | parameters of process 0 for all, before the first step |
| `shares` | the optimizer's state, gradients and weights cut among the processes |
| `sliced` | a weight that is whole only while it is used |
| `effects` | what `explain` says of the options |
"""
