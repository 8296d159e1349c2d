"""`/schemas`: all schemas, and schemas by id or GUID."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from starlette.requests import Request
from starlette.responses import Response

from headrace.registry import errors
from headrace.registry.http.answers import (
    MEDIA_TYPE,
    ContextId,
    SchemaAnswer,
    SubjectVersion,
    VersionAnswer,
    answer,
    schema_answer,
    version_answer,
)
from headrace.registry.http.operations import Operation, Query
from headrace.registry.http.requests import (
    MAX_SCHEMAS,
    digest_in,
    flag,
    id_in,
    page,
    parameter,
)
from headrace.registry.http.service import RegistryService
from headrace.registry.rules.lookup import FoundSchema, FoundVersion
from headrace.registry.rules.question_builder import SCHEMA_TYPES

_SUBJECT = Query("subject", "a subject, or a context, in which the id is meant")


class SchemasResource:
    """Reads schemas."""

    def __init__(self, service: RegistryService) -> None:
        self._service = service
        self._subjects = service.subjects
        self._lookup = service.registry.lookup

    def operations(self) -> list[Operation]:
        """The routes."""
        by_id = "/schemas/ids/{id}"
        by_guid = "/schemas/guids/{guid}"
        pages = (Query.OFFSET, Query.LIMIT)
        return [
            Operation(
                "GET", "/schemas", self._list, "List schemas, at most 1000.", list[VersionAnswer],
                query=(
                    Query("subjectPrefix", "how the subject begins; `:*:` stands for every context"),
                    Query("aliases", "also subjects that an alias with this prefix stands for", bool),
                    Query.DELETED,
                    Query("latestOnly", "only the latest version of each subject", bool),
                    Query("ruleType", "only schemas with a rule of this type"),
                    *pages,
                ),
            ),
            Operation("GET", "/schemas/types", self._types, "List the schema languages.", list[str]),
            Operation(
                "GET", by_id, self._by_id, "A schema by its id.", SchemaAnswer, errors=(404,),
                query=(
                    _SUBJECT, Query.FORMAT, Query.REFERENCE_FORMAT, Query.FIND_TAGS,
                    Query("fetchMaxId", "also the highest id of the context", bool),
                ),
            ),
            Operation(
                "GET", f"{by_id}/schema", self._text_by_id, "The text of a schema by its id.", None,
                query=(_SUBJECT, Query.FORMAT), errors=(404,),
            ),
            Operation(
                "GET", f"{by_id}/subjects", self._subjects_by_id, "The subjects that have a schema.",
                list[str], query=(_SUBJECT, Query.DELETED, *pages), errors=(404,),
            ),
            Operation(
                "GET", f"{by_id}/versions", self._versions_by_id, "The versions that have a schema.",
                list[SubjectVersion], query=(_SUBJECT, Query.DELETED, *pages), errors=(404,),
            ),
            Operation(
                "GET", by_guid, self._by_guid, "A schema by its GUID.", SchemaAnswer,
                query=(Query.FORMAT,), errors=(404,),
            ),
            Operation(
                "GET", f"{by_guid}/ids", self._ids_by_guid, "The ids of a schema.", list[ContextId]
            ),
        ]  # fmt: skip

    async def _types(self, _: Request) -> Response:
        return answer(list(SCHEMA_TYPES))

    async def _list(self, request: Request) -> Response:
        prefix = request.query_params.get("subjectPrefix", "")
        names = self._lookup.matching(prefix)
        aliases: dict[str, list[str]] = defaultdict(list)
        if flag(request, "aliases"):
            for alias, name in self._subjects.aliases():
                if alias.startswith(prefix):
                    aliases[name].append(alias)
            names = sorted({*names, *aliases})
        wanted = page(request, self._found(request, names), limit=MAX_SCHEMAS)
        answers = [version_answer(each) for each in wanted]
        for each in answers:
            each.aliases = aliases.get(each.subject)
        return answer(answers)

    def _found(self, request: Request, names: list[str]) -> Iterator[FoundVersion]:
        """The versions of these subjects that the query asks for, found only as far as they are read."""
        deleted, latest_only = flag(request, "deleted"), flag(request, "latestOnly")
        rule_type = request.query_params.get("ruleType", "")
        for name in names:
            numbers = list(self._subjects.versions(name, deleted=deleted))
            for number in numbers[-1 if latest_only else 0 :]:
                found = self._lookup.found(name, number)
                if not rule_type or _has_rule(found, rule_type):
                    yield found

    async def _by_id(self, request: Request) -> Response:
        found = self._wanted(request, named=True)
        use = found.use
        body = schema_answer(use, await self._service.text_of(request, use))
        body.schema_tags = await self._service.tags_of(request, use)
        body.references = self._service.references_of(request, use)
        if flag(request, "fetchMaxId"):
            body.max_id = self._subjects.highest_id(found.context)
        return answer(body)

    async def _text_by_id(self, request: Request) -> Response:
        use = self._wanted(request, named=True).use
        return Response(await self._service.text_of(request, use), media_type=MEDIA_TYPE)

    async def _subjects_by_id(self, request: Request) -> Response:
        return answer(page(request, dict.fromkeys(subject for subject, _ in self._uses(request))))

    async def _versions_by_id(self, request: Request) -> Response:
        return answer(page(request, [SubjectVersion(*each) for each in self._uses(request)]))

    async def _by_guid(self, request: Request) -> Response:
        digest = digest_in(request)
        places = self._subjects.ids_by_digest(digest) if digest is not None else []
        found = self._lookup.use(*places[0]) if places else None
        if found is None:
            raise errors.schema_not_found(parameter(request, "guid"))
        body = schema_answer(found, await self._service.text_of(request, found))
        body.subject = body.version = None
        return answer(body)

    async def _ids_by_guid(self, request: Request) -> Response:
        digest = digest_in(request)
        places = self._subjects.ids_by_digest(digest) if digest is not None else []
        return answer([ContextId(*each) for each in places])

    def _wanted(self, request: Request, *, named: bool = False) -> FoundSchema:
        schema_id = id_in(request)
        found = self._lookup.by_id(schema_id, request.query_params.get("subject", ""))
        if found is None:
            raise errors.schema_not_found(schema_id if named else None)
        return found

    def _uses(self, request: Request) -> list[tuple[str, int]]:
        found = self._wanted(request)
        deleted = flag(request, "deleted")
        return self._subjects.uses(found.context, found.schema_id, deleted=deleted)


def _has_rule(found: FoundVersion, rule_type: str) -> bool:
    rule_set = found.schema.rule_set
    return rule_set is not None and any(rule.type == rule_type for rule in rule_set.rules())
