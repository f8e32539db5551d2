"""One server, seen from outside: its metrics, traces and log."""

import asyncio
import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import get_args

import httpx2
import pytest
from fastapi import FastAPI, Request, Response
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from prometheus_client.parser import text_string_to_metric_families
from tests.server.conftest import served
from tests.server.process import KEY, service
from tests.wire.dialects import Reply
from tests.wire.servers import Fail, Held, ModelServer

from remanence.context.context import OmittedReason

QUESTION = "Where is the blue safe? "
TURNS = [
    {"role": "user", "content": QUESTION * 20},
    {"role": "assistant", "content": "Under the stairs."},
] * 4
ROOT = Path(__file__).parents[2]
METRIC = re.compile(r"\b(?:gen_ai|http|process|remanence)_\w+")
CLIENT_TRACE = "0af7651916cd43dd8448eb211c80319c"
CLIENT_SPAN = "b7ad6b7169203331"
HEADERS = {"traceparent": f"00-{CLIENT_TRACE}-{CLIENT_SPAN}-01", "x-request-id": "append-1"}
MESSAGES = "/v1/conversations/trip-of-ana/messages?user=ana"

pytestmark = pytest.mark.timeout(120)  # it loads the clients of providers, in a process of its own


@dataclass(kw_only=True)
class Seen:
    """What a server showed: reads of `/metrics`, its log, and what it sent by OTLP."""

    idle: str = ""
    working: str = ""
    done: str = ""
    log: list[str] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    service: str = ""
    metrics: set[str] = field(default_factory=set)

    def span(self, name: str) -> Span:
        """The first span with a name."""
        return next(span for span in self.spans if span.name == name)


def receiver(seen: Seen) -> FastAPI:
    """A collector that speaks OTLP over HTTP."""
    app = FastAPI()

    @app.post("/v1/traces")
    async def traces(request: Request) -> Response:
        for resource in ExportTraceServiceRequest.FromString(await request.body()).resource_spans:
            named = {item.key: item.value.string_value for item in resource.resource.attributes}
            seen.service = named["service.name"]
            seen.spans += [span for scope in resource.scope_spans for span in scope.spans]
        return Response(media_type="application/x-protobuf")

    @app.post("/v1/metrics")
    async def metrics(request: Request) -> Response:
        for resource in ExportMetricsServiceRequest.FromString(
            await request.body()
        ).resource_metrics:
            seen.metrics |= {
                item.name for scope in resource.scope_metrics for item in scope.metrics
            }
        return Response(media_type="application/x-protobuf")

    return app


async def scrape(http: httpx2.AsyncClient) -> str:
    response = await http.get("/metrics")
    assert response.status_code == 200
    assert response.headers["content-type"].startswith("text/plain")
    return response.text


def attributes(span: Span) -> dict[str, str | int]:
    return {item.key: item.value.string_value or item.value.int_value for item in span.attributes}


def total(text: str, name: str, **labels: str) -> float:
    """The sum of a metric's values that have these labels; None of them is an error."""
    values = [
        sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name and labels.items() <= sample.labels.items()
    ]
    assert values, f"there is no {name} with {labels}"
    return sum(values)


async def watch(directory: Path) -> Seen:
    """Let a server append, observe, fail and be asked nonsense."""
    seen, step = Seen(), Held(Reply("#1-2 [NOTE Fact] user: the safe is blue"))
    async with ModelServer().running() as models, served(receiver(seen)) as collector:
        failing = Fail(400, f"the key {{key}} may not ask: {QUESTION}")
        models.script(failing, step)
        options = (
            *("--log-format", "json", "--model", f"openai:mine@{models.url}/v1"),
            *("--openai-url", "http://127.0.0.1:9"),  # nobody answers there
        )
        variables = {
            "REMANENCE_POLICY__OBSERVE_TOKENS": "200",
            "REMANENCE_OBSERVER_MODEL": f"openai:notes@{models.url}/v1",
            "OTEL_EXPORTER_OTLP_ENDPOINT": str(collector.http.base_url),
        }
        async with service(directory, *options, **variables) as running, asyncio.timeout(60):
            seen.idle = await scrape(running.http)
            await running.http.post("/v1/conversations/tour/chat", json={"text": QUESTION})
            turn = {"model": "mine", "messages": [{"role": "user", "content": QUESTION}]}
            for memory in ("on", "off"):
                headers = {"x-remanence-memory": memory}
                await running.http.post("/openai/v1/chat/completions", json=turn, headers=headers)
            await running.http.get("/nowhere/ana")
            await running.http.request("BREW", "/healthz")
            body = {"messages": TURNS}
            assert (await running.http.post(MESSAGES, json=body, headers=HEADERS)).is_success
            await step.reached.wait()
            seen.working = await scrape(running.http)
            models.script(*[failing] * 40)
            step.gate.set()
            while not any("observe of conversation" in line for line in running.log):  # noqa: ASYNC110 - no event
                await asyncio.sleep(0.02)
            seen.done = await scrape(running.http)
            running.process.terminate()
            await running.process.wait()
        seen.log = running.log
    return seen


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> Seen:
    return asyncio.run(watch(tmp_path_factory.mktemp("server")))


