"""Processes that work together, on torch.distributed: the position of this process, groups, and exchanges.

An exchange is a collective or a message between two processes.

| file | subject |
|---|---|
| `environment` | the variables that describe this process and the others |
| `groups` | the group of all processes, and the groups of the program |
| `collectives` | exchanges on torch tensors, with gradients; in captured graphs they are operators |
| `operators` | the operators of exchanges: torch's, and custom ones for exchanges that torch does not have |
| `handshake`, `watchdog` | comparison of new exchanges before they start; diagnosis of exchanges that do not end |

No module of this package is imported before a program asks for communication.
"""
