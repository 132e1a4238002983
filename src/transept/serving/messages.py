"""What is sent and answered. The OpenAPI document is made of these."""

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

Texts = str | list[str]
Code = Annotated[str, Meta(description="A language code such as `en`.")]
Key = Annotated[
    str | None,
    Meta(description="A key, where the server wants one and no Authorization header has it."),
]
Kind = Literal["encoder", "decoder", "source"]
Format = Literal["text", "html"]
Beam = Annotated[int, Meta(ge=1)] | None
Numbers = list[Annotated[int, Meta(ge=1)]] | None


class TranslateRequest(Struct, kw_only=True):
    """A text, or a list of texts, to translate.

    Further fields are passed over, as LibreTranslate does; `/api/nbest` takes a beam.
    """

    q: Annotated[Texts, Meta(description="What to translate.")]
    source: Annotated[str, Meta(description="Its language; `auto` guesses among those served.")]
    target: Annotated[str, Meta(description="The language to translate it to.")]
    format: Annotated[
        Format,
        Meta(description="`html` keeps tags: between sentences in place, inside with their words."),
    ] = "text"
    alternatives: Annotated[
        int, Meta(ge=0, description="Further translations wanted; there may be fewer.")
    ] = 0
    api_key: Key = None


class Detection(Struct):
    """A language, and how sure it is."""

    language: str
    confidence: Annotated[float, Meta(ge=0, le=100)]


class TranslateAnswer(Struct, omit_defaults=True, rename="camel"):
    """Shaped as the request was: for a list, each of these is a list."""

    translated_text: Texts
    alternatives: Sequence[Texts] | UnsetType = UNSET
    detected_language: Detection | list[Detection] | UnsetType = UNSET


class DetectRequest(Struct, kw_only=True):
    """A text whose language to guess."""

    q: Texts
    api_key: Key = None


class Language(Struct):
    """A language, and what it can be translated to."""

    code: str
    name: str
    targets: list[str]


class Health(Struct):
    """Whether all is well."""

    status: str = "ok"


class Named(Struct):
    """A language by code and name."""

    code: str
    name: str


class Pair(Struct):
    """The languages that a page may begin with."""

    source: Named
    target: Named


class FrontendSettings(Struct, rename="camel"):
    """What a web page for this server needs to know."""

    char_limit: int
    frontend_timeout: int
    api_keys: bool
    key_required: bool
    suggestions: bool
    files_translation: bool
    supported_files_format: list[str]
    language: Pair | None


class Fault(Struct):
    """What went wrong."""

    error: str


# --- transept's own --------------------------------------------------------------------------


class NBestRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """A text whose best translations to search for."""

    q: Annotated[str, Meta(description="What to translate.")]
    source: Code | None = None
    target: Code | None = None
    format: Format = "text"
    n_best: Annotated[int, Meta(ge=1)] = 4
    beam_size: Annotated[Beam, Meta(description="At least n_best.")] = None
    length_penalty: Annotated[
        Annotated[float, Meta(ge=0, le=10)] | None, Meta(description="The α of Wu et al.")
    ] = None
    api_key: Key = None


class Hypothesis(Struct):
    """One translation: its score is log P divided by the length penalty."""

    text: str
    score: float
    log_probability: float
    finished: bool


class NBestAnswer(Struct):
    """Translations, best first."""

    source: str
    target: str
    outputs: list[Hypothesis]


class StreamRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """A text to translate while the answer is read."""

    q: Annotated[str, Meta(description="What to translate.")]
    source: Code | None = None
    target: Code | None = None
    format: Format = "text"
    beam_size: Annotated[Beam, Meta(description="With 1, what is sent never changes.")] = None
    api_key: Key = None


class Part(Struct):
    """A stretch of the translation: all of them, one after another, are the whole."""

    text: str
    tail: str
    """What stands after it for now, and may change."""


class Whole(Struct):
    """The translation, when it is done."""

    text: str
    sentences: int
    """So many were translated, each by itself."""


class ScoreRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """Translations to be judged, one for each text. Each is one sentence."""

    q: Annotated[Texts, Meta(description="What was translated.")]
    translation: Annotated[Texts, Meta(description="Its translation, or one for each text.")]
    source: Code | None = None
    target: Code | None = None
    api_key: Key = None


class ScoredPair(Struct):
    """How probable a translation is, as a whole and token by token."""

    log_probability: float
    tokens: list[str]
    token_log_probabilities: list[float]


class ScoreAnswer(Struct):
    """A score for each pair."""

    scores: list[ScoredPair]


class AttentionRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """A sentence, and where to look. Layers and heads count from 1."""

    q: Annotated[str, Meta(description="What the model reads: one sentence.")]
    translation: Annotated[
        str | None, Meta(description="What it writes; unless given, its own translation.")
    ] = None
    source: Code | None = None
    target: Code | None = None
    kinds: Annotated[
        tuple[Kind, ...],
        Meta(
            min_length=1,
            description="Self-attention of the encoder, of the decoder, or the decoder's to the "
            "source.",
        ),
    ] = ("source",)
    layers: Annotated[Numbers, Meta(description="Unless given, all.")] = None
    heads: Annotated[Numbers, Meta(description="Unless given, all.")] = None
    tokens: Annotated[
        Literal["words", "pieces"], Meta(description="Join the vocabulary's pieces to words.")
    ] = "words"
    api_key: Key = None


class Side(Struct):
    """The tokens that attend, or that are attended to; the word of each, counted from 0."""

    pieces: list[str]
    words: list[str]
    word_of: list[int]


class Weights(Struct):
    """`weights[layer][head][query][key]`; over the keys they sum to 1."""

    queries: Side
    keys: Side
    weights: list[list[list[list[float]]]]


class AttentionAnswer(Struct):
    """What `transept visualize --output x.json` writes, of the layers and heads chosen."""

    source: str
    target: str
    layers: list[int]
    heads: list[int]
    attention: dict[Kind, Weights]


class ParseRequest(Struct, kw_only=True, forbid_unknown_fields=True):
    """A sentence, or a list of sentences, to parse: words with spaces between them."""

    q: Annotated[Texts, Meta(description="Words as treebanks have them: `It does n't sleep .`")]
    n_best: Annotated[int, Meta(ge=1, description="Trees wanted of each sentence.")] = 1
    beam_size: Annotated[Beam, Meta(description="At least n_best.")] = None
    api_key: Key = None


class Node(Struct, omit_defaults=True):
    """A constituent with its children, or a tag with its word."""

    label: str
    word: str | UnsetType = UNSET
    children: list["Node"] | UnsetType = UNSET


class ParsedTree(Struct):
    """One tree, as treebanks write it and as nodes; confidence is log P for each symbol."""

    brackets: str
    tree: Node
    score: float
    log_probability: float
    confidence: float


class Parsed(Struct):
    """A sentence's trees, best first; none where there was no word."""

    words: list[str]
    outputs: list[ParsedTree]


class ParseAnswer(Struct):
    """What was made of each sentence."""

    parses: list[Parsed]
