"""A typed client of `remanence serve`; needs the extra `client`."""

from importlib.util import find_spec

from remanence.errors import MissingExtra

if find_spec("httpx2") is None:
    raise MissingExtra("client", "httpx2")

from remanence.client.blocking import Client
from remanence.client.service import AsyncClient

__all__ = ["AsyncClient", "Client"]
