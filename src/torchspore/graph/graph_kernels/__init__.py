"""Graph kernels: neighbouring operators of a captured graph become generated kernels, as `enable_graph_kernel` and its flags say."""
