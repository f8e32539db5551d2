"""Jobs in PostgreSQL that get no connection."""

import pytest
from procrastinate.exceptions import ConnectorException
from psycopg_pool import PoolTimeout

from remanence.engine.procrastinate import name_remedy
from remanence.errors import StoreUnavailable

_TIMEOUT = PoolTimeout("couldn't get a connection after 10.00 sec")


def _wrapped() -> ConnectorException:
    error = ConnectorException()
    error.__cause__ = _TIMEOUT
    return error


@pytest.mark.parametrize("error", [_TIMEOUT, _wrapped()])
def test_jobs_without_a_connection_name_the_remedy(error: Exception) -> None:
    with pytest.raises(StoreUnavailable, match=r"after 10.00 sec.*run fewer"), name_remedy():
        raise error


def test_other_errors_of_jobs_stay_as_they_are() -> None:
    with pytest.raises(ConnectorException), name_remedy():
        raise ConnectorException
