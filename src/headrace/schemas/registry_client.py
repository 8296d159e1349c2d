"""Client of a schema registry with Confluent's REST API: schemas by id, GUID and version, registration, look-up.

Blocking, and safe to share between threads. Owns the caches: what a registry never changes (the schema of an id) is
asked for once; the newest version of a subject, and an id that the registry does not know, after a while again. Leaves connections and retries to
`registry_transport`, and what schemas mean to codecs.
"""

from __future__ import annotations

import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, Final, Generic, NamedTuple, Protocol, Self, TypeVar
from urllib.parse import quote
from uuid import UUID

import msgspec

from headrace.errors import HeadraceError
from headrace.schemas.registry_transport import (
    Answer,
    RegistryTransport,
    RegistryUnreachable,
    TransportSettings,
)
from headrace.schemas.subject_names import context_of, in_context
from headrace.schemas.unknown_id_budget import UnknownIdBudget
from headrace.schemas.wire_format import SchemaReference

T = TypeVar("T")

AVRO: Final = "AVRO"
JSON_SCHEMA: Final = "JSON"
PROTOBUF: Final = "PROTOBUF"

SUBJECT_NOT_FOUND: Final = 40401
VERSION_NOT_FOUND: Final = 40402
SCHEMA_NOT_FOUND: Final = 40403

MISSING_TTL_S: Final = 1.0
_MAX_REFERENCES: Final = 1000
_MOST_MISSING: Final = 50_000  # ids and GUIDs that are remembered as unknown


class RegistryRefused(HeadraceError):
    """The registry answered with an error; `code` is its own number, such as 40403 for an unknown schema."""

    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(f"{message}; error code: {code}")
        self.status = status
        self.code = code
        self.message = message


class Reference(msgspec.Struct, frozen=True):
    """A schema that another one uses, under the name that it is used by."""

    name: str
    subject: str
    version: int


class Schema(msgspec.Struct, frozen=True):
    """The text of a schema, its language, and the schemas that it refers to."""

    text: str
    schema_type: str = AVRO
    references: tuple[Reference, ...] = ()


class RegisteredSchema(NamedTuple):
    """A schema as a registry knows it. Subject and version are None where it was asked for by id or GUID."""

    schema_id: int | None
    schema: Schema
    guid: UUID | None = None
    subject: str | None = None
    version: int | None = None


class _Missing(NamedTuple):
    """The answer to a question for a schema that the registry does not know, and when it was given."""

    since: float
    status: int
    message: str


class NamedSchema(NamedTuple):
    """A schema that another one refers to by this name."""

    name: str
    schema: Schema


class Transport(Protocol):
    """What the client needs of `RegistryTransport`."""

    def send(self, method: str, path: str, body: bytes | None = None) -> Answer:
        """The registry's answer. Raises RegistryUnreachable."""
        ...

    def close(self) -> None:
        """Close connections."""
        ...


class _Body(msgspec.Struct, rename="camel"):
    """Any answer that has a schema in it."""

    schema: str | None = None
    schema_type: str | None = None
    references: tuple[Reference, ...] | None = None
    id: int | None = None
    guid: str | None = None
    subject: str | None = None
    version: int | None = None


class _ErrorBody(msgspec.Struct):
    error_code: int | None = None
    message: str | None = None


