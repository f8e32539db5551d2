"""How the tests of this folder reach a model."""

from dataclasses import dataclass

from tests.wire.servers import ModelServer

from remanence.clock import Clock
from remanence.protocols import Model
from remanence.providers import ModelOptions, open_model
from remanence.testing import FixedClock

KEY = "zz-test-0123456789abcdef"
MODELS = {"anthropic": "claude-haiku-4-5", "openai": "gpt-4o-mini"}
PATHS = {"anthropic": "", "openai": "/v1"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wire:
    """A server, and the way to reach a model on it."""

    provider: str
    stream: bool
    server: ModelServer

    @property
    def name(self) -> str:
        return f"{self.provider}:{MODELS[self.provider]}"

    @property
    def spec(self) -> str:
        return f"{self.name}@{self.server.url}{PATHS[self.provider]}"

    def open(
        self, *, attempts: int = 1, timeout_seconds: float = 10, clock: Clock | None = None
    ) -> Model:
        options = ModelOptions(
            attempts=attempts, timeout_seconds=timeout_seconds, stream=self.stream
        )
        return open_model(self.spec, options=options, clock=clock or FixedClock())
