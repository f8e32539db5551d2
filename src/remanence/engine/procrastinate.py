"""Procrastinate jobs in the memory's own PostgreSQL database.

A database trigger defers a job in the transaction that schedules a look. A conversation has at most
one waiting and one running job. A job only names the conversation: the cursors determine what is due
and guard each commit, so lost, doubled or late jobs do no harm.
"""

import asyncio
import contextlib
from collections.abc import Iterable, Iterator
from datetime import timedelta
from typing import Any, Final

from procrastinate import App, PsycopgConnector
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Status
from procrastinate.manager import JobManager, NotificationCallback
from psycopg import AsyncConnection
from psycopg_pool import PoolTimeout

from remanence.background import Pauses, wait_for_end
from remanence.engine.local import LookAt
from remanence.engine.reconciler import Reconciler
from remanence.errors import Closed, StoreUnavailable
from remanence.policy.schedule import longest_wait
from remanence.stores.postgres_url import connection_string
from remanence.stores.rows import encode_instant
from remanence.types import ConversationRef

QUEUE: Final = "remanence"
RETENTION_QUEUE: Final = "remanence_retention"
"""A queue of its own, which only processes with rules of retention take jobs from."""

CONNECTIONS: Final = 4
"""Connections of a process for its jobs, besides the one that listens for them."""

MAX_POLL_SECONDS: Final = 5.0
"""Seconds until a scheduled job is found once it is due, as PostgreSQL does not notify of it."""

_DAY_SECONDS: Final = 86_400.0

RETENTION_CRON: Final = "17 */6 * * *"
"""Times (UTC) of the retention sweeps, each done by one process."""

_MORE_CONNECTIONS: Final = (
    "check that the server runs and can be reached; if many processes share its connections, run fewer "
    "workers, or raise max_connections of the server or CONNECTION LIMIT of the role and the database"
)

_DELETE_DEAD_WORKERS: Final = """
DELETE FROM procrastinate_workers
WHERE last_heartbeat < now() - make_interval(secs => %(seconds)s) AND id IN (
  SELECT worker_id FROM procrastinate_jobs WHERE queue_name = ANY(%(queues)s) AND status = 'doing'
)
"""
"""Limited to workers on these queues, as other applications may use a slower heartbeat."""

_DELETE_ORPHANED_JOBS: Final = (
    "DELETE FROM procrastinate_jobs WHERE queue_name = ANY(%(queues)s) AND status = 'doing' "
    "AND (worker_id IS NULL OR id = ANY(%(unfinished)s))"
)
"""Jobs of dead processes, and jobs of this one whose end could not be written."""

_RESCHEDULE: Final = """
UPDATE states SET look_at = %(now)s WHERE conversation IN (
  SELECT conversation FROM states
  WHERE (look_at <= %(now)s OR look_at > %(beyond)s)
  AND (lease_until IS NULL OR lease_until <= %(now)s OR lease_until > %(lease_until)s)
  AND NOT EXISTS (
    SELECT FROM procrastinate_jobs WHERE lock = 'remanence ' || conversation AND status = 'doing'
  )
  AND NOT EXISTS (
    SELECT FROM procrastinate_jobs WHERE queueing_lock = 'remanence ' || conversation
    AND status = 'todo' AND coalesce(scheduled_at <= now(), true)
  )
  FOR UPDATE SKIP LOCKED
)
"""
"""Touches looks that are due (or scheduled by a wrong clock) without a job, so that the trigger
defers one for each."""


class _JobManager(JobManager):
    """Goes on after an outage, and remembers jobs whose end could not be written.

    Only this process knows of these jobs.
    """

    def __init__(self, connector: PsycopgConnector) -> None:
        super().__init__(connector)
        self.unfinished: set[int] = set()

    async def finish_job_by_id_async(
        self,
        job_id: int,
        status: Status,
        delete_job: bool,  # noqa: FBT001 - as in the class above
    ) -> None:
        try:
            await super().finish_job_by_id_async(job_id, status, delete_job)
        except ConnectorException:
            self.unfinished.add(job_id)

    async def listen_for_jobs(
        self,
        *,
        on_notification: NotificationCallback,
        queues: Iterable[str] | None = None,
    ) -> None:
        """Listen again after an error, which procrastinate may ignore until its worker ends."""
        pauses, loop = Pauses(), asyncio.get_running_loop()
        while True:
            began = loop.time()
            try:
                return await super().listen_for_jobs(on_notification=on_notification, queues=queues)
            except ConnectorException as error:
                seconds = pauses.after("listener", error, worked_seconds=loop.time() - began)
            await asyncio.sleep(seconds)

    async def update_heartbeat(self, worker_id: int) -> None:
        with contextlib.suppress(ConnectorException):  # the next one follows
            await super().update_heartbeat(worker_id)