class SchemaRegistryClient:
    """Every call raises RegistryRefused where the registry answers with an error, RegistryUnreachable where it does not."""

    def __init__(
        self,
        transport: Transport,
        *,
        cache_capacity: int = 1000,
        latest_ttl_s: float = 5.0,
        missing_ttl_s: float = MISSING_TTL_S,
        max_wait_s: float = math.inf,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`missing_ttl_s`: how long an id that the registry does not know is not asked for again; `max_wait_s`: how long
        a question may wait after many ids that the registry did not know.
        """
        self._transport = transport
        self._by_reference: _Cache[RegisteredSchema] = _Cache(cache_capacity)
        self._versions: _Cache[RegisteredSchema] = _Cache(cache_capacity)
        self._registered: _Cache[RegisteredSchema] = _Cache(cache_capacity)
        self._latest: _Cache[tuple[float, RegisteredSchema]] = _Cache(cache_capacity)
        self._latest_ttl_s = latest_ttl_s
        self._missing: _Cache[_Missing] = _Cache(_MOST_MISSING)
        self._missing_ttl_s = missing_ttl_s
        self._unknown_ids = UnknownIdBudget()
        self._unknown_ids_lock = threading.Lock()
        self._max_wait_s = max_wait_s
        self._clock = clock
        self._sleep = sleep

    @classmethod
    def connect(
        cls,
        settings: TransportSettings,
        *,
        latest_ttl_s: float = 5.0,
        missing_ttl_s: float = MISSING_TTL_S,
        max_wait_s: float = math.inf,
    ) -> SchemaRegistryClient:
        """A client of the registry at these URLs; the first request connects. Raises SettingError."""
        return cls(
            RegistryTransport(settings),
            latest_ttl_s=latest_ttl_s,
            missing_ttl_s=missing_ttl_s,
            max_wait_s=max_wait_s,
        )

    def close(self) -> None:
        """Close connections."""
        self._transport.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- reading

    def known(
        self, reference: SchemaReference, *, subject: str | None = None
    ) -> RegisteredSchema | None:
        """The schema of an id or GUID if it is in the cache; never asks the registry."""
        return self._by_reference.get((reference, subject))

    def schema(self, reference: SchemaReference, *, subject: str | None = None) -> RegisteredSchema:
        """The schema of an id or GUID. `subject` names the context in which an id counts."""
        key = (reference, subject)
        found = self._by_reference.get(key)
        if found is None:
            body = self._ask_for_schema(reference, subject)
            found = _registered(body, schema_id=reference if isinstance(reference, int) else None)
            if isinstance(reference, UUID):
                found = found._replace(guid=reference)
            self._by_reference.put(key, found._replace(subject=None, version=None))
        return found

    def _ask_for_schema(self, reference: SchemaReference, subject: str | None) -> _Body:
        key = (reference, subject)
        missing = self._missing.get(key)
        if missing is not None and self._clock() - missing.since < self._missing_ttl_s:
            raise RegistryRefused(missing.status, SCHEMA_NOT_FOUND, missing.message)
        kind = "guids" if isinstance(reference, UUID) else "ids"
        query = "" if subject is None else f"?subject={_quoted(subject)}"
        self._wait_after_unknown_ids()
        try:
            return self._ask("GET", f"/schemas/{kind}/{reference}{query}")
        except RegistryRefused as refused:
            if refused.code == SCHEMA_NOT_FOUND:
                now_s = self._clock()
                self._missing.put(key, _Missing(now_s, refused.status, refused.message))
                with self._unknown_ids_lock:
                    self._unknown_ids.spend(now_s)
            raise

    def _wait_after_unknown_ids(self) -> None:
        with self._unknown_ids_lock:
            wait_s = self._unknown_ids.wait_s(self._clock())
        if wait_s > self._max_wait_s:
            raise RegistryUnreachable(
                f"the schema registry is not asked for {wait_s:.2f} s, because records named too many schema ids that it "
                "does not know"
            )
        if wait_s > 0:
            self._sleep(wait_s)

    def version(self, subject: str, version: int, *, deleted: bool = False) -> RegisteredSchema:
        """One version of a subject; with `deleted`, also one that has been deleted softly."""
        key = (subject, version, deleted)
        found = self._versions.get(key)
        if found is None:
            path = f"/subjects/{_quoted(subject)}/versions/{version}?deleted={_flag(deleted)}"
            found = _registered(self._ask("GET", path))
            self._versions.put(key, found)
        return found

    def latest(self, subject: str) -> RegisteredSchema:
        """The newest version of a subject, as of a few seconds ago."""
        cached = self._latest.get(subject)
        if cached is not None and self._clock() - cached[0] < self._latest_ttl_s:
            return cached[1]
        body = self._ask("GET", f"/subjects/{_quoted(subject)}/versions/latest")
        found = _registered(body)
        self._latest.put(subject, (self._clock(), found))
        return found

    def subjects(self, schema_id: int) -> tuple[str, ...]:
        """The subjects that have the schema of an id."""
        answer = self._transport.send("GET", f"/schemas/ids/{schema_id}/subjects")
        if answer.status >= 300:
            raise _refused(answer)
        return _decoded(answer, tuple[str, ...], f"the subjects of schema {schema_id}")

    def look_up(self, subject: str, schema: Schema, *, normalize: bool = False) -> RegisteredSchema:
        """The version of a subject that has this schema."""
        key = ("look up", subject, schema, normalize)
        found = self._registered.get(key)
        if found is None:
            path = f"/subjects/{_quoted(subject)}?normalize={_flag(normalize)}"
            found = _registered(self._ask("POST", path, schema), schema=schema)
            self._registered.put(key, found)
        return found

    def dependencies(self, schema: Schema, *, context: str = "") -> tuple[NamedSchema, ...]:
        """The schemas that a schema refers to, directly or not; each one behind those that it needs itself.

        A reference whose subject names no context means a subject of the context in which the schema itself is.
        """
        found: dict[str, Schema] = {}
        self._collect(schema, context, found, frozenset())
        return tuple(NamedSchema(name, each) for name, each in found.items())

    def _collect(
        self, schema: Schema, context: str, found: dict[str, Schema], open_names: frozenset[str]
    ) -> None:
        for reference in schema.references:
            if reference.name in found or reference.name in open_names:
                continue
            if len(found) + len(open_names) >= _MAX_REFERENCES:
                raise RegistryRefused(422, 42201, f"more than {_MAX_REFERENCES} references")
            subject = in_context(context, reference.subject)
            referenced = self.version(subject, reference.version, deleted=True).schema
            self._collect(referenced, context_of(subject), found, open_names | {reference.name})
            found[reference.name] = referenced

    # ---- writing

    def register(
        self, subject: str, schema: Schema, *, normalize: bool = False
    ) -> RegisteredSchema:
        """Register a schema under a subject; the same schema gets the same id again. Version and GUID may be None."""
        key = ("register", subject, schema, normalize)
        found = self._registered.get(key)
        if found is None:
            path = f"/subjects/{_quoted(subject)}/versions?normalize={_flag(normalize)}"
            body = self._ask("POST", path, schema)
            found = _registered(body, schema=schema)._replace(subject=subject)
            self._registered.put(key, found)
            self._latest.discard(subject)
        return found

    # ---- exchange

    def _ask(self, method: str, path: str, schema: Schema | None = None) -> _Body:
        answer = self._transport.send(method, path, None if schema is None else _encoded(schema))
        if answer.status >= 300:
            raise _refused(answer)
        return _decoded(answer, _Body, f"{method} {path}")


def _decoded(answer: Answer, wanted: type[T], what: str) -> T:
    try:
        return msgspec.json.decode(answer.body, type=wanted)
    except msgspec.MsgspecError as wrong:
        raise RegistryUnreachable(
            f"{what} was answered by something that is no schema registry: {wrong}"
        ) from wrong


def _refused(answer: Answer) -> RegistryRefused:
    try:
        body = msgspec.json.decode(answer.body, type=_ErrorBody)
    except msgspec.MsgspecError:
        body = _ErrorBody()
    return RegistryRefused(
        answer.status,
        answer.status if body.error_code is None else body.error_code,
        body.message or f"HTTP {answer.status}",
    )


def _registered(
    body: _Body, *, schema_id: int | None = None, schema: Schema | None = None
) -> RegisteredSchema:
    if schema is None:
        if body.schema is None:
            raise RegistryUnreachable("an answer of the schema registry has no schema in it")
        schema = Schema(body.schema, body.schema_type or AVRO, body.references or ())
    if schema_id is None:
        schema_id = body.id
    try:
        guid = None if body.guid is None else UUID(body.guid)
    except ValueError:
        guid = None
    return RegisteredSchema(schema_id, schema, guid, body.subject, body.version)


def _encoded(schema: Schema) -> bytes:
    body: dict[str, Any] = {"schema": schema.text}
    if schema.schema_type != AVRO:
        body["schemaType"] = schema.schema_type
    if schema.references:
        body["references"] = schema.references
    return msgspec.json.encode(body)


def _quoted(text: str) -> str:
    return quote(text, safe="")


def _flag(value: bool) -> str:  # noqa: FBT001 - a value, not an option
    return "true" if value else "false"


class _Cache(Generic[T]):
    """The entries used last, for many threads."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._entries: OrderedDict[Hashable, T] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable) -> T | None:
        with self._lock:
            found = self._entries.get(key)
            if found is not None:
                self._entries.move_to_end(key)
            return found

    def put(self, key: Hashable, value: T) -> None:
        with self._lock:
            self._entries[key] = value
            self._entries.move_to_end(key)
            while len(self._entries) > self._capacity:
                self._entries.popitem(last=False)

    def discard(self, key: Hashable) -> None:
        with self._lock:
            self._entries.pop(key, None)
