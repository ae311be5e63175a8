"""The search of `auto_parallel`: the splits of a captured graph with the least cost on an assumed machine."""
