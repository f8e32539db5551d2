"""A typed client of `remanence serve`; needs the extra `client`."""

from remanence.errors import needs_extra

with needs_extra("client"):
    from remanence.client.blocking import Client
    from remanence.client.service import AsyncClient

__all__ = ["AsyncClient", "Client"]
