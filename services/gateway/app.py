"""The routes: each reads its request, calls one function and renders the result."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from http import HTTPStatus
from typing import Annotated, Any, Literal

from fastapi import FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.middleware.trustedhost import TrustedHostMiddleware

from odf_common.catalog.records import DatasetEntry
from odf_common.errors import OdfError
from odf_common.identity.references import DatasetAlias, DatasetRef, parse_ref
from odf_common.ingest.media_types import MEDIA_TYPES
from odf_common.messages.base import Message
from services.gateway import metrics, pages
from services.gateway.errors import RETRY_AFTER_S, RequestError, TooBusyError, status_of
from services.gateway.event_ids import MAX_LENGTH
from services.gateway.event_response import EventResponse
from services.gateway.gateway import Gateway
from services.gateway.ingest import IngestRequest, UploadRequest
from services.gateway.measured import MeasuredApp
from services.gateway.messages import DatasetList, Problem, Published, Readiness, Uploaded
from services.gateway.settings import GatewaySettings
from services.gateway.streams import parse_from, parse_last_event_id

_log = logging.getLogger(__name__)

MAX_WAIT_S = 300.0
MAX_STREAMED_DATASETS = 100
_MAX_PAGE = 1_000
_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"

OpenGateway = Callable[[], AbstractAsyncContextManager[Gateway]]

_PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": Problem, "description": HTTPStatus(status).phrase}
    for status in (400, 404, 408, 413, 415, 429, 503)
}
_COMMITTED: dict[int | str, dict[str, Any]] = {
    200: {"model": Published, "description": "Committed: `blocks` are the receipt"}
}


def _header(name: str, description: str, **schema: Any) -> dict[str, Any]:
    return {
        "name": name,
        "in": "header",
        "required": False,
        "schema": {"type": "string", **schema},
        "description": description,
    }


_TEXT = {"schema": {"type": "string"}}
_BYTES = {"schema": {"type": "string", "format": "binary"}}
_PAYLOAD = {
    "requestBody": {
        "description": "Empty with `uploadToken`.",
        "required": False,
        "content": {
            media_type: _TEXT if "json" in media_type or media_type.startswith("text/") else _BYTES
            for media_type in MEDIA_TYPES
        },
    },
    "parameters": [
        _header("odf-event-time", "The event time of records that bring none. Default: now.", format="date-time"),
        _header(
            "Idempotency-Key",
            "The payload is taken once, however often it is sent with this key. What is in it is not compared.",
            minLength=1,
            maxLength=MAX_LENGTH,
        ),
        _header("ce-id", "As Idempotency-Key, unique within `ce-source` (CloudEvents, binary mode)."),
        _header("ce-source", "The source of `ce-id`."),
    ],
}
_FILE = {"requestBody": {"required": True, "content": {"application/octet-stream": _BYTES}}}
_EVENTS: dict[int | str, dict[str, Any]] = {200: {"content": {"text/event-stream": {"schema": {"type": "string"}}}}}


def create_app(settings: GatewaySettings, open_gateway: OpenGateway) -> FastAPI:
    """The application; the gateway is opened when it starts and closed when it ends."""

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with open_gateway() as gateway:
            app.state.gateway = gateway
            yield

    app = FastAPI(
        title="ODF Streams gateway",
        version="1",
        description="Publish events to Open Data Fabric datasets and hear of new blocks.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
    )
    if settings.hosts:
        app.add_middleware(TrustedHostMiddleware, allowed_hosts=list(settings.hosts), www_redirect=False)
    app.add_middleware(MeasuredApp)
    app.add_exception_handler(OdfError, _on_error)
    app.add_exception_handler(RequestValidationError, _on_invalid_request)
    app.add_exception_handler(HTTPException, _on_http_error)
    app.add_exception_handler(Exception, _on_bug)
    _add_pages(app)
    _add_health(app)
    _add_datasets(app)
    _add_events(app)
    _add_ingest(app)
    _add_uploads(app)
    return app


def _gateway(request: Request) -> Gateway:
    gateway: Gateway = request.app.state.gateway
    return gateway


def _add_pages(app: FastAPI) -> None:
    @app.get("/", include_in_schema=False)
    async def addresses() -> Response:
        return pages.ADDRESSES.response()

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return pages.DOCS.response()


def _add_health(app: FastAPI) -> None:
    @app.get("/healthz", tags=["health"])
    async def healthz() -> dict[str, str]:
        """The process is alive."""
        return {"status": "alive"}

    @app.get("/readyz", tags=["health"], response_model=Readiness, responses={503: {"model": Readiness}})
    async def readyz(request: Request) -> Response:
        """Broker and catalog answer; 503 says which does not."""
        readiness = await _gateway(request).readiness()
        return _json(readiness, HTTPStatus.OK if readiness.ready else HTTPStatus.SERVICE_UNAVAILABLE)

    @app.get("/metrics", tags=["health"], responses={200: {"content": {"text/plain": {}}}}, response_class=Response)
    async def exposition() -> Response:
        """Metrics of all processes for Prometheus."""
        return Response(await asyncio.to_thread(metrics.exposition), media_type=_METRICS_TYPE)


def _add_datasets(app: FastAPI) -> None:
    @app.get("/datasets", tags=["datasets"], response_model=DatasetList, responses=_problems(400, 503))
    async def datasets(
        request: Request,
        after: Annotated[str | None, Query(max_length=600, description="`next` of the page before.")] = None,
        limit: Annotated[int, Query(ge=1, le=_MAX_PAGE)] = 200,
    ) -> Response:
        """A page of datasets in the order of their aliases."""
        start = None if after is None else DatasetAlias.parse(after)
        return _json(await asyncio.to_thread(_gateway(request).datasets, after=start, limit=limit))


def _add_events(app: FastAPI) -> None:
    @app.get("/events", tags=["events"], response_class=Response, responses=_EVENTS | _problems(400, 404, 429, 503))
    async def events(
        request: Request,
        dataset: Annotated[
            list[str] | None,
            Query(max_length=MAX_STREAMED_DATASETS, description="Alias or id; may be repeated. Default: all, live."),
        ] = None,
        begin: Annotated[
            str, Query(alias="from", max_length=30, description="head, genesis or the number of the first block.")
        ] = "head",
        last_event_id: Annotated[
            str | None, Query(alias="lastEventId", max_length=4_000, description="As the header Last-Event-ID.")
        ] = None,
    ) -> Response:
        """New blocks as server-sent events.

        Each event is a CloudEvent. Its id holds the sequence number of the newest block of each dataset, in their
        order: whoever comes back with it sees every later block once and in order.
        """
        gateway = _gateway(request)
        refs = [parse_ref(text) for text in dataset or ()]
        last_seen = request.headers.get("last-event-id") or last_event_id
        first = parse_from(begin)
        if not refs and (first is not None or last_seen):
            raise RequestError("blocks of the past are told dataset by dataset: say ?dataset=")
        if gateway.streams >= gateway.settings.max_subscribers:
            raise TooBusyError(f"{gateway.streams} streams are open already")
        # Counted before anything is waited for: others who ask meanwhile must see it.
        gateway.streams += 1
        try:
            entries = await asyncio.to_thread(_entries, gateway, refs)
            stream = gateway.stream()
            await stream.start(entries, first, parse_last_event_id(last_seen, len(refs)) if last_seen else None)
        except BaseException:
            gateway.streams -= 1
            raise
        return EventResponse(gateway, stream.texts())


def _entries(gateway: Gateway, refs: list[DatasetRef]) -> list[DatasetEntry]:
    entries = [gateway.repository.catalog.dataset(ref) for ref in refs]
    if len({entry.id for entry in entries}) < len(entries):
        raise RequestError("a dataset is named twice")
    return entries


def _add_ingest(app: FastAPI) -> None:
    @app.post(
        "/{dataset:path}/ingest",
        tags=["ingest"],
        status_code=HTTPStatus.ACCEPTED,
        response_model=Published,
        responses=_COMMITTED | _PROBLEMS,
        openapi_extra=_PAYLOAD,
    )
    async def ingest(
        request: Request,
        dataset: str,
        source_name: Annotated[
            str | None, Query(alias="sourceName", max_length=1_000, description="Default: the only push source.")
        ] = None,
        upload_token: Annotated[
            str | None, Query(alias="uploadToken", max_length=200, description="What `POST /uploads` answered.")
        ] = None,
        wait: Annotated[Literal["committed"] | None, Query(description="Answer when the blocks are there.")] = None,
        timeout: Annotated[float, Query(gt=0, le=MAX_WAIT_S, description="Seconds to wait for blocks.")] = 30.0,
    ) -> Response:
        """Publish records in the format that the Content-Type tells, usually the one that the source reads.

        202: they are safely in the source's topic, at `positions`. With `wait=committed`, 200: they are in `blocks`;
        202 with a `note` if that takes longer than `timeout`. With `duplicateOf` they were taken before, under the same
        event id. After 503 the payload may have been written nevertheless.
        """
        asked = IngestRequest(
            dataset=dataset,
            source_name=source_name,
            upload_token=upload_token,
            headers=request.headers,
            chunks=request.stream(),
            wait_s=timeout if wait else None,
        )
        published = await _gateway(request).ingest.publish(asked)
        is_committed = published.blocks is not None and published.note is None
        return _json(published, HTTPStatus.OK if is_committed else HTTPStatus.ACCEPTED)


def _add_uploads(app: FastAPI) -> None:
    @app.post(
        "/uploads",
        tags=["ingest"],
        status_code=HTTPStatus.CREATED,
        response_model=Uploaded,
        responses=_problems(400, 404, 408, 413, 429, 503),
        openapi_extra=_FILE,
    )
    async def uploads(
        request: Request, dataset: Annotated[str, Query(max_length=1_000, description="Alias or id.")]
    ) -> Response:
        """Keep a payload that is published by its `uploadToken` later, within a week."""
        asked = UploadRequest(dataset=dataset, headers=request.headers, chunks=request.stream())
        return _json(await _gateway(request).ingest.upload(asked), HTTPStatus.CREATED)


def _problems(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: _PROBLEMS[status] for status in statuses}


def _json(message: Message, status: HTTPStatus = HTTPStatus.OK) -> Response:
    headers = {"Retry-After": str(RETRY_AFTER_S)} if status in (429, 503) else {}
    return Response(message.to_json(), status_code=status, media_type="application/json", headers=headers)


async def _on_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, OdfError)
    status = status_of(error)
    if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        _log.warning("%s %s: %s", request.method, request.url.path, error)
    return _json(Problem(error=error.code, message=str(error)), status)


async def _on_invalid_request(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    place = " ".join(map(str, first["loc"]))
    return _json(Problem(error="Request", message=f"{place}: {first['msg']}"), HTTPStatus.BAD_REQUEST)


async def _on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _json(Problem(error="Http", message=str(error.detail)), HTTPStatus(error.status_code))


async def _on_bug(request: Request, error: Exception) -> Response:
    _log.error("%s %s failed", request.method, request.url.path, exc_info=error)
    problem = Problem(error="Internal", message="this is a mistake of the gateway; its log says more")
    return _json(problem, HTTPStatus.INTERNAL_SERVER_ERROR)
