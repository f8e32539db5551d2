"""The memory as an HTTP service; needs the extra `server`."""

from importlib.util import find_spec

from remanence.errors import MissingExtra

for _package in ("fastapi", "prometheus_client", "uvicorn"):
    if find_spec(_package) is None:
        raise MissingExtra("server", _package)
