"""The parameter server of `set_ps_context`: servers store parameters and apply the mean of all workers' gradients.

| file | subject |
|---|---|
| `roles` | the role of this process and the size of the cluster, from `set_ps_context` and the MS_* variables |
| `configuration` | the JSON file of `config_file_path`: certificates, recovery, time limits |
| `messages` | tensors and metadata as bytes: nothing is unpickled, and sizes are checked before memory is allocated |
| `transport` | the two classes through which processes talk, implemented with gRPC |
| `scheduler`, `membership` | the process that knows all others; the connection of each process to it |
| `assignment` | which server stores which parameter or which rows |
| `parameter_store` | the values on a server, the gradients of a step, and their mean |
| `worker` | the client: pushes gradients, pulls values and rows |
| `row_cache`, `prefetch` | the recently used rows of a table on a worker; requests of the rows of the next batch |
| `operators`, `values` | steps and lookups in graphs; placeholders for values on servers |
| `status_page` | the scheduler's state as JSON over HTTP |
| `snapshots` | the state of a server on disk |

No module of this package is imported unless `enable_ps` is True.
"""
