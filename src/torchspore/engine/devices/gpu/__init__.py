"""The devices of this machine, and what is set on them."""
