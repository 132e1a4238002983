"""Random networks in tests of everything around them.

Their outputs repeat themselves and reach the maximum length, so that each would be translated
again in parts. `tests/unit/api/test_guard.py` tests that. Other tests accept any output.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from transept import Transducer
from transept.text.protection import Masked


@contextmanager
def any_output_accepted() -> Iterator[None]:
    """Within it, a model's first output is its translation."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Masked, "is_loop", lambda self, output: False)
        patch.setattr(Transducer, "_guarded", Transducer._outputs)
        yield
