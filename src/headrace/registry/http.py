"""Confluent's REST API of a schema registry over one `Instance`. A rim module: requests in, answers out, no rules."""

from __future__ import annotations

import asyncio
import http.client
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Final, TypeVar

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from headrace.registry import errors
from headrace.registry.decisions import SCHEMA_TYPES, Wanted, Write
from headrace.registry.formats.schema_format import MAX_SCHEMA_BYTES
from headrace.registry.instance import Instance
from headrace.registry.names import DEFAULT_CONTEXT, WILDCARD, SubjectName, normal, parse_subject
from headrace.registry.records import ConfigValue, guid_of
from headrace.registry.subjects import Schema, Version
from headrace.services.http_service import Watched
from headrace.services.request_metrics import RequestMetrics

T = TypeVar("T")
Json = Any

MEDIA_TYPE: Final = "application/vnd.schemaregistry.v1+json"
_MEDIA_TYPES: Final = (MEDIA_TYPE, "application/vnd.schemaregistry+json", "application/json")
_FORWARDED: Final = "x-forward"
_POSITION: Final = "x-headrace-position"  # how much of the topic the answering instance knew
_MAX_BODY_BYTES: Final = 4 * MAX_SCHEMA_BYTES
_FORWARD_S: Final = 60.0
_MAX_ID: Final = 2**31 - 1

_encode = msgspec.json.Encoder().encode


class _ConfigChange(msgspec.Struct, kw_only=True, rename="camel"):
    """A PUT of settings; what it does not name stays as it is."""

    compatibility: str | None | msgspec.UnsetType = msgspec.UNSET
    compatibility_level: str | None | msgspec.UnsetType = msgspec.UNSET
    alias: str | None | msgspec.UnsetType = msgspec.UNSET
    normalize: bool | None | msgspec.UnsetType = msgspec.UNSET
    validate_fields: bool | None | msgspec.UnsetType = msgspec.UNSET
    validate_rules: bool | None | msgspec.UnsetType = msgspec.UNSET
    compatibility_policy: str | None | msgspec.UnsetType = msgspec.UNSET
    compatibility_group: str | None | msgspec.UnsetType = msgspec.UNSET
    default_metadata: dict[str, Any] | None | msgspec.UnsetType = msgspec.UNSET
    override_metadata: dict[str, Any] | None | msgspec.UnsetType = msgspec.UNSET
    default_rule_set: dict[str, Any] | None | msgspec.UnsetType = msgspec.UNSET
    override_rule_set: dict[str, Any] | None | msgspec.UnsetType = msgspec.UNSET


class _ModeChange(msgspec.Struct):
    mode: str


def _answer(body: Json, *, status: int = 200, media_type: str = MEDIA_TYPE) -> Response:
    return Response(_encode(body), status_code=status, media_type=media_type)


def _error(status: int, code: int, message: str) -> Response:
    return _answer({"error_code": code, "message": message}, status=status)


