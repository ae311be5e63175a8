"""What every layer may use: text, names, paths, versions; no torch and no siblings."""
