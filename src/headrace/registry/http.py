"""Confluent's REST API of a schema registry over one `Instance`. A rim module: requests in, answers out, no rules."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from headrace.registry import errors
from headrace.registry.decisions import SCHEMA_TYPES, Wanted, Write
from headrace.registry.forwarding import Forwarding
from headrace.registry.http_answers import (
    EXCEPTION_HANDLERS,
    MEDIA_TYPE,
    Negotiation,
    answer,
    camel,
    config_body,
    schema_body,
    version_body,
)
from headrace.registry.http_requests import (
    ConfigChange,
    ModeChange,
    TagsChange,
    decoded_body,
    digest_in,
    flag,
    page,
    scope_of,
    tagged,
)
from headrace.registry.instance import Instance
from headrace.registry.names import DEFAULT_CONTEXT, WILDCARD, SubjectName, normal, parse_subject
from headrace.registry.records import guid_of
from headrace.registry.subjects import Schema, Version
from headrace.services.http_service import Watched
from headrace.services.request_metrics import RequestMetrics

Json = Any

_FORWARDED: Final = "x-forward"
_POSITION: Final = "x-headrace-position"  # how much of the topic the answering instance knew


class RegistryHttp:
    """The routes."""

    def __init__(self, instance: Instance, *, cluster_id: str) -> None:
        self._instance = instance
        self._registry = instance.registry
        self._subjects = instance.registry.subjects
        self._cluster_id = cluster_id
        self._forwarding = Forwarding()
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
            ("POST", f"{version}/tags", self._tag),
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
            ("DELETE", "/mode", self._delete_mode),
            ("GET", "/mode/{subject:path}", self._mode),
            ("PUT", "/mode/{subject:path}", self._set_mode),
            ("DELETE", "/mode/{subject:path}", self._delete_mode),
            ("GET", "/contexts", self._contexts),
            ("DELETE", "/contexts/{context:path}", self._delete_context),
            ("GET", "/v1/metadata/id", self._cluster),
            ("GET", "/v1/metadata/version", self._version_of_program),
            ("GET", "/v1/metadata/deployment", self._deployment),
            ("GET", "/healthz", self._health),
            ("GET", "/metrics", self._metrics_page),
        ]
        return Starlette(
            routes=[Route(path, endpoint, methods=[method]) for method, path, endpoint in routes],
            middleware=[Middleware(Watched, metrics=self.metrics), Middleware(Negotiation)],
            exception_handlers=EXCEPTION_HANDLERS,
        )

    # ---- the program itself

    async def _root(self, _: Request) -> Response:
        return answer({})

    async def _cluster(self, _: Request) -> Response:
        clusters = {"kafka-cluster": self._cluster_id, "schema-registry-cluster": "schema-registry"}
        return answer({"scope": {"path": [], "clusters": clusters}, "id": ""})

    async def _version_of_program(self, _: Request) -> Response:
        from headrace import __version__

        return answer({"version": __version__, "commitId": ""})

    async def _deployment(self, _: Request) -> Response:
        return answer({"attributes": []})

    async def _health(self, _: Request) -> Response:
        failure = self._instance.failure
        primary = self._instance.primary
        body = {
            "status": "ok" if failure is None else "failing",
            "primary": None if primary is None else primary.url,
        }
        if failure is not None:
            body["reason"] = failure
        return answer(body, status=200 if failure is None else 503, media_type="application/json")

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
        return answer(list(SCHEMA_TYPES))

    async def _list_schemas(self, request: Request) -> Response:
        prefix = request.query_params.get("subjectPrefix", WILDCARD)
        deleted = flag(request, "deleted")
        latest_only = flag(request, "latestOnly")
        found = []
        for name in self._matching(prefix):
            versions = self._subjects.versions(name, deleted=deleted)
            numbers = list(versions)[-1:] if latest_only else list(versions)
            found += [(name, number, versions[number]) for number in numbers]
        return answer([self._described(*each) for each in page(request, found)])

    async def _by_id(self, request: Request) -> Response:
        context, _, schema = self._schema_by_id(request)
        body = schema_body(await self._formatted(request, schema, context), schema)
        if flag(request, "fetchMaxId"):
            body["maxId"] = self._subjects.highest_id(context)
        body["guid"] = guid_of(schema.digest)
        return answer(body)

    async def _text_by_id(self, request: Request) -> Response:
        context, _, schema = self._schema_by_id(request)
        return Response(await self._formatted(request, schema, context), media_type=MEDIA_TYPE)

    async def _subjects_by_id(self, request: Request) -> Response:
        uses = self._uses(request)
        return answer(page(request, list(dict.fromkeys(subject for subject, _ in uses))))

    async def _versions_by_id(self, request: Request) -> Response:
        uses = [{"subject": subject, "version": number} for subject, number in self._uses(request)]
        return answer(page(request, uses))

    async def _by_guid(self, request: Request) -> Response:
        places = self._subjects.ids_by_digest(digest_in(request))
        if not places:
            raise errors.schema_not_found(request.path_params["guid"])
        context, schema_id = places[0]
        schema = self._subjects.schema(context, schema_id)
        assert schema is not None
        body = schema_body(await self._formatted(request, schema, context), schema)
        return answer(body | {"guid": request.path_params["guid"]})

    async def _ids_by_guid(self, request: Request) -> Response:
        places = self._subjects.ids_by_digest(digest_in(request))
        if not places:
            raise errors.schema_not_found(request.path_params["guid"])
        return answer([{"context": context, "id": schema_id} for context, schema_id in places])

    def _schema_by_id(self, request: Request) -> tuple[str, int, Schema]:
        text = request.path_params["id"]
        subject = request.query_params.get("subject", "")
        context = parse_subject(subject).context
        try:
            schema_id = int(text)
        except ValueError:
            raise HTTPException(404, "Not Found") from None
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
        deleted = flag(request, "deleted")
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
        only = flag(request, "deletedOnly")
        deleted = flag(request, "deleted") or only
        found = [
            name
            for name in self._matching(prefix)
            if self._subjects.versions(name, deleted=deleted)
            and not (only and self._subjects.versions(name))
        ]
        return answer(page(request, found))

    async def _list_versions(self, request: Request) -> Response:
        name = normal(request.path_params["subject"])
        only, negative = flag(request, "deletedOnly"), flag(request, "deletedAsNegative")
        deleted = flag(request, "deleted") or only or negative
        versions = self._subjects.versions(name, deleted=deleted)
        if not versions:
            raise errors.subject_not_found(name)
        numbers = [
            -number if negative and version.is_deleted else number
            for number, version in versions.items()
            if not only or version.is_deleted
        ]
        return answer(page(request, numbers))

    async def _version(self, request: Request) -> Response:
        name, number, version = self._wanted_version(request)
        body = self._described(name, number, version)
        schema = self._subjects.schema_of(name, version)
        body["schema"] = await self._formatted(request, schema, parse_subject(name).context)
        return answer(body)

    async def _version_text(self, request: Request) -> Response:
        name, _, version = self._wanted_version(request)
        schema = self._subjects.schema_of(name, version)
        text = await self._formatted(request, schema, parse_subject(name).context)
        return Response(text, media_type=MEDIA_TYPE)

    async def _referenced_by(self, request: Request) -> Response:
        name, number, _ = self._wanted_version(request)
        return answer(page(request, self._subjects.referrers(name, number)))

    async def _by_metadata(self, request: Request) -> Response:
        name = normal(request.path_params["subject"])
        keys = request.query_params.getlist("key")
        values = request.query_params.getlist("value")
        wanted = dict(zip(keys, values, strict=False))
        versions = self._subjects.versions(name, deleted=flag(request, "deleted"))
        if not versions:
            raise errors.subject_not_found(name)
        for number, version in reversed(list(versions.items())):
            metadata = self._subjects.schema_of(name, version).metadata or {}
            if wanted.items() <= (metadata.get("properties") or {}).items():
                return answer(self._described(name, number, version))
        raise errors.schema_not_found()

    def _wanted_version(self, request: Request) -> tuple[str, int, Version]:
        name = normal(request.path_params["subject"])
        deleted = flag(request, "deleted")
        return name, *self._registry.version(name, request.path_params["version"], deleted=deleted)

    def _described(self, name: str, number: int, version: Version) -> dict[str, Json]:
        return version_body(name, number, version, self._subjects.schema_of(name, version))

    async def _look_up(self, request: Request) -> Response:
        subject = parse_subject(request.path_params["subject"])
        wanted = await decoded_body(request, Wanted)
        normalize = flag(request, "normalize")
        deleted = flag(request, "deleted")
        name = str(subject)
        if not self._subjects.versions(name, deleted=deleted):
            raise errors.subject_not_found(name)
        judgement = await self._instance.judge(self._registry.question(subject, wanted))
        number, version = self._registry.lookup(
            subject, wanted, judgement, normalize=normalize, deleted=deleted
        )
        return answer(self._described(name, number, version))

    async def _register(self, request: Request) -> Response:
        subject = parse_subject(request.path_params["subject"])
        if not subject.name or subject.context == "*" or subject.name in ("__GLOBAL", "__EMPTY"):
            raise errors.invalid_subject(request.path_params["subject"])
        wanted = await decoded_body(request, Wanted)
        normalize = flag(request, "normalize")

        async def write() -> Json:
            schema_id, number = await self._instance.register(subject, wanted, normalize=normalize)
            version = self._subjects.versions(str(subject), deleted=True)[number]
            schema = self._subjects.schema_of(str(subject), version)
            # Not the text: clients keep an answered text instead of their own, which may be in another notation.
            return {"id": schema_id, "version": number, "guid": guid_of(schema.digest)}

        return await self._written(request, write)

    async def _tag(self, request: Request) -> Response:
        name, _, version = self._wanted_version(request)
        change = await decoded_body(request, TagsChange)
        if change.new_version not in (None, self._subjects.highest_version(name) + 1):
            raise errors.invalid_version(str(change.new_version))
        wanted = tagged(self._subjects.schema_of(name, version), change)

        async def write() -> Json:
            subject = parse_subject(name)
            _, number = await self._instance.register(subject, wanted, normalize=False)
            return self._described(name, number, self._subjects.versions(name)[number])

        return await self._written(request, write)

    async def _delete_version(self, request: Request) -> Response:
        subject = parse_subject(request.path_params["subject"])
        number, permanent = request.path_params["version"], flag(request, "permanent")
        return await self._decided(
            request, lambda: self._registry.delete_version(subject, number, permanent=permanent)
        )

    async def _delete_subject(self, request: Request) -> Response:
        subject = parse_subject(request.path_params["subject"])
        permanent = flag(request, "permanent")
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
        wanted = await decoded_body(request, Wanted)
        question = self._registry.compatibility_question(subject, wanted, against=against)
        judgement = await self._instance.judge(question)
        if judgement.error is not None:
            raise errors.invalid_schema(judgement.error)
        body: dict[str, Json] = {"is_compatible": not judgement.incompatibilities}
        if flag(request, "verbose"):
            body["messages"] = list(judgement.incompatibilities)
        return answer(body)

    # ---- configs and modes

    async def _config(self, request: Request) -> Response:
        scope = scope_of(request)
        if scope is None or flag(request, "defaultToGlobal"):
            return answer(config_body(self._registry.effective_config(scope)))
        config = self._subjects.config(scope)
        if config is None:
            raise errors.no_subject_config(scope)
        return answer(config_body(config))

    async def _set_config(self, request: Request) -> Response:
        scope = scope_of(request)
        change = await decoded_body(request, ConfigChange)
        named = change.named()
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
            camel(name): value for name, value in named.items() if name != "compatibility_level"
        }

        def decide() -> Write[Json]:
            decision = self._registry.set_config(scope, named)
            return Write(echo, decision.entries)

        return await self._decided(request, decide)

    async def _delete_config(self, request: Request) -> Response:
        scope = scope_of(request)

        def decide() -> Write[Json]:
            decision = self._registry.delete_config(scope)
            return Write(config_body(decision.answer), decision.entries)

        return await self._decided(request, decide)

    async def _mode(self, request: Request) -> Response:
        scope = scope_of(request)
        if scope is None or flag(request, "defaultToGlobal"):
            return answer({"mode": self._registry.effective_mode(scope)})
        mode = self._subjects.mode(scope)
        if mode is None:
            raise errors.no_subject_mode(scope)
        return answer({"mode": mode})

    async def _set_mode(self, request: Request) -> Response:
        scope, force = scope_of(request), flag(request, "force")
        recursive = flag(request, "recursive")
        change = await decoded_body(request, ModeChange)

        def decide() -> Write[Json]:
            decision = self._registry.set_mode(
                scope, change.mode.upper(), force=force, recursive=recursive
            )
            return Write({"mode": decision.answer}, decision.entries)

        return await self._decided(request, decide)

    async def _delete_mode(self, request: Request) -> Response:
        scope, recursive = scope_of(request), flag(request, "recursive")

        def decide() -> Write[Json]:
            decision = self._registry.delete_mode(scope, recursive=recursive)
            return Write({"mode": decision.answer}, decision.entries)

        return await self._decided(request, decide)

    async def _contexts(self, request: Request) -> Response:
        prefix = request.query_params.get("contextPrefix", "")
        found = [each for each in self._subjects.contexts() if each.startswith(prefix)]
        return answer(page(request, found))

    async def _delete_context(self, request: Request) -> Response:
        context = request.path_params["context"].strip(":") or DEFAULT_CONTEXT
        deleted = await self._decided(request, lambda: self._registry.delete_context(context))
        return Response(status_code=204) if deleted.status_code == 200 else deleted

    # ---- writing

    async def _decided(self, request: Request, decide: Callable[[], Write[Any]]) -> Response:
        async def write() -> Json:
            return await self._instance.write(decide)

        return await self._written(request, write)

    async def _written(self, request: Request, write: Callable[[], Awaitable[Json]]) -> Response:
        """Write here if this is the primary, else have the primary do it."""
        await self._instance.role_known()
        if self._instance.is_primary:
            written = answer(await write())
            written.headers[_POSITION] = str(self._instance.position)
            return written
        primary = self._instance.primary
        if primary is None or request.headers.get(_FORWARDED) is not None:
            raise errors.unknown_primary()
        query = request.url.query
        raw_path = request.scope.get("raw_path") or quote(request.url.path).encode()
        target = raw_path.decode("ascii", "replace") + (f"?{query}" if query else "")
        found = await self._forwarding.send(
            (primary.host, primary.port),
            request.method,
            target,
            await request.body(),
            {"Content-Type": MEDIA_TYPE, "Accept": MEDIA_TYPE, _FORWARDED: "false"},
        )
        position = found.headers.get(_POSITION, "")
        if position.isdecimal():
            await self._instance.reached(int(position))
        return Response(found.body, status_code=found.status, media_type=MEDIA_TYPE)