class RegistryHttp:
    """The routes."""

    def __init__(self, instance: Instance, *, cluster_id: str) -> None:
        self._instance = instance
        self._registry = instance.registry
        self._subjects = instance.registry.subjects
        self._cluster_id = cluster_id
        self.metrics = RequestMetrics("kafka_schema_registry")

    def application(self) -> Starlette:
        """The ASGI application."""
        subject = "/subjects/{subject:path}"
        versions = f"{subject}/versions"
        version = versions + "/{version}"
        routes: list[tuple[str, str, Callable[[Request], Awaitable[Response]]]] = [
            ("GET", "/", self._root),
            ("POST", "/", self._root),
            ("GET", "/schemas", self._list_schemas),
            ("GET", "/schemas/types", self._types),
            ("GET", "/schemas/types/", self._types),
            ("GET", "/schemas/ids/{id}", self._by_id),
            ("GET", "/schemas/ids/{id}/schema", self._text_by_id),
            ("GET", "/schemas/ids/{id}/subjects", self._subjects_by_id),
            ("GET", "/schemas/ids/{id}/versions", self._versions_by_id),
            ("GET", "/schemas/guids/{guid}", self._by_guid),
            ("GET", "/schemas/guids/{guid}/ids", self._ids_by_guid),
            ("GET", "/subjects", self._list_subjects),
            ("GET", f"{subject}/metadata", self._by_metadata),
            ("GET", f"{version}/schema", self._version_text),
            ("GET", f"{version}/referencedby", self._referenced_by),
            ("GET", version, self._version),
            ("DELETE", version, self._delete_version),
            ("GET", versions, self._list_versions),
            ("POST", versions, self._register),
            ("POST", subject, self._look_up),
            ("DELETE", subject, self._delete_subject),
            ("POST", f"/compatibility{version}", self._compatible_with_version),
            ("POST", f"/compatibility{versions}", self._compatible),
            ("GET", "/config", self._config),
            ("PUT", "/config", self._set_config),
            ("DELETE", "/config", self._delete_config),
            ("GET", "/config/{subject:path}", self._config),
            ("PUT", "/config/{subject:path}", self._set_config),
            ("DELETE", "/config/{subject:path}", self._delete_config),
            ("GET", "/mode", self._mode),
            ("PUT", "/mode", self._set_mode),
            ("GET", "/mode/{subject:path}", self._mode),
            ("PUT", "/mode/{subject:path}", self._set_mode),
            ("DELETE", "/mode/{subject:path}", self._delete_mode),
            ("GET", "/contexts", self._contexts),
            ("DELETE", "/contexts/{context:path}", self._delete_context),
            ("GET", "/v1/metadata/id", self._cluster),
            ("GET", "/v1/metadata/version", self._version_of_program),
            ("GET", "/healthz", self._health),
            ("GET", "/metrics", self._metrics_page),
        ]
        return Starlette(
            routes=[Route(path, endpoint, methods=[method]) for method, path, endpoint in routes],
            middleware=[Middleware(Watched, metrics=self.metrics)],
            exception_handlers={
                errors.RegistryError: _refused,  # type: ignore[dict-item]
                HTTPException: _http_error,  # type: ignore[dict-item]
                msgspec.MsgspecError: _bad_body,  # type: ignore[dict-item]
                ClientDisconnect: _gone,  # type: ignore[dict-item]
                Exception: _failed,
            },
        )

    # ---- the program itself

    async def _root(self, _: Request) -> Response:
        return _answer({})

    async def _cluster(self, _: Request) -> Response:
        clusters = {"kafka-cluster": self._cluster_id, "schema-registry-cluster": "schema-registry"}
        return _answer({"scope": {"path": [], "clusters": clusters}, "id": ""})

    async def _version_of_program(self, _: Request) -> Response:
        from headrace import __version__

        return _answer({"version": __version__, "commitId": ""})

    async def _health(self, _: Request) -> Response:
        failure = self._instance.failure
        primary = self._instance.primary
        body = {
            "status": "ok" if failure is None else "failing",
            "primary": None if primary is None else primary.url,
        }
        if failure is not None:
            body["reason"] = failure
        return _answer(body, status=200 if failure is None else 503, media_type="application/json")

    async def _metrics_page(self, _: Request) -> Response:
        role = 1 if self._instance.is_primary else 0
        lines = [
            "# TYPE kafka_schema_registry_master_slave_role gauge",
            f"kafka_schema_registry_master_slave_role {role}",
            "# TYPE kafka_schema_registry_registered_count gauge",
            f"kafka_schema_registry_registered_count {self._subjects.version_count}",
            *self.metrics.lines(),
        ]
        return Response("\n".join(lines) + "\n", media_type="text/plain; version=0.0.4")

    # ---- schemas

    async def _types(self, _: Request) -> Response:
        return _answer(list(SCHEMA_TYPES))

    async def _list_schemas(self, request: Request) -> Response:
        prefix = request.query_params.get("subjectPrefix", WILDCARD)
        deleted = _flag(request, "deleted")
        latest_only = _flag(request, "latestOnly")
        found = []
        for name in self._matching(prefix):
            versions = self._subjects.versions(name, deleted=deleted)
            numbers = list(versions)[-1:] if latest_only else list(versions)
            found += [(name, number, versions[number]) for number in numbers]
        return _answer([self._described(*each) for each in _page(request, found)])

    async def _by_id(self, request: Request) -> Response:
        context, schema_id, schema = self._schema_by_id(request)
        body = _schema_body(await self._formatted(request, schema, context), schema)
        if _flag(request, "fetchMaxId"):
            body["maxId"] = self._subjects.highest_id(context)
        body["guid"] = guid_of(schema.digest)
        return _answer(body)

    async def _text_by_id(self, request: Request) -> Response:
        context, _, schema = self._schema_by_id(request)
        return Response(await self._formatted(request, schema, context), media_type=MEDIA_TYPE)

    async def _subjects_by_id(self, request: Request) -> Response:
        uses = self._uses(request)
        return _answer(_page(request, list(dict.fromkeys(subject for subject, _ in uses))))

    async def _versions_by_id(self, request: Request) -> Response:
        uses = [{"subject": subject, "version": number} for subject, number in self._uses(request)]
        return _answer(_page(request, uses))

    async def _by_guid(self, request: Request) -> Response:
        places = self._subjects.ids_by_digest(_digest(request))
        if not places:
            raise errors.schema_not_found(request.path_params["guid"])
        context, schema_id = places[0]
        schema = self._subjects.schema(context, schema_id)
        assert schema is not None
        body = _schema_body(await self._formatted(request, schema, context), schema)
        return _answer(body | {"guid": request.path_params["guid"]})

    async def _ids_by_guid(self, request: Request) -> Response:
        places = self._subjects.ids_by_digest(_digest(request))
        if not places:
            raise errors.schema_not_found(request.path_params["guid"])
        return _answer([{"context": context, "id": schema_id} for context, schema_id in places])

    def _schema_by_id(self, request: Request) -> tuple[str, int, Schema]:
        text = request.path_params["id"]
        subject = request.query_params.get("subject", "")
        context = parse_subject(subject).context
        try:
            schema_id = int(text)
        except ValueError:
            raise HTTPException(404, "HTTP 404 Not Found") from None
        schema = self._subjects.schema(context, schema_id)
        if schema is None and subject and context == DEFAULT_CONTEXT:
            for other in self._subjects.contexts():
                if any(
                    name == normal(f":{other}:{subject}")
                    for name, _ in self._subjects.uses(other, schema_id)
                ):
                    return other, schema_id, self._subjects.schema(other, schema_id)  # type: ignore[return-value]
        if schema is None:
            raise errors.schema_not_found(schema_id)
        return context, schema_id, schema

    def _uses(self, request: Request) -> list[tuple[str, int]]:
        context, schema_id, _ = self._schema_by_id(request)
        deleted = _flag(request, "deleted")
        return [
            (subject, number)
            for subject, number in self._subjects.uses(context, schema_id)
            if deleted or number in self._subjects.versions(subject)
        ]

    async def _formatted(self, request: Request, schema: Schema, context: str) -> str:
        """The text in the form that the query asks for."""
        wanted = request.query_params.get("format", "")
        if wanted in ("", "default", "ignore_extensions"):
            return schema.text
        given = Wanted(
            schema=schema.text, schema_type=schema.schema_type, references=schema.references
        )
        question = self._registry.question(SubjectName(context, ""), given)
        judgement = await self._instance.judge(question)
        if wanted == "serialized" and judgement.serialized:
            return judgement.serialized
        return schema.text

    # ---- subjects

    def _matching(self, prefix: str) -> list[str]:
        """The subjects that a prefix names; `:*:` stands for every context."""
        names = list(self._subjects.subjects())
        if prefix.startswith(WILDCARD):
            rest = prefix.removeprefix(WILDCARD)
            return [str(each) for each in names if each.name.startswith(rest)]
        wanted = parse_subject(prefix)
        return [
            str(each)
            for each in names
            if each.context == wanted.context and each.name.startswith(wanted.name)
        ]

    async def _list_subjects(self, request: Request) -> Response:
        prefix = request.query_params.get("subjectPrefix", WILDCARD)
        only = _flag(request, "deletedOnly")
        deleted = _flag(request, "deleted") or only
        found = [
            name
            for name in self._matching(prefix)
            if self._subjects.versions(name, deleted=deleted)
            and not (only and self._subjects.versions(name))
        ]
        return _answer(_page(request, found))

    async def _list_versions(self, request: Request) -> Response:
        name = normal(request.path_params["subject"])
        only, negative = _flag(request, "deletedOnly"), _flag(request, "deletedAsNegative")
        deleted = _flag(request, "deleted") or only or negative
        versions = self._subjects.versions(name, deleted=deleted)
        if not versions:
            raise errors.subject_not_found(name)
        numbers = [
            -number if negative and version.is_deleted else number
            for number, version in versions.items()
            if not only or version.is_deleted
        ]
        return _answer(_page(request, numbers))

    async def _version(self, request: Request) -> Response:
        name, number, version = self._wanted_version(request)
        body = self._described(name, number, version)
        schema = self._subjects.schema_of(name, version)
        body["schema"] = await self._formatted(request, schema, parse_subject(name).context)
        return _answer(body)

    async def _version_text(self, request: Request) -> Response:
        name, _, version = self._wanted_version(request)
        schema = self._subjects.schema_of(name, version)
        text = await self._formatted(request, schema, parse_subject(name).context)
        return Response(text, media_type=MEDIA_TYPE)

    async def _referenced_by(self, request: Request) -> Response:
        name, number, _ = self._wanted_version(request)
        return _answer(_page(request, self._subjects.referrers(name, number)))

    async def _by_metadata(self, request: Request) -> Response:
        name = normal(request.path_params["subject"])
        keys = request.query_params.getlist("key")
        values = request.query_params.getlist("value")
        wanted = dict(zip(keys, values, strict=False))
        versions = self._subjects.versions(name, deleted=_flag(request, "deleted"))
        if not versions:
            raise errors.subject_not_found(name)
        for number, version in reversed(list(versions.items())):
            metadata = self._subjects.schema_of(name, version).metadata or {}
            if wanted.items() <= (metadata.get("properties") or {}).items():
                return _answer(self._described(name, number, version))
        raise errors.schema_not_found()

    def _wanted_version(self, request: Request) -> tuple[str, int, Version]:
        name = normal(request.path_params["subject"])
        deleted = _flag(request, "deleted")
        return name, *self._registry.version(name, request.path_params["version"], deleted=deleted)

    def _described(self, name: str, number: int, version: Version) -> dict[str, Json]:
        schema = self._subjects.schema_of(name, version)
        body: dict[str, Json] = {"subject": name, "version": number, "id": version.schema_id}
        body["guid"] = guid_of(schema.digest)
        if version.is_deleted:
            body["deleted"] = True
        return body | _schema_body(schema.text, schema)

    async def _look_up(self, request: Request) -> Response:
        subject = parse_subject(request.path_params["subject"])
        wanted = await _body(request, Wanted)
        normalize = _flag(request, "normalize")
        deleted = _flag(request, "deleted")
        name = str(subject)
        if not self._subjects.versions(name, deleted=deleted):
            raise errors.subject_not_found(name)
        judgement = await self._instance.judge(self._registry.question(subject, wanted))
        number, version = self._registry.lookup(
            subject, wanted, judgement, normalize=normalize, deleted=deleted
        )
        return _answer(self._described(name, number, version))

    async def _register(self, request: Request) -> Response:
        subject = parse_subject(request.path_params["subject"])
        if not subject.name or subject.context == "*" or subject.name in ("__GLOBAL", "__EMPTY"):
            raise errors.invalid_subject(request.path_params["subject"])
        wanted = await _body(request, Wanted)
        normalize = _flag(request, "normalize")

        async def write() -> Json:
            schema_id, number = await self._instance.register(subject, wanted, normalize=normalize)
            version = self._subjects.versions(str(subject), deleted=True)[number]
            schema = self._subjects.schema_of(str(subject), version)
            body = {"id": schema_id, "version": number, "guid": guid_of(schema.digest)}
            return body | _schema_body(schema.text, schema)

        return await self._written(request, write)

    async def _delete_version(self, request: Request) -> Response:
        subject = parse_subject(request.path_params["subject"])
        number, permanent = request.path_params["version"], _flag(request, "permanent")
        return await self._decided(
            request, lambda: self._registry.delete_version(subject, number, permanent=permanent)
        )

    async def _delete_subject(self, request: Request) -> Response:
        subject = parse_subject(request.path_params["subject"])
        permanent = _flag(request, "permanent")
        return await self._decided(
            request, lambda: self._registry.delete_subject(subject, permanent=permanent)
        )

    # ---- compatibility

    async def _compatible(self, request: Request) -> Response:
        return await self._compare(request, None)

    async def _compatible_with_version(self, request: Request) -> Response:
        name = normal(request.path_params["subject"])
        text = request.path_params["version"]
        try:
            number, _ = self._registry.version(name, text)
        except errors.RegistryError:
            if text in ("latest", "-1"):
                return await self._compare(request, [])
            raise
        return await self._compare(request, [number])

    async def _compare(self, request: Request, against: list[int] | None) -> Response:
        subject = parse_subject(request.path_params["subject"])
        wanted = await _body(request, Wanted)
        question = self._registry.compatibility_question(subject, wanted, against=against)
        judgement = await self._instance.judge(question)
        if judgement.error is not None:
            raise errors.invalid_schema(judgement.error)
        body: dict[str, Json] = {"is_compatible": not judgement.incompatibilities}
        if _flag(request, "verbose"):
            body["messages"] = list(judgement.incompatibilities)
        return _answer(body)

    # ---- configs and modes

    async def _config(self, request: Request) -> Response:
        scope = _scope(request)
        if scope is None or _flag(request, "defaultToGlobal"):
            return _answer(_config_body(self._registry.effective_config(scope)))
        config = self._subjects.config(scope)
        if config is None:
            raise errors.no_subject_config(scope)
        return _answer(_config_body(config))

    async def _set_config(self, request: Request) -> Response:
        scope = _scope(request)
        change = await _body(request, _ConfigChange)
        named = {
            name: value
            for name, value in msgspec.structs.asdict(change).items()
            if value is not msgspec.UNSET
        }
        level = named.pop("compatibility", None) or named.pop("compatibility_level", None)
        echo: dict[str, Json] = {}
        if level is not None:
            if not isinstance(level, str):
                raise errors.invalid_level()
            named["compatibility_level"] = level.upper()
            echo["compatibility"] = level.upper()
        if not named:
            raise errors.invalid_level()
        echo |= {
            _camel(name): value for name, value in named.items() if name != "compatibility_level"
        }

        def decide() -> Write[Json]:
            decision = self._registry.set_config(scope, named)
            return Write(echo, decision.entries)

        return await self._decided(request, decide)

    async def _delete_config(self, request: Request) -> Response:
        scope = _scope(request)

        def decide() -> Write[Json]:
            decision = self._registry.delete_config(scope)
            return Write(_config_body(decision.answer), decision.entries)

        return await self._decided(request, decide)

    async def _mode(self, request: Request) -> Response:
        scope = _scope(request)
        if scope is None or _flag(request, "defaultToGlobal"):
            return _answer({"mode": self._registry.effective_mode(scope)})
        mode = self._subjects.mode(scope)
        if mode is None:
            raise errors.no_subject_mode(scope)
        return _answer({"mode": mode})

    async def _set_mode(self, request: Request) -> Response:
        scope, force = _scope(request), _flag(request, "force")
        change = await _body(request, _ModeChange)

        def decide() -> Write[Json]:
            decision = self._registry.set_mode(scope, change.mode.upper(), force=force)
            return Write({"mode": decision.answer}, decision.entries)

        return await self._decided(request, decide)

    async def _delete_mode(self, request: Request) -> Response:
        scope = _scope(request)
        assert scope is not None

        def decide() -> Write[Json]:
            decision = self._registry.delete_mode(scope)
            return Write({"mode": decision.answer}, decision.entries)

        return await self._decided(request, decide)

    async def _contexts(self, request: Request) -> Response:
        prefix = request.query_params.get("contextPrefix", "")
        found = [each for each in self._subjects.contexts() if each.startswith(prefix)]
        return _answer(_page(request, found))

    async def _delete_context(self, request: Request) -> Response:
        context = request.path_params["context"].strip(":") or DEFAULT_CONTEXT
        answer = await self._decided(request, lambda: self._registry.delete_context(context))
        return Response(status_code=204) if answer.status_code == 200 else answer

    # ---- writing

    async def _decided(self, request: Request, decide: Callable[[], Write[Any]]) -> Response:
        async def write() -> Json:
            return await self._instance.write(decide)

        return await self._written(request, write)

    async def _written(self, request: Request, write: Callable[[], Awaitable[Json]]) -> Response:
        """Write here if this is the primary, else have the primary do it."""
        if self._instance.is_primary:
            answer = _answer(await write())
            answer.headers[_POSITION] = str(self._instance.position)
            return answer
        primary = self._instance.primary
        if primary is None or request.headers.get(_FORWARDED) is not None:
            raise errors.unknown_primary()
        target = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        raw_path = request.scope.get("raw_path")
        if isinstance(raw_path, bytes):
            target = raw_path.decode("ascii", "replace") + (
                f"?{request.url.query}" if request.url.query else ""
            )
        status, body, position = await asyncio.to_thread(
            _forward, primary.host, primary.port, request.method, target, await request.body()
        )
        if position is not None:
            await self._instance.reached(int(position))
        return Response(body, status_code=status, media_type=MEDIA_TYPE)


