"""The types of requests and responses. The OpenAPI document describes them."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from transept.api.attention import Kind
from transept.api.config import Format
from transept.api.scoring import PairScore

Texts = str | list[str]
Code = Annotated[str, Meta(description="A language code such as `en`.")]
Key = Annotated[
    str | None,
    Meta(description="An API key, if one is required and there is no Authorization header."),
]
MOST_TERMS = 200
TermText = Annotated[str, Meta(min_length=1, max_length=100)]
Terms = Annotated[
    dict[TermText, TermText],
    Meta(
        max_length=MOST_TERMS,
        description="Required translations: terms of the source, each with its translation.",
    ),
]
Kept = Annotated[
    list[TermText],
    Meta(max_length=MOST_TERMS, description="Words that are not translated."),
]
Numbers = list[Annotated[int, Meta(ge=1)]] | None


class TranslateRequest(Struct, kw_only=True):
    """One or more texts to translate. Unknown fields are ignored; `/api/nbest` accepts a beam."""

    q: Annotated[Texts, Meta(description="The text to translate, or a list of texts.")]
    source: Annotated[
        str, Meta(description="The source language; `auto` detects it among the served languages.")
    ]
    target: Annotated[str, Meta(description="The target language.")]
    format: Annotated[
        Format | None,
        Meta(
            description="With `html` and `markdown`, markup between sentences is kept, and markup "
            "inside a sentence moves with its words. Default: `text`."
        ),
    ] = None
    alternatives: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        Meta(description="The maximum number of alternative translations to return. Default: 0."),
    ] = None
    glossary: Terms = {}
    keep: Kept = []
    api_key: Key = None


class Detection(Struct):
    """A detected language and its confidence in percent."""

    language: str
    confidence: Annotated[float, Meta(ge=0, le=100)]


class TranslateAnswer(Struct, omit_defaults=True, rename="camel"):
    """The translation of a text. If `q` was a list, each field is a list."""

    translated_text: Texts
    alternatives: Sequence[Texts] | UnsetType = UNSET
    detected_language: Detection | list[Detection] | UnsetType = UNSET
    missing_terms: Annotated[
        Sequence[Texts] | UnsetType,
        Meta(description="Required terms that the translation lacks. Absent if there are none."),
    ] = UNSET


class FileRequest(Struct, kw_only=True):
    """The languages of a file to translate."""

    source: str
    target: str
    api_key: Key = None


class FileAnswer(Struct, rename="camel"):
    """The address of a translated file."""

    translated_file_url: str


class DetectRequest(Struct, kw_only=True):
    """A text whose language is to be detected."""

    q: Texts
    others: Annotated[
        bool, Meta(description="Append the most likely language that the server does not serve.")
    ] = False
    api_key: Key = None


class NamedLanguage(Struct):
    """The code and the name of a language."""

    code: str
    name: str


class Language(NamedLanguage):
    """A language, and the languages into which it can be translated."""

    targets: list[str]


class Health(Struct):
    """The status of a server that can translate."""

    status: str = "ok"


class LanguagePair(Struct):
    """The default languages of a web page."""

    source: NamedLanguage
    target: NamedLanguage


class FrontendSettings(Struct, rename="camel"):
    """The features of this server, for a web page."""

    char_limit: int
    frontend_timeout: int
    api_keys: bool
    key_required: bool
    suggestions: bool
    files_translation: bool
    supported_files_format: list[str]
    language: LanguagePair | None


class ErrorAnswer(Struct):
    """An error message."""

    error: str


# --- paths that only transept has ------------------------------------------------------------


class ModelDescription(Struct, omit_defaults=True):
    """The languages and the engine of a model, and where it comes from, as far as known."""

    source: str
    targets: list[str]
    engine: str
    imported_from: Annotated[
        str | UnsetType, Meta(description="The name of the model that was imported.")
    ] = UNSET
    format: Annotated[str | UnsetType, Meta(description="The format it was imported from.")] = UNSET
    licence: Annotated[str | UnsetType, Meta(description="The licence of its weights.")] = UNSET


class BeamOptions(Struct, kw_only=True, forbid_unknown_fields=True):
    """Search options of a request. Default: the server's settings.

    `BeamConfig` and `SearchConfig` document and validate these options.
    """

    beam_size: int | None = None
    length_penalty: float | None = None


class SearchOptions(BeamOptions, kw_only=True):
    """Search options with the number of outputs."""

    n_best: int | None = None


class NBestRequest(SearchOptions, kw_only=True):
    """A text, and the number of its best translations to return."""

    q: Annotated[str, Meta(description="The text to translate.")]
    source: Code | None = None
    target: Code | None = None
    format: Format = "text"
    n_best: int | None = 4
    api_key: Key = None


class RankedTranslation(Struct):
    """One translation. Its score is log P divided by the length penalty."""

    text: str
    score: float
    log_probability: float
    finished: bool


class NBestAnswer(Struct):
    """Translations, best first."""

    source: str
    target: str
    outputs: list[RankedTranslation]


class StreamRequest(BeamOptions, kw_only=True):
    """A text whose translation is streamed. With a beam of 1, `tail` is empty."""

    q: Annotated[str, Meta(description="The text to translate.")]
    source: Code | None = None
    target: Code | None = None
    format: Format = "text"
    glossary: Terms = {}
    keep: Kept = []
    api_key: Key = None


class StreamedPart(Struct):
    """A part of the translation. The concatenated texts of all parts are the translation."""

    text: str
    tail: str
    """The current continuation of the text. It may still change."""


class Whole(Struct, omit_defaults=True, rename="camel"):
    """The complete translation."""

    text: str
    sentences: int
    """The number of sentences that the text was split into."""
    missing_terms: Sequence[str] | UnsetType = UNSET
    """Required terms that the translation lacks."""


class ScoreRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """Texts, each with a translation to score. Each text is treated as one sentence."""

    q: Annotated[Texts, Meta(description="The source text, or a list of texts.")]
    translation: Annotated[Texts, Meta(description="Its translation, or one for each text.")]
    source: Code | None = None
    target: Code | None = None
    api_key: Key = None


class ScoreAnswer(Struct):
    """A score for each pair."""

    scores: list[PairScore]


class AttentionRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """A sentence and the attention weights to return. Layers and heads are numbered from 1."""

    q: Annotated[str, Meta(description="The source sentence.")]
    translation: Annotated[
        str | None, Meta(description="Its translation. Default: the model's output.")
    ] = None
    source: Code | None = None
    target: Code | None = None
    kinds: Annotated[
        tuple[Kind, ...],
        Meta(
            min_length=1,
            description="Self-attention of the encoder, self-attention of the decoder, or the "
            "decoder's attention to the source.",
        ),
    ] = ("source",)
    layers: Annotated[Numbers, Meta(description="Default: all.")] = None
    heads: Annotated[Numbers, Meta(description="Default: all.")] = None
    tokens: Annotated[
        Literal["words", "pieces"], Meta(description="Merge subwords into words, or keep them.")
    ] = "words"
    api_key: Key = None


class AttentionSide(Struct):
    """The queries or the keys: subwords, words, and the index of each subword's word."""

    pieces: list[str]
    words: list[str]
    word_of: list[int]


