"""Makes the documentation site: runs the walk-through, reads the docstrings, calls Sphinx."""
