"""The files of `save_graphs`: the stages of each compilation as text, as drawings and as one page."""