class AttentionWeights(Struct):
    """`weights[layer][head][query][key]`. Over the keys, the weights sum to 1."""

    queries: AttentionSide
    keys: AttentionSide
    weights: list[list[list[list[float]]]]


class AttentionAnswer(Struct):
    """The output of `transept visualize --output x.json` for the selected layers and heads."""

    source: str
    target: str
    layers: list[int]
    heads: list[int]
    attention: dict[Kind, AttentionWeights]


class ParseRequest(SearchOptions, kw_only=True):
    """One or more sentences to parse, as words separated by spaces."""

    q: Annotated[Texts, Meta(description="Words as tokenized in treebanks: `It does n't sleep .`")]
    api_key: Key = None


class Node(Struct, omit_defaults=True):
    """A constituent with its children, or a tag with its word."""

    label: str
    word: str | UnsetType = UNSET
    children: list["Node"] | UnsetType = UNSET


class ParsedTree(Struct):
    """One tree, in bracket notation and as nodes. Confidence is log P per symbol."""

    brackets: str
    tree: Node
    score: float
    log_probability: float
    confidence: float


class Parsed(Struct):
    """The trees of a sentence, best first. Empty if the sentence has no words."""

    words: list[str]
    outputs: list[ParsedTree]


class ParseAnswer(Struct):
    """The trees of each sentence."""

    parses: list[Parsed]


