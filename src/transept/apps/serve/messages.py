"""The messages of requests and answers. The OpenAPI document describes them."""

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from transept.api.attention import Kind
from transept.api.texts import PairScore

Texts = str | list[str]
Code = Annotated[str, Meta(description="A language code such as `en`.")]
Key = Annotated[
    str | None,
    Meta(description="A key, if the server needs one and no Authorization header has it."),
]
Format = Literal["text", "html"]
Numbers = list[Annotated[int, Meta(ge=1)]] | None


class TranslateRequest(Struct, kw_only=True):
    """A text, or texts, to translate. Unknown fields are ignored; `/api/nbest` takes a beam."""

    q: Annotated[Texts, Meta(description="What to translate.")]
    source: Annotated[
        str, Meta(description="Its language; with `auto` the server guesses among its languages.")
    ]
    target: Annotated[str, Meta(description="The language to translate it to.")]
    format: Annotated[
        Format,
        Meta(
            description="With `html`, tags between sentences stay in place, and tags inside a "
            "sentence move with their words."
        ),
    ] = "text"
    alternatives: Annotated[
        int, Meta(ge=0, description="How many further translations to give; there may be fewer.")
    ] = 0
    api_key: Key = None


class Detection(Struct):
    """A language, and how sure the guess is."""

    language: str
    confidence: Annotated[float, Meta(ge=0, le=100)]


class TranslateAnswer(Struct, omit_defaults=True, rename="camel"):
    """The answer to a text. If the request had a list, each field is a list."""

    translated_text: Texts
    alternatives: Sequence[Texts] | UnsetType = UNSET
    detected_language: Detection | list[Detection] | UnsetType = UNSET


class DetectRequest(Struct, kw_only=True):
    """A text whose language is to be guessed."""

    q: Texts
    api_key: Key = None


class NamedLanguage(Struct):
    """The code and the name of a language."""

    code: str
    name: str


class Language(NamedLanguage):
    """A language, and the languages to which it can be translated."""

    targets: list[str]


class Health(Struct):
    """That the server works."""

    status: str = "ok"


class LanguagePair(Struct):
    """The languages that a web page may show first."""

    source: NamedLanguage
    target: NamedLanguage


class FrontendSettings(Struct, rename="camel"):
    """What a web page needs to know about this server."""

    char_limit: int
    frontend_timeout: int
    api_keys: bool
    key_required: bool
    suggestions: bool
    files_translation: bool
    supported_files_format: list[str]
    language: LanguagePair | None


class ErrorAnswer(Struct):
    """What went wrong."""

    error: str


# --- paths that only transept has ------------------------------------------------------------


class BeamOptions(Struct, kw_only=True, forbid_unknown_fields=True):
    """What a request may change about the search. Default: the server's settings.

    `BeamConfig` and `SearchConfig` say what these options mean, and check them.
    """

    beam_size: int | None = None
    length_penalty: float | None = None


class SearchOptions(BeamOptions, kw_only=True):
    """The same, with the number of outputs."""

    n_best: int | None = None


class NBestRequest(SearchOptions, kw_only=True):
    """A text, and how many of its best translations to give."""

    q: Annotated[str, Meta(description="What to translate.")]
    source: Code | None = None
    target: Code | None = None
    format: Format = "text"
    n_best: int | None = 4
    api_key: Key = None


class RankedTranslation(Struct):
    """One translation: its score is log P divided by the length penalty."""

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
    """A text whose translation is sent token by token. With a beam of 1 there is no tail."""

    q: Annotated[str, Meta(description="What to translate.")]
    source: Code | None = None
    target: Code | None = None
    format: Format = "text"
    api_key: Key = None


class StreamedPart(Struct):
    """A part of the translation. The texts of all parts, joined, are the whole."""

    text: str
    tail: str
    """What would follow the text at the moment. It may still change."""


class Whole(Struct):
    """The whole translation, when it is done."""

    text: str
    sentences: int
    """How many sentences it was translated in."""


class ScoreRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """Texts, and a translation of each to score. Each text is taken as one sentence."""

    q: Annotated[Texts, Meta(description="The text that was translated, or a list.")]
    translation: Annotated[Texts, Meta(description="Its translation, or one for each text.")]
    source: Code | None = None
    target: Code | None = None
    api_key: Key = None


class ScoreAnswer(Struct):
    """A score for each pair."""

    scores: list[PairScore]


class AttentionRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """A sentence, and which attention to show. Layers and heads are counted from 1."""

    q: Annotated[str, Meta(description="What the model reads: one sentence.")]
    translation: Annotated[
        str | None, Meta(description="What it writes; default: the model's own translation.")
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
        Literal["words", "pieces"], Meta(description="Join the vocabulary's pieces to words.")
    ] = "words"
    api_key: Key = None


class AttentionSide(Struct):
    """The tokens that attend, or that are attended to, and the word of each, counted from 0."""

    pieces: list[str]
    words: list[str]
    word_of: list[int]


class AttentionWeights(Struct):
    """`weights[layer][head][query][key]`. Over the keys, the weights sum to 1."""

    queries: AttentionSide
    keys: AttentionSide
    weights: list[list[list[list[float]]]]


class AttentionAnswer(Struct):
    """What `transept visualize --output x.json` writes, for the chosen layers and heads."""

    source: str
    target: str
    layers: list[int]
    heads: list[int]
    attention: dict[Kind, AttentionWeights]


class ParseRequest(SearchOptions, kw_only=True):
    """A sentence, or a list of sentences, to parse: words with spaces between them."""

    q: Annotated[Texts, Meta(description="Words as treebanks have them: `It does n't sleep .`")]
    api_key: Key = None


class Node(Struct, omit_defaults=True):
    """A constituent with its children, or a tag with its word."""

    label: str
    word: str | UnsetType = UNSET
    children: list["Node"] | UnsetType = UNSET


class ParsedTree(Struct):
    """One tree, in the brackets of treebanks and as nodes. Confidence is log P per symbol."""

    brackets: str
    tree: Node
    score: float
    log_probability: float
    confidence: float


class Parsed(Struct):
    """The trees of a sentence, best first; none if it has no word."""

    words: list[str]
    outputs: list[ParsedTree]


class ParseAnswer(Struct):
    """The trees of each sentence."""

    parses: list[Parsed]
