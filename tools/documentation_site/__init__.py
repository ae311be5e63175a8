"""The site of the documentation: its checks, its source folder, and the pages of the API. tools/build_site.py is the command."""
