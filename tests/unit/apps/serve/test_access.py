"""Rate limits and cross-site requests."""

import pytest
from starlette.datastructures import Headers
from starlette.requests import Request

from transept.apps.serve import access
from transept.apps.serve.access import RateLimit, is_cross_site


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def asked(address: str, forwarded: str = "") -> Request:
    headers = [(b"x-forwarded-for", forwarded.encode())] if forwarded else []
    return Request({"type": "http", "client": (address, 1), "headers": headers})


def test_limit_allows_a_minute_of_requests_at_once_then_one_per_share() -> None:
    clock = Clock()
    limit = RateLimit(6, (), clock)
    assert [limit.wait(asked("192.0.2.1")) for _ in range(8)] == [0] * 6 + [10, 10]
    assert limit.wait(asked("192.0.2.2")) == 0
    clock.now += 9.5
    assert limit.wait(asked("192.0.2.1")) == 1
    clock.now += 0.5
    assert [limit.wait(asked("192.0.2.1")) for _ in range(2)] == [0, 10]
    clock.now += 3600
    assert [limit.wait(asked("192.0.2.1")) for _ in range(7)] == [0] * 6 + [10]


def test_no_limit_counts_nothing() -> None:
    limit = RateLimit(0, ())
    assert {limit.wait(asked("192.0.2.1")) for _ in range(100)} == {0}


def test_forwarded_address_counts_only_from_a_known_proxy() -> None:
    limit = RateLimit(1, ("127.0.0.1", "10.0.0.1"), Clock())
    for proxy, forwarded, is_allowed in [
        ("127.0.0.1", "192.0.2.1", True),
        ("127.0.0.1", "192.0.2.1", False),
        ("127.0.0.1", "192.0.2.2", True),
        ("127.0.0.1", "198.51.100.9, 192.0.2.2", False),  # the client sent the first one
        ("127.0.0.1", "192.0.2.3, 10.0.0.1", True),
        ("10.0.0.1", "192.0.2.3", False),
        ("192.0.2.9", "192.0.2.4", True),
        ("192.0.2.9", "192.0.2.5", False),
        ("127.0.0.1", "nonsense", True),
        ("127.0.0.1", "", False),
    ]:
        assert (limit.wait(asked(proxy, forwarded)) == 0) is is_allowed


def test_addresses_of_an_ipv6_network_share_a_limit() -> None:
    limit = RateLimit(1, (), Clock())
    addresses = ["2001:db8::1", "2001:db8::2", "2001:db8:0:1::1"]
    assert [limit.wait(asked(one)) for one in addresses] == [0, 60, 0]


def test_old_addresses_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access, "MOST_ADDRESSES", 3)
    clock = Clock()
    limit = RateLimit(1, (), clock)
    addresses = [f"192.0.2.{n}" for n in range(5)]
    assert [limit.wait(asked(one)) for one in addresses * 2] == [0] * 5 + [60] * 3 + [0] * 2
    clock.now += 60
    assert [limit.wait(asked(one)) for one in addresses[3:] * 2] == [0, 0, 60, 60]


@pytest.mark.parametrize(
    ("headers", "is_foreign"),
    [
        ({}, False),
        ({"sec-fetch-site": "same-origin", "origin": "https://front.example"}, False),
        ({"sec-fetch-site": "none"}, False),
        ({"sec-fetch-site": "cross-site"}, True),
        ({"sec-fetch-site": "same-site", "origin": "http://localhost:81"}, True),
        ({"sec-fetch-site": "cross-site", "origin": "https://page.example"}, False),
        ({"origin": "http://localhost"}, False),
        ({"origin": "http://localhost:81"}, True),
        ({"origin": "https://evil.example"}, True),
        ({"origin": "null"}, True),
    ],
)
def test_cross_site_request_is_recognized(headers: dict[str, str], is_foreign: bool) -> None:
    sent = Headers({"host": "localhost", **headers})
    assert is_cross_site(sent, ["https://page.example"]) is is_foreign
    assert not is_cross_site(sent, ["*"])
