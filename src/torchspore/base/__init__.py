"""Helpers that every layer may use: text, names, paths, versions. They import neither torch nor another layer."""
