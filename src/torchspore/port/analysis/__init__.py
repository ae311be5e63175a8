"""Facts about the user's source: its syntax trees, definitions, kinds of expressions, and the Cells' attributes."""
