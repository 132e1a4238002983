"""A small bilingual grammar that generates the English and German sentence pairs of the demo.

A meaning is sampled (`draw_*.py`) from a lexicon (`nouns.py`, `verbs.py`, `modifiers.py`,
`function_words.py`) and expressed twice, by `english.py` and by `german.py`. The words that express
the same part of it are aligned. `grammar.py` makes splits of such pairs, and `file.py` stores them.
"""

from grammar.examples import EXAMPLES as EXAMPLES
from grammar.grammar import Grammar as Grammar
from grammar.grammar import Splits as Splits
from grammar.pairs import SentencePair as SentencePair
from grammar.pairs import tokens as tokens
