"""The control plane: every switch of MindSpore's context is declared once and stored in one store. No torch."""
