"""Exporters of metrics and spans, for the processes of `serve` and `worker`."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, Final, Literal, get_args

from opentelemetry import metrics, trace

from remanence import telemetry
from remanence.background import Background
from remanence.context.context import OmittedReason
from remanence.errors import needs_extra
from remanence.memory import Memory
from remanence.telemetry.backlog import refresh_backlog

if TYPE_CHECKING:
    from opentelemetry.sdk.metrics.export import MetricReader
    from opentelemetry.sdk.resources import Resource

BACKLOG_SECONDS: Final = 15.0
"""The interval for reading gauges from the store for OTLP; `/metrics` reads them on request."""

EXPORT_SECONDS: Final = "3"
"""The timeout of an export; the default would delay shutdown by 20 s without a receiver."""


@contextmanager
def export_telemetry(*, scraped: bool) -> Iterator[None]:
    """Collect metrics for `/metrics` if *scraped*, and send metrics and spans by OTLP/HTTP.

    The receiver comes from OpenTelemetry's variables, such as `OTEL_EXPORTER_OTLP_ENDPOINT`; without
    one, nothing is sent. The rest is flushed at the end of the block.
    """
    os.environ.setdefault("OTEL_EXPORTER_OTLP_TIMEOUT", EXPORT_SECONDS)
    readers: list[MetricReader] = []
    if scraped:
        with needs_extra("server"):
            from opentelemetry.exporter.prometheus import PrometheusMetricReader
        readers.append(PrometheusMetricReader(scope_info_enabled=False))
    if sends("metrics"):
        with needs_extra("otlp"):
            from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
            from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
        readers.append(PeriodicExportingMetricReader(OTLPMetricExporter()))
    with ExitStack() as stack:
        if readers:
            from opentelemetry.sdk.metrics import MeterProvider

            metering = MeterProvider(metric_readers=readers, resource=_resource())
            stack.callback(metering.shutdown)
            metrics.set_meter_provider(metering)
            telemetry.count_from_zero(omitted_reasons=get_args(OmittedReason))
        if sends("traces"):
            with needs_extra("otlp"):
                from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
                from opentelemetry.sdk.trace import TracerProvider
                from opentelemetry.sdk.trace.export import BatchSpanProcessor
            tracing = TracerProvider(resource=_resource())
            tracing.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
            stack.callback(tracing.shutdown)
            trace.set_tracer_provider(tracing)
        yield


@asynccontextmanager
async def measure_backlog(memory: Memory) -> AsyncIterator[None]:
    """Keep the backlog gauges up to date if metrics are sent."""

    async def keep_reading() -> None:
        while True:
            await refresh_backlog(memory.backlog)
            await asyncio.sleep(BACKLOG_SECONDS)

    async with Background() as background:
        if sends("metrics"):
            background.spawn("backlog", keep_reading)
        yield


def sends(signal: Literal["metrics", "traces"]) -> bool:
    """Return whether an environment variable names a receiver for *signal*."""
    names = ("OTEL_EXPORTER_OTLP_ENDPOINT", f"OTEL_EXPORTER_OTLP_{signal.upper()}_ENDPOINT")
    return any(os.environ.get(name) for name in names)


def _resource() -> "Resource":
    """Return the name and version of the service; OpenTelemetry's variables take precedence."""
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource

    own = {"service.name": "remanence", "service.version": version("remanence")}
    return Resource.create({**own, **OTELResourceDetector().detect().attributes})
