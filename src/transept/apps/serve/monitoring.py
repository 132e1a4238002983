"""The paths by which an operator monitors the server: health and metrics."""

from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from transept.apps.serve import messages as m
from transept.apps.serve.answers import answer, fault
from transept.apps.serve.batching import Batcher
from transept.apps.serve.metrics import CONTENT_TYPE, Metrics


@dataclass(frozen=True)
class Monitoring:
    """Handlers that tell how the server is."""

    batcher: Batcher
    metrics: Metrics

    async def health(self, request: Request) -> Response:
        """Say whether the server can translate."""
        return await self.ready(request)

    async def figures(self, request: Request) -> Response:
        """Give the metrics for Prometheus."""
        return Response(self.metrics.text(), headers={"Content-Type": CONTENT_TYPE})

    async def live(self, request: Request) -> Response:
        """Say that the process is alive."""
        return answer(m.Health())

    async def ready(self, request: Request) -> Response:
        """Say whether the server is ready to translate."""
        return answer(m.Health()) if self.batcher.alive else fault(503, "the model does not work")