def _forward(
    host: str, port: int, method: str, target: str, body: bytes
) -> tuple[int, bytes, str | None]:
    connection = http.client.HTTPConnection(host, port, timeout=_FORWARD_S)
    try:
        headers = {"Content-Type": MEDIA_TYPE, "Accept": MEDIA_TYPE, _FORWARDED: "false"}
        connection.request(method, target, body, headers)
        answer = connection.getresponse()
        return answer.status, answer.read(), answer.headers.get(_POSITION)
    except (OSError, http.client.HTTPException) as trouble:
        raise errors.forwarding_failed(str(trouble)) from trouble
    finally:
        connection.close()


# ---- requests


def _scope(request: Request) -> str | None:
    """The subject or context whose settings are meant; None: those of all."""
    subject = request.path_params.get("subject")
    if subject is None or subject in ("__GLOBAL", ":.__GLOBAL:"):
        return None
    name = parse_subject(subject)
    return str(name) if name.name else f":{name.context}:"


def _flag(request: Request, name: str) -> bool:
    return request.query_params.get(name, "false").lower() == "true"


def _page(request: Request, items: Iterable[T]) -> list[T]:
    """The part of a listing that `offset` and `limit` ask for."""
    found = list(items)
    try:
        offset = int(request.query_params.get("offset", "0"))
        limit = int(request.query_params.get("limit", "-1"))
    except ValueError:
        raise HTTPException(404, "HTTP 404 Not Found") from None
    start = max(offset, 0)
    return found[start:] if limit < 0 else found[start : start + limit]


