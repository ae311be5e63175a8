"""The search of `auto_parallel`: which cuts of a captured graph cost the least on an assumed machine."""
