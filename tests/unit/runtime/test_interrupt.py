import os
import signal

import pytest

from transept.runtime.interrupt import STOP_SIGNALS, stop_requests


@pytest.mark.parametrize("number", STOP_SIGNALS)
def test_the_first_signal_is_noted_and_the_second_obeyed(number: signal.Signals) -> None:
    before = [signal.getsignal(each) for each in STOP_SIGNALS]
    with stop_requests() as request:
        assert not request
        os.kill(os.getpid(), number)
        assert request
        assert request.signal == number
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
    assert [signal.getsignal(each) for each in STOP_SIGNALS] == before
