"""The routes of the server, a module for each resource."""

from typing import Annotated

from fastapi import Depends, Request

from remanence.memory import Memory


def open_memory(request: Request) -> Memory:
    """Return the memory that is served."""
    memory: Memory = request.app.state.memory
    return memory


OpenMemory = Annotated[Memory, Depends(open_memory)]
