"""The memory of host and device: how much there may be of it, who holds it, and what moves out of it."""
