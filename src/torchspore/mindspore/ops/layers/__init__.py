"""Operators that compute a complete layer: normalization, attention, recurrent networks, mixtures of experts."""
