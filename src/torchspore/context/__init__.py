"""The control plane: every switch of MindSpore's context, declared once, kept in one store; no torch."""
