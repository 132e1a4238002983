from transept.tasks.toy import FIRST_SYMBOL_ID, Toy
from transept.text.tokenizer import EOS_ID


def test_pairs_depend_on_the_seed() -> None:
    toy = Toy()
    assert toy.pairs(20, seed=3) == toy.pairs(20, seed=3)
    assert toy.pairs(20, seed=3) != toy.pairs(20, seed=4)


def test_pairs_respect_lengths_and_kind() -> None:
    for kind in ("copy", "reverse"):
        toy = Toy(kind=kind, n_symbols=3, min_length=2, max_length=4)
        pairs = toy.pairs(200, seed=0)
        assert {len(source) for source, _ in pairs} == {3, 4, 5}
        for source, target in pairs:
            *symbols, end = source
            assert end == EOS_ID
            assert set(symbols) <= set(range(FIRST_SYMBOL_ID, toy.vocab_size))
            assert target == [*(symbols if kind == "copy" else reversed(symbols)), EOS_ID]
