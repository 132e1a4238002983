"""From raw text to a prepared corpus: reading formats, cleaning, tokenizing and writing."""