async def take_jobs(url: str, reconciler: Reconciler, look_at: LookAt, concurrency: int) -> None:
    """Run jobs of the database at *url*, each taken by one of its processes, until cancelled."""
    await reconciler.use_rules()
    background, seconds = reconciler.leases.background, reconciler.leases.seconds
    connector = PsycopgConnector(
        conninfo=connection_string(url),
        min_size=1,  # so many must be open before it takes a job
        max_size=CONNECTIONS,
        timeout=10,
        configure=_commit_at_once,
    )
    app = App(connector=connector)
    app.job_manager = manager = _JobManager(connector)

    @app.task(name="remanence.look", queue=QUEUE)
    async def look(tenant: str, id: str) -> None:  # noqa: A002 - as in the database
        with contextlib.suppress(Closed):
            await look_at(ConversationRef(tenant, id))

    if reconciler.pruner.rules:

        @app.periodic(cron=RETENTION_CRON)
        @app.task(
            name="remanence.retention", queue=RETENTION_QUEUE, queueing_lock="remanence retention"
        )
        async def enforce_retention(timestamp: int) -> None:  # noqa: ARG001 - passed to each
            """Start a sweep in the process that took the job, without blocking its other jobs."""
            background.spawn("retention", reconciler.pruner.prune)

    async def keep_sweeping() -> None:
        while True:
            with name_remedy():
                await _sweep(reconciler, manager)
            await asyncio.sleep(seconds / 2)

    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(app.close_async)  # also if opening was interrupted
        with name_remedy():
            await app.open_async()
        sweeping = background.spawn("sweep", keep_sweeping)
        try:
            with name_remedy():
                await app.run_worker_async(
                    queues=[QUEUE, RETENTION_QUEUE] if reconciler.pruner.rules else [QUEUE],
                    concurrency=concurrency,
                    delete_jobs="always",
                    install_signal_handlers=False,
                    fetch_job_polling_interval=min(MAX_POLL_SECONDS, seconds / 2),
                    update_heartbeat_interval=seconds / 3,
                    abort_job_polling_interval=_DAY_SECONDS,  # nobody aborts these jobs
                )
        finally:
            background.cancel(sweeping)
            await wait_for_end(sweeping)
            with contextlib.suppress(ConnectorException):  # other processes do it later
                await _sweep(reconciler, manager)
    raise StoreUnavailable("the job worker stopped: see its log for the reason")


async def _sweep(reconciler: Reconciler, manager: _JobManager) -> None:
    """Reschedule looks whose jobs were lost, such as those of dead processes.

    A live process that is mistaken for dead registers again with its next job.
    """
    seconds, now = reconciler.leases.seconds, reconciler.clock.now()
    execute, unfinished = manager.connector.execute_query_async, sorted(manager.unfinished)
    queues = [QUEUE, RETENTION_QUEUE]
    await execute(_DELETE_DEAD_WORKERS, queues=queues, seconds=seconds)
    await execute(_DELETE_ORPHANED_JOBS, queues=queues, unfinished=unfinished)
    manager.unfinished.difference_update(unfinished)
    await execute(
        _RESCHEDULE,
        now=encode_instant(now),
        beyond=encode_instant(now + longest_wait(reconciler.policy)),
        lease_until=encode_instant(now + timedelta(seconds=seconds)),
    )


@contextlib.contextmanager
def name_remedy() -> Iterator[None]:
    """Raise `StoreUnavailable` with what to do if the block gets no connection."""
    try:
        yield
    except (PoolTimeout, ConnectorException) as error:
        reason = error if isinstance(error, PoolTimeout) else error.__cause__
        if not isinstance(reason, PoolTimeout):
            raise
        raise StoreUnavailable(f"no connection for jobs ({reason}): {_MORE_CONNECTIONS}") from error


async def _commit_at_once(connection: AsyncConnection[Any]) -> None:
    """Use autocommit, so that a suspended process holds no locks on jobs and no old snapshot."""
    await connection.set_autocommit(True)
    await connection.execute("SET default_transaction_isolation = 'read committed'")
