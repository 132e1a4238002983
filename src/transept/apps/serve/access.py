"""Access of clients: other web sites, and the number of requests of an address."""

import ipaddress
import math
import time
from collections.abc import Callable, Collection
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request

MOST_ADDRESSES = 100_000
"""The maximum number of addresses whose requests are counted."""


def is_cross_site(headers: Headers, allowed: Collection[str]) -> bool:
    """Whether a web page of another site sent a request, and its origin is not allowed.

    A browser sends a form to any address, so that another site could make a local server work.
    Other clients send neither header.

    Args:
        headers: Those of the request.
        allowed: The allowed origins. `*` allows all.
    """
    origin, site = headers.get("origin"), headers.get("sec-fetch-site")
    if "*" in allowed or origin in allowed:
        return False
    if site is not None:
        return site not in ("same-origin", "none")
    # Browsers send Sec-Fetch-Site only with TLS and to this machine.
    return origin is not None and urlsplit(origin).netloc != headers.get("host")


class RateLimit:
    """Limits the requests of each address per minute.

    An address may send all requests of a minute at once. Then it gets one more after each share of
    a minute (token bucket).
    """

    def __init__(
        self, per_minute: int, proxies: Collection[str], now: Callable[[], float] = time.monotonic
    ) -> None:
        """Create a limit.

        Args:
            per_minute: The number of requests. 0: no limit.
            proxies: Addresses of proxies, whose header `X-Forwarded-For` is trusted.
            now: The clock, in seconds.
        """
        self.per_minute, self._proxies, self._now = per_minute, proxies, now
        self._full_at: dict[str, float] = {}
        """When each address may send all requests of a minute again."""

    def wait(self, request: Request) -> int:
        """Count a request. If it exceeds the limit, return the seconds to wait, otherwise 0."""
        if not self.per_minute:
            return 0
        client, now, share = self._client(request), self._now(), 60 / self.per_minute
        full_at = max(self._full_at.get(client, now), now) + share
        if full_at > now + 60 + share / 1e6:
            return math.ceil(full_at - now - 60)
        if len(self._full_at) >= MOST_ADDRESSES:
            self._full_at = {one: due for one, due in self._full_at.items() if due > now}
        if len(self._full_at) < MOST_ADDRESSES:
            self._full_at[client] = full_at
        return 0

    def _client(self, request: Request) -> str:
        """The address of the client, or the network of an IPv6 address, which has many."""
        client = request.client.host if request.client else ""
        if client in self._proxies:
            # Each proxy appends the address of its client. A client may send forged ones before.
            forwarded = ",".join(request.headers.getlist("x-forwarded-for"))
            others = [one.strip() for one in forwarded.split(",")]
            client = next((one for one in reversed(others) if one not in self._proxies), "")
        try:
            address = ipaddress.ip_address(client)
        except ValueError:
            return ""
        if address.version == 4:
            return client
        return str(ipaddress.ip_network((address, 64), strict=False))
