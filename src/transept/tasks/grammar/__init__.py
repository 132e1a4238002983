"""A small bilingual grammar: English and German sentence pairs of our own making.

A meaning is drawn at random (`draw_*.py`) from a lexicon (`nouns.py`, `verbs.py`, `modifiers.py`,
`function_words.py`) and said twice, by `english.py` and by `german.py`; the words that say the
same part of it are aligned. `grammar.py` makes corpora of them.
"""

from transept.tasks.grammar.examples import EXAMPLES as EXAMPLES
from transept.tasks.grammar.grammar import Grammar as Grammar
from transept.tasks.grammar.grammar import Splits as Splits
from transept.tasks.grammar.pairs import SentencePair as SentencePair
from transept.tasks.grammar.pairs import tokens as tokens
