"""From raw text to a prepared corpus: formats, cleaning, tokenizing on all cores, writing."""