def _digest(request: Request) -> bytes:
    import uuid

    try:
        return uuid.UUID(request.path_params["guid"]).bytes
    except ValueError:
        raise errors.schema_not_found(request.path_params["guid"]) from None


async def _body(request: Request, kind: type[T]) -> T:
    pieces, size = [], 0
    async for piece in request.stream():
        size += len(piece)
        if size > _MAX_BODY_BYTES:
            raise errors.schema_too_large(MAX_SCHEMA_BYTES)
        pieces.append(piece)
    request._body = b"".join(pieces)  # noqa: SLF001 - what `request.body()` gives whoever forwards it
    return msgspec.json.decode(request._body or b"{}", type=kind)  # noqa: SLF001


def _schema_body(text: str, schema: Schema) -> dict[str, Json]:
    """A schema as it is answered: what is empty is left out, and so is the type AVRO."""
    body: dict[str, Json] = {}
    if schema.schema_type != "AVRO":
        body["schemaType"] = schema.schema_type
    if schema.references:
        body["references"] = schema.references
    if schema.metadata is not None:
        body["metadata"] = schema.metadata
    if schema.rule_set is not None:
        body["ruleSet"] = schema.rule_set
    return body | {"schema": text}


def _config_body(config: ConfigValue) -> Mapping[str, Json]:
    return {
        _camel(name): value
        for name, value in msgspec.structs.asdict(config).items()
        if value is not None
    }


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


# ---- refusals


async def _refused(_: Request, refusal: errors.RegistryError) -> Response:
    return _error(refusal.status, refusal.code, refusal.message)


async def _http_error(_: Request, error: HTTPException) -> Response:
    return _error(error.status_code, error.status_code, f"HTTP {error.status_code} {error.detail}")


async def _bad_body(_: Request, wrong: msgspec.MsgspecError) -> Response:
    if isinstance(wrong, msgspec.ValidationError):
        return _error(422, 422, str(wrong))
    return _error(400, 400, f"the body is not JSON: {wrong}")


async def _gone(_: Request, __: ClientDisconnect) -> Response:
    return Response(status_code=499)


async def _failed(_: Request, bug: Exception) -> Response:
    return _error(500, 50001, f"Error in the backend data store - {type(bug).__name__}")
