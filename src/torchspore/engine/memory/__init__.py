"""The memory of host and device: its limit, its owners, and the values that move out of it."""
