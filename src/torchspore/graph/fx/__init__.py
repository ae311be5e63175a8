"""Queries on torch.fx graphs: aliasing, order, copies, fingerprints, text; and control flow in them."""
