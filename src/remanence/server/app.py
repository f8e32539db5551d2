"""The application: its routes, and what stands around them."""

from importlib.metadata import version

from fastapi import FastAPI

from remanence.chat import ChatSource
from remanence.memory import Memory
from remanence.server.chats import Chats
from remanence.server.local import LocalOnly
from remanence.server.problems import handle_problems
from remanence.server.routes import chat, health, memory as memory_routes


def create_app(
    memory: Memory, *, model: ChatSource | None = None, system: str = "", tools: bool = False
) -> FastAPI:
    """An application over an open memory, which it does not close.

    Args:
        memory: what it serves.
        model: what answers a chat; without one, chatting is refused.
        system: the base system prompt of a chat.
        tools: whether the model may search and keep facts of the user, where a turn names one.

    Raises:
        ModelError: *model* is unknown, or has no key.
    """
    app = FastAPI(
        title="remanence",
        summary="Memory for LLM agents",
        version=version("remanence"),
        docs_url=None,  # these pages load scripts from elsewhere
        redoc_url=None,
    )
    app.state.memory = memory
    app.state.chats = Chats(memory, model=model, system=system, tools=tools)
    app.add_middleware(LocalOnly)
    handle_problems(app)
    for routes in (health, memory_routes, chat):
        app.include_router(routes.router)
    return app
