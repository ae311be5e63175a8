"""What `save_graphs` writes: the stages of each compilation as text, as drawings and as one page."""
