"""Processes that work together: which one this is, groups of them, exchanges between them; all of it on torch.distributed.

| file | subject |
|---|---|
| `environment` | what the environment says of this process and the others |
| `groups` | the group of all processes, and those that a program makes |
| `collectives` | exchanges on torch tensors: functional, with gradients, operators of captured graphs |
| `operators` | the operators that torch has not |
| `pairs` | what goes from one process to another |

Nothing here is imported before a program asks for communication.
"""
