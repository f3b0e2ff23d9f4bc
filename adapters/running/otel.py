"""Spans for OpenTelemetry: each span of a run becomes one of its SDK.

`Tracing` observes a run, and gives spans to a tracer provider with the times of the
fold (`fnop.interpreters.runtime.spans`). Importing this module does not import
OpenTelemetry, which takes a while and may be missing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from msgspec import Struct

import fnop
from fnop.adapters.common.logs import in_span
from fnop.adapters.kubernetes.kubeconfig import ConfigurationProblem
from fnop.core.operator.step import State
from fnop.core.seam.commands import Command, Say, Subject
from fnop.core.seam.inputs import Input
from fnop.core.values.now import Now
from fnop.interpreters.runtime.spans import Opened, Span, Spans

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Span as OtelSpan, TracerProvider

__all__ = ["Otel", "Tracing", "provider_of"]

Attributes = dict[str, str | int]

_MISSING = "traces need OpenTelemetry; install it: pip install fnop[otel]"


class Otel(Struct, frozen=True):
    """The receiver of spans, and the recording of the run if there is one.

    `provider` is a tracer provider; None takes the global one of the process.
    """

    provider: TracerProvider | None = None
    recording: str = ""


class Tracing:
    """An observer (`fnop.interpreters.runtime.machine.Observer`) that reports spans.

    Raises `ConfigurationProblem` if OpenTelemetry is missing.
    """

    def __init__(self, otel: Otel) -> None:
        try:
            from opentelemetry import trace
        except ImportError:
            raise ConfigurationProblem(_MISSING) from None
        self._api = trace
        self._tracer = trace.get_tracer(
            "fnop", fnop.__version__, tracer_provider=otel.provider
        )
        self._spans = Spans()
        # The open spans, and those that the last step has closed.
        self._open: dict[int, OtelSpan] = {}
        self._closed: dict[int, OtelSpan] = {}
        self._common: Attributes = {}
        if otel.recording:
            self._common["fnop.recording"] = otel.recording
        self._server: Attributes = {}

    def follow(self, state: Callable[[], State], server: str = "") -> None:
        """Follow an operator, by its state and the URL of its API server."""
        self._spans.state = state
        self._server = _server(server)

    def observe(self, now: Now, input: Input, commands: tuple[Command, ...]) -> None:
        """Report the spans that a step opens and closes."""
        self._closed.clear()
        for change in self._spans.take(now, input, commands):
            if isinstance(change, Opened):
                self._begin(change.span)
            else:
                self._end(change.span)

    def close(self) -> None:
        """End all spans that are open."""
        for change in self._spans.end():
            self._end(change.span)

    def saying(self, say: Callable[[Say], None]) -> Callable[[Say], None]:
        """A function that logs a line as `say` does, within its span."""

        def say_in_span(line: Say) -> None:
            found = self._spans.span_of(line.subject, line.handler)
            span = None if found is None else self._reported(found)
            if span is None:
                say(line)
                return
            ids = span.get_span_context()
            with (
                self._api.use_span(span),
                in_span(f"{ids.trace_id:032x}", f"{ids.span_id:016x}"),
            ):
                say(line)

        return say_in_span

    def _reported(self, span: Span) -> OtelSpan | None:
        return self._open.get(id(span)) or self._closed.get(id(span))

    def _begin(self, span: Span) -> None:
        kinds = self._api.SpanKind
        self._open[id(span)] = self._tracer.start_span(
            _name(span),
            context=self._context_of(span.parent),
            kind=kinds.CLIENT if span.kind == "request" else kinds.INTERNAL,
            attributes=self._attributes_at_begin(span),
            start_time=_nanoseconds(span.begin),
        )

    def _context_of(self, parent: Span | None) -> Context:
        """The context of a span's parent; without one, it is the root of a trace.

        The program around an embedded operator may be in a span of its own.
        """
        from opentelemetry.context import Context

        if parent is None:
            return Context()
        return self._api.set_span_in_context(self._open[id(parent)], Context())

    def _end(self, span: Span) -> None:
        found = self._closed[id(span)] = self._open.pop(id(span))
        found.set_attributes(_attributes_at_end(span))
        if span.error:
            found.set_status(self._api.StatusCode.ERROR, span.error)
        found.end(_nanoseconds(span.begin if span.end is None else span.end))

    def _attributes_at_begin(self, span: Span) -> Attributes:
        found = self._common | {"fnop.step": span.step}
        if span.about is not None:
            found |= _attributes_of_object(span.about)
        if span.handler:
            found["fnop.handler"] = span.handler
        if span.kind == "attempt":
            found["fnop.retry"] = span.retry
        if span.reason:
            found["fnop.reason"] = span.reason
        if span.function:
            found["code.function.name"] = span.function
        if span.request is not None:
            found |= self._server
            found["http.request.method"] = span.request.method
            found["url.path"] = span.request.path
            found["url.template"] = span.template
        return found


def _attributes_of_object(subject: Subject) -> Attributes:
    """The object by the names that the events receiver of the collector uses."""
    found: Mapping[str, str | None] = {
        "k8s.namespace.name": subject.namespace,
        "k8s.object.kind": subject.kind,
        "k8s.object.api_version": subject.api_version,
        "k8s.object.name": subject.name,
        "k8s.object.uid": subject.uid,
    }
    return {name: value for name, value in found.items() if value}


def _attributes_at_end(span: Span) -> Attributes:
    found: Attributes = {"fnop.result": span.result} if span.result else {}
    if span.status is not None:
        found["http.response.status_code"] = span.status
    if span.error and span.kind == "request":
        # OpenTelemetry: the status as text, or else a name of the error.
        is_refused = span.status is not None and span.status >= 400
        found["error.type"] = str(span.status) if is_refused else span.result or "lost"
    elif span.error:
        found["error.type"] = span.result
    return found


def _name(span: Span) -> str:
    match span.kind:
        case "reconcile":
            kind = span.about.kind if span.about is not None else ""
            return f"reconcile {kind}".rstrip()
        case "attempt":
            return span.handler
        case "call":
            return span.function
        case "request":
            method = span.request.method if span.request is not None else ""
            return f"{method} {span.template}"


def _server(url: str) -> Attributes:
    """The host and the port of the API server.

    >>> _server("https://10.96.0.1/")
    {'server.address': '10.96.0.1', 'server.port': 443}
    """
    parts = urlsplit(url)
    if not parts.hostname:
        return {}
    usual = 443 if parts.scheme == "https" else 80
    return {"server.address": parts.hostname, "server.port": parts.port or usual}


def _nanoseconds(seconds: float) -> int:
    return round(seconds * 1e6) * 1_000


def provider_of(name: str, environ: Mapping[str, str]) -> Any:
    """A tracer provider as the OTEL_* variables describe it.

    `name` is the name of the service if no variable has one. Raises
    `ConfigurationProblem` if OpenTelemetry or the exporter is missing.
    """
    try:
        from opentelemetry.sdk.resources import SERVICE_NAME, Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        raise ConfigurationProblem(_MISSING) from None
    resource = Resource.create()
    if str(resource.attributes.get(SERVICE_NAME)).startswith("unknown_service"):
        resource = resource.merge(Resource({SERVICE_NAME: name}))
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    for exporter in _exporters(environ):
        provider.add_span_processor(BatchSpanProcessor(exporter))
    return provider


# OpenTelemetry: the exporters of OTLP, by OTEL_EXPORTER_OTLP_PROTOCOL.
_OTLP = {"http/protobuf": "otlp_proto_http", "grpc": "otlp_proto_grpc"}


def _exporters(environ: Mapping[str, str]) -> list[Any]:
    """The exporters of OTEL_TRACES_EXPORTER, which are otlp if it is not set."""
    protocol = (
        environ.get("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL")
        or environ.get("OTEL_EXPORTER_OTLP_PROTOCOL")
        or "http/protobuf"
    )
    found = []
    for name in (environ.get("OTEL_TRACES_EXPORTER") or "otlp").split(","):
        name = name.strip()
        if name == "none":
            continue
        entry = _OTLP.get(protocol, protocol) if name == "otlp" else name
        known = entry_points(group="opentelemetry_traces_exporter", name=entry)
        made = next(iter(known), None)
        if made is None:
            raise ConfigurationProblem(
                f"there is no exporter {entry!r} for traces; install its package, or "
                "change OTEL_TRACES_EXPORTER and OTEL_EXPORTER_OTLP_PROTOCOL"
            )
        found.append(made.load()())
    return found
