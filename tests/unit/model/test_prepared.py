"""A model is prepared once."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from transept import ModelConfig, Transformer
from transept.model.prepared import prepare


def test_threads_that_begin_together_prepare_a_model_once() -> None:
    config = ModelConfig(vocab_size=30, n_layers=2, d_model=64, d_ff=128, n_heads=2)
    model, n_threads = Transformer(config).eval(), 8
    together = Barrier(n_threads)

    def parts(_: int) -> tuple[object, ...]:
        together.wait()
        prepared = prepare(model)
        return prepared, prepared.decoder(4), prepared.encoder_layers(), prepared.source_kv()

    with ThreadPoolExecutor(n_threads) as threads:
        first, *others = threads.map(parts, range(n_threads))
    assert all(one is other for found in others for one, other in zip(first, found, strict=True))
