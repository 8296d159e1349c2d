"""Operations of the HTTP API: a route together with what a document about the API says of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from starlette.requests import Request
from starlette.responses import Response

Endpoint = Callable[[Request], Awaitable[Response]]


@dataclass(frozen=True)
class Query:
    """A query parameter."""

    name: str
    summary: str
    kind: type = str
    is_list: bool = False

    OFFSET: ClassVar[Query]
    LIMIT: ClassVar[Query]
    DELETED: ClassVar[Query]
    FORMAT: ClassVar[Query]
    REFERENCE_FORMAT: ClassVar[Query]
    FIND_TAGS: ClassVar[Query]
    NORMALIZE: ClassVar[Query]
    VERBOSE: ClassVar[Query]
    DEFAULT_TO_GLOBAL: ClassVar[Query]


Query.OFFSET = Query("offset", "how many entries to leave out", int)
Query.LIMIT = Query("limit", "how many entries to answer; below 1: as many as there are", int)
Query.DELETED = Query("deleted", "also what was deleted softly", bool)
Query.FORMAT = Query("format", "resolved (Avro), serialized or ignore_extensions (Protobuf)")
Query.REFERENCE_FORMAT = Query("referenceFormat", "`qualified`: references with their contexts")
Query.FIND_TAGS = Query(
    "findTags", "tags whose records and fields are listed; `*`: all", is_list=True
)
Query.NORMALIZE = Query("normalize", "normalise the schema before it is compared", bool)
Query.VERBOSE = Query("verbose", "say why a schema is not compatible", bool)
Query.DEFAULT_TO_GLOBAL = Query(
    "defaultToGlobal", "the setting in force, not only the scope's own", bool
)


@dataclass(frozen=True)
class Operation:
    """A method and a path, and who answers it."""

    method: str
    path: str
    endpoint: Endpoint
    summary: str
    answers: Any  # the type of the body; None: text
    query: tuple[Query, ...] = ()
    body: Any = None
    errors: tuple[int, ...] = ()
    status: int = 200
    media_type: str = ""  # of the answer, if it is not the registry's own
