"""Which options were given, and which one an unknown option may have been meant for.

An unknown option may be a misspelling, or another toolkit's name.
"""

import difflib
from collections.abc import Iterable
from dataclasses import fields
from functools import wraps
from typing import Any, TypeVar, get_type_hints

T = TypeVar("T")

OTHER_NAMES = {
    "alignments": "align print-alignment report-align",
    "beam-size": "b beam beams num-beams",
    "device": "cpu cuda devices gpu gpus use-gpu",
    "hypothesis": "candidates mt sys system translations",
    "init": "finetune finetune-from-model pretrained pretrained-model",
    "input": "file files in infile source src text",
    "kind": "model-type type",
    "length-penalty": "alpha lenpen normalize",
    "max-tokens": "max-len max-length max-sentence-length",
    "model": "checkpoint ckpt load m models path",
    "n-best": "nbest num-hypotheses",
    "output": "dest-dir out-dir out-file save-dir save-model to",
    "quantization": "compute-type dtype precision quantize",
    "reference": "gold ref refs target tgt trg",
    "source": "file in input src train-src",
    "source-language": "from lang language sl source-lang src-lang",
    "target": "output ref reference tgt train-tgt trg",
    "target-language": "target-lang tgt-lang tl to trg-lang",
    "tokenizer": "bpe codes sentencepiece spm vocab vocabs vocabulary",
    "top-k": "sampling-topk",
    "top-p": "nucleus sampling-topp",
    "vocab-size": "merges n-words num-operations symbols",
    "workers": "cpu-threads jobs num-proc num-workers processes threads",
    # Arguments, which stand by themselves.
    "CONFIG": "config-file config-yaml",
    "DIRECTORY": "data dir input",
    "FILE": "config in input src",
    "NAME": "config corpus dataset recipe",
    "RUN": "checkpoints input inputs model",
    "SENTENCE": "input source src text",
}
"""What fairseq, OpenNMT, Marian, Sockeye, sentencepiece and others call what is ours."""

SIMILAR = 0.65
"""How similar, to difflib, a name must be; with less, `--threads` would find `--stream`."""


def likely(option: str, known: Iterable[str]) -> str | None:
    """Which of a command's options and arguments is most likely meant by an unknown option."""
    names = {name.removeprefix("--"): name for name in known if name[:1] != "-" or name[:2] == "--"}
    word = option.partition("=")[0].lstrip("-").lower().replace("_", "-")
    for name in (word, word.upper()):
        if name in names:
            return names[name]
    for name in names:
        others = OTHER_NAMES.get(name, "")
        if word in others.split() or word in others.replace("-", "").split():
            return names[name]
    begun = [name for name in names if len(word) >= 3 and name.startswith(word)]
    near = begun or difflib.get_close_matches(word, names, n=1, cutoff=SIMILAR)
    return names[min(near, key=len)] if near else None


def likely_key(option: str) -> str | None:
    """Which key of an experiment's config is most likely meant by an option that is none."""
    from transept.experiment import Experiment

    known = {}
    for table, schema in get_type_hints(Experiment).items():
        for field in fields(schema):
            key = f"{table}.{field.name}"
            known[key] = known[field.name] = key
    word = option.partition("=")[0].lstrip("-").lower().replace("-", "_")
    near = difflib.get_close_matches(word, known, n=1, cutoff=SIMILAR)
    return known[near[0]] if near else None


def remembers_given(group: type[T]) -> type[T]:
    """Let a dataclass of options remember which of them were given, for `given` to return.

    A value alone does not show it: `--beam-size 4` asks for a beam, though 4 is the default.
    """
    make = group.__init__

    @wraps(make)
    def remember(self: T, **options: Any) -> None:
        # Before the dataclass checks its values, since the check may ask which were given.
        object.__setattr__(self, "_given", options)
        make(self, **options)

    group.__init__ = remember  # type: ignore[assignment]
    return group


def given(group: object) -> dict[str, Any]:
    """The options of a group that were given, with their values."""
    options: dict[str, Any] = getattr(group, "_given", {})
    return dict(options)
