"""Public corpora: their addresses, and how to download, unpack and split them."""
