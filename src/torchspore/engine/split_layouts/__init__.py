"""Device meshes, layouts, and values that are split among processes."""