def test_a_server_counts_what_it_did_by_cause(seen: Seen) -> None:
    for name in ("messages_appended", "literals_lost", "ledger_lost"):
        assert total(seen.idle, f"remanence_{name}_total") == 0
    for reason in get_args(OmittedReason):
        assert total(seen.idle, "remanence_context_omitted_total", reason=reason) == 0
    assert total(seen.done, "remanence_messages_appended_total") == 9
    failed = {"step": "observe", "reason": "bad_request"}
    assert total(seen.done, "remanence_steps_failed_total", **failed) >= 1
    assert total(seen.done, "remanence_model_calls_total", gen_ai_request_model="notes") >= 1
    assert total(seen.done, "remanence_chat_failed_total", reason="bad_request") == 1
    for reason in ("client", "history"):
        proxied = {"memory": "off", "reason": reason}
        assert total(seen.done, "remanence_proxy_requests_total", **proxied) == 1


@pytest.mark.parametrize(
    ("method", "route", "status"),
    [
        ("POST", "/v1/conversations/{id}/messages", "201"),
        ("POST", "/v1/conversations/{id}/chat", "502"),
        ("GET", "", "404"),
        ("_OTHER", "/healthz", "405"),
    ],
)
def test_requests_are_counted_by_route_method_and_status(
    seen: Seen, method: str, route: str, status: str
) -> None:
    labels = {
        "http_request_method": method,
        "http_route": route,
        "http_response_status_code": status,
    }
    assert total(seen.done, "http_server_request_duration_seconds_count", **labels) == 1


def test_the_gauges_show_the_work_that_is_due(seen: Seen) -> None:
    names = [f"remanence_backlog_{name}" for name in ("conversations", "tokens", "age_seconds")]

    assert [total(seen.idle, name) for name in names] == [0, 0, 0]
    assert [total(seen.working, name) > 0 for name in names] == [True, True, True]
    assert total(seen.working, "remanence_backlog_conversations") <= 2


def test_a_metric_has_one_description(seen: Seen) -> None:
    names = [line.split()[2] for line in seen.done.splitlines() if line.startswith("# TYPE ")]

    assert len(names) == len(set(names))


def test_no_metric_names_a_user_or_a_conversation(seen: Seen) -> None:
    for name in ("ana", "trip", "tour"):
        assert name not in seen.done


def test_the_dashboard_asks_for_metrics_that_a_server_has(seen: Seen) -> None:
    dashboard = json.loads((ROOT / "deploy" / "grafana" / "remanence.json").read_text("utf-8"))
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    labels = re.compile(r"\{.*?\}|\bby \([^)]*\)")
    asked = {name for query in queries for name in METRIC.findall(labels.sub("", query))}
    families = text_string_to_metric_families(seen.done)

    assert asked
    assert asked - {sample.name for family in families for sample in family.samples} == set()


def test_an_observer_call_links_to_the_request_that_made_it_due(seen: Seen) -> None:
    request, step = (
        seen.span("POST /v1/conversations/{id}/messages"),
        seen.span("remanence.observe"),
    )
    call = next(span for span in seen.spans if span.parent_span_id == step.span_id)

    assert (request.trace_id.hex(), request.parent_span_id.hex()) == (CLIENT_TRACE, CLIENT_SPAN)
    assert attributes(request)["remanence.request.id"] == "append-1"
    assert [(link.trace_id, link.span_id) for link in step.links] == [
        (request.trace_id, request.span_id)
    ]
    assert call.name == "chat notes"
    assert attributes(call)["gen_ai.operation.name"] == "chat"
    assert attributes(call)["gen_ai.provider.name"] == "openai"
    assert attributes(call)["gen_ai.conversation.id"] == "trip-of-ana"
    assert seen.service == "remanence"


def test_a_model_call_of_a_turn_belongs_to_its_request(seen: Seen) -> None:
    call = seen.span("chat mine")
    request = seen.span("POST /v1/conversations/{id}/chat")

    assert (call.trace_id, call.parent_span_id) == (request.trace_id, request.span_id)
    assert attributes(call)["error.type"] == "bad_request"


def test_metrics_are_sent_by_otlp_too(seen: Seen) -> None:
    assert seen.metrics >= {
        "remanence.messages.appended",
        "remanence.backlog.age",
        "http.server.request.duration",
        "gen_ai.client.operation.duration",
    }


def test_each_line_of_the_log_is_json_with_the_id_of_its_request(seen: Seen) -> None:
    lines = [json.loads(line) for line in seen.log]

    assert all({"time", "level", "logger", "message"} <= line.keys() for line in lines)
    ours = [line["message"].split(":")[0] for line in lines if line["request"] == "append-1"]
    assert ours[:4] == [
        "POST /v1/conversations/trip-of-ana/messages",
        "model call observe of openai",
        "model call observe of openai",
        "observe of conversation 'trip-of-ana' failed (bad_request, 1 in a row); messages stay raw",
    ]


def test_neither_log_nor_traces_nor_metrics_have_a_key_or_text_of_a_message(seen: Seen) -> None:
    for secret in (KEY, "blue safe", "the stairs"):
        assert secret not in "".join([*seen.log, seen.done, *map(str, seen.spans)])