# --- inside a translation --------------------------------------------------------------------


class WordsRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """A text whose translated words are to be described."""

    q: Annotated[str, Meta(description="The text to translate.")]
    source: Code | None = None
    target: Code | None = None
    prefix: Annotated[
        str,
        Meta(
            description="Whole words with which the translation must begin. Then `q` is treated as "
            "one sentence."
        ),
    ] = ""
    api_key: Key = None


class TranslatedWord(Struct):
    """A word, without punctuation at its ends, and its position in the translation."""

    text: str
    start: int
    end: int
    probability: Annotated[
        float, Meta(description="The geometric mean of the probabilities of its subwords.")
    ]
    sources: Annotated[
        list[list[int]],
        Meta(description="Start and end of the source words that the model attends to most."),
    ]


class TranslatedSentence(Struct):
    """A sentence, its translation, and the words of the translation."""

    source: str
    text: str
    words: list[TranslatedWord]


class WordsAnswer(Struct):
    """The sentences of a text. Positions are those of characters in `source` and `text`."""

    sentences: list[TranslatedSentence]


class ChoicesRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """A sentence and the start of its translation."""

    q: Annotated[str, Meta(description="One sentence.")]
    source: Code | None = None
    target: Code | None = None
    prefix: Annotated[
        str, Meta(description="The translation before the word; it ends with a whole word.")
    ] = ""
    n: Annotated[int, Meta(ge=1, le=20, description="The maximum number of words.")] = 5
    api_key: Key = None


class WordChoice(Struct):
    """A word that may come next."""

    text: str
    probability: float


class ChoicesAnswer(Struct):
    """The most likely next words, best first."""

    choices: list[WordChoice]


class BeamRequest(BeamOptions, kw_only=True):
    """A sentence whose beam search is to be recorded."""

    q: Annotated[str, Meta(description="One sentence.")]
    source: Code | None = None
    target: Code | None = None
    api_key: Key = None


class BeamHypothesis(Struct):
    """A hypothesis that the search considered."""

    id: int
    parent: Annotated[
        int | None, Meta(description="The hypothesis that it extends. null: it has one token.")
    ]
    token: Annotated[str, Meta(description="Its last subword, or the end symbol.")]
    text: str
    score: Annotated[float, Meta(description="log P.")]
    normalized: Annotated[float, Meta(description="log P divided by the length penalty.")]
    state: Literal["kept", "pruned", "finished"]


class BeamStep(Struct):
    """The best candidates of a step, best first: twice as many as the beam size."""

    hypotheses: list[BeamHypothesis]


class BeamAnswer(Struct):
    """The beam search of the native engine, step by step."""

    steps: list[BeamStep]
    winner: Annotated[int, Meta(description="The id of the output.")]
    reason: Annotated[str, Meta(description="Why the output is better than the others.")]


# --- training runs ---------------------------------------------------------------------------


class RunDescription(Struct):
    """A training run that the server follows."""

    name: str
    config: Annotated[str, Meta(description="A summary of its config. Empty if there is none yet.")]


class RunLines(Struct, rename={"first": "from"}):
    """Lines of a run's `metrics.jsonl`, at most 2,000."""

    first: Annotated[
        int,
        Meta(description="The number of the first line. 0 if the log is shorter than requested."),
    ]
    next: Annotated[int, Meta(description="The value of `from` for the next request.")]
    lines: list[dict[str, Any]]
