import os
import signal

import pytest

from transept.runtime.interrupt import STOP_SIGNALS, stop_requests, terminable


@pytest.mark.parametrize("number", STOP_SIGNALS)
def test_first_signal_is_recorded_and_second_raises(number: signal.Signals) -> None:
    before = [signal.getsignal(each) for each in STOP_SIGNALS]
    with stop_requests() as request:
        assert not request
        os.kill(os.getpid(), number)
        assert request
        assert request.signal == number
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
    assert [signal.getsignal(each) for each in STOP_SIGNALS] == before


def test_terminable_raises_keyboard_interrupt_on_sighup() -> None:
    with terminable(), pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGHUP)


def test_sighup_stays_ignored_when_the_process_started_under_nohup() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with terminable(), stop_requests() as request:
            os.kill(os.getpid(), signal.SIGHUP)
            assert not request
            os.kill(os.getpid(), signal.SIGTERM)
            assert request.signal == signal.SIGTERM
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)
