"""`/subjects`: subjects and their versions, look-ups by text, registrations, deletions."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from headrace.registry import errors
from headrace.registry.http.answers import (
    MEDIA_TYPE,
    RegisteredAnswer,
    VersionAnswer,
    answer,
    registered_answer,
    version_answer,
)
from headrace.registry.http.operations import Operation, Query
from headrace.registry.http.requests import (
    MAX_SCHEMAS,
    decoded_body,
    flag,
    page,
    parameter,
    subject_in,
)
from headrace.registry.http.service import RegistryService
from headrace.registry.rules.lookup import FoundVersion, version_number
from headrace.registry.rules.submitted import SubmittedSchema, TagsChange
from headrace.registry.state.names import WILDCARD, is_valid_subject, parse_subject
from headrace.schemas.formats.protobuf.language import ProtobufFormat, looks_like_descriptor

_SUBJECT = "/subjects/{subject}"
_VERSIONS = f"{_SUBJECT}/versions"
_VERSION = _VERSIONS + "/{version}"
_DELETED_ONLY = Query("deletedOnly", "only what was deleted softly", bool)
_PERMANENT = Query("permanent", "delete for good what was deleted softly", bool)


class SubjectsResource:
    """Reads and writes subjects."""

    def __init__(self, service: RegistryService) -> None:
        self._service = service
        self._instance = service.instance
        self._subjects = service.subjects
        self._registry = service.registry
        self._lookup = service.registry.lookup

    def operations(self) -> list[Operation]:
        """The routes."""
        pages = (Query.OFFSET, Query.LIMIT)
        text = (Query.FORMAT, Query.DELETED)
        return [
            Operation(
                "GET", "/subjects", self._list, "List subjects.", list[str],
                query=(
                    Query("subjectPrefix", "how the subject begins; `:*:` stands for every context"),
                    Query.DELETED, _DELETED_ONLY, *pages,
                ),
            ),
            Operation(
                "POST", _SUBJECT, self._look_up, "Find the version that a schema is.", VersionAnswer,
                query=(Query.NORMALIZE, *text), body=SubmittedSchema, errors=(404, 422),
            ),
            Operation(
                "DELETE", _SUBJECT, self._delete_subject, "Delete all versions of a subject.", list[int],
                query=(_PERMANENT,), errors=(404, 422),
            ),
            Operation(
                "GET", f"{_SUBJECT}/metadata", self._by_metadata, "The newest version with metadata.",
                VersionAnswer, errors=(404,),
                query=(
                    Query("key", "names of properties", is_list=True),
                    Query("value", "values of these properties", is_list=True), *text,
                ),
            ),
            Operation(
                "GET", _VERSIONS, self._list_versions, "List the versions of a subject.", list[int],
                query=(
                    Query.DELETED, _DELETED_ONLY,
                    Query("deletedAsNegative", "deleted versions as negative numbers", bool), *pages,
                ),
                errors=(404,),
            ),
            Operation(
                "POST", _VERSIONS, self._register, "Register a schema.", RegisteredAnswer,
                query=(
                    Query.NORMALIZE, Query.FORMAT,
                    Query("force", "register it even if it is not compatible", bool),
                ),
                body=SubmittedSchema, errors=(409, 422),
            ),
            Operation(
                "GET", _VERSION, self._version, "A version of a subject.", VersionAnswer,
                query=(*text, Query.REFERENCE_FORMAT, Query.FIND_TAGS), errors=(404, 422),
            ),
            Operation(
                "DELETE", _VERSION, self._delete_version, "Delete a version.", int,
                query=(_PERMANENT,), errors=(404, 422),
            ),
            Operation(
                "GET", f"{_VERSION}/schema", self._version_text, "The text of a version.", None,
                query=text, errors=(404, 422),
            ),
            Operation(
                "GET", f"{_VERSION}/referencedby", self._referenced_by,
                "The ids of the schemas that refer to a version.", list[int],
                query=(Query.DELETED, *pages), errors=(404, 422),
            ),
            Operation(
                "POST", f"{_VERSION}/tags", self._tag, "Register a version with other tags.",
                RegisteredAnswer, body=TagsChange, errors=(404, 409, 422),
            ),
        ]  # fmt: skip

    # ---- reading

    async def _list(self, request: Request) -> Response:
        prefix = request.query_params.get("subjectPrefix", WILDCARD)
        only = flag(request, "deletedOnly")
        deleted = flag(request, "deleted") or only
        found = [
            name
            for name in self._lookup.matching(prefix)
            if self._subjects.has_versions(name, deleted=deleted)
            and not (only and self._subjects.has_versions(name))
        ]
        return answer(page(request, found))

    async def _list_versions(self, request: Request) -> Response:
        name = str(subject_in(request))
        only, negative = flag(request, "deletedOnly"), flag(request, "deletedAsNegative")
        deleted = flag(request, "deleted") or only
        if not self._subjects.has_versions(name, deleted=deleted):
            raise errors.subject_not_found(name)
        versions = self._subjects.versions(name, deleted=deleted or negative)
        numbers = [
            -number if negative and version.is_deleted else number
            for number, version in versions.items()
            if negative or not only or version.is_deleted
        ]
        return answer(page(request, numbers))

    async def _version(self, request: Request) -> Response:
        found = self._wanted(request)
        body = version_answer(found, await self._service.text_of(request, found))
        body.references = self._service.references_of(request, found)
        body.schema_tags = await self._service.tags_of(request, found)
        return answer(body)

    async def _version_text(self, request: Request) -> Response:
        text = await self._service.text_of(request, self._wanted(request))
        return Response(text, media_type=MEDIA_TYPE)

    async def _referenced_by(self, request: Request) -> Response:
        number = version_number(parameter(request, "version"))
        found = self._lookup.version(str(subject_in(request)), number, deleted=True)
        deleted = flag(request, "deleted")
        referrers = self._subjects.referrers(found.subject, found.number, deleted=deleted)
        return answer(page(request, [each for _, each in referrers], limit=MAX_SCHEMAS))

    async def _by_metadata(self, request: Request) -> Response:
        keys = request.query_params.getlist("key")
        values = request.query_params.getlist("value")
        properties = dict(zip(keys, values, strict=False))
        found = self._lookup.by_metadata(
            str(subject_in(request)), properties, deleted=flag(request, "deleted")
        )
        return answer(version_answer(found, await self._service.text_of(request, found)))

    def _wanted(self, request: Request) -> FoundVersion:
        number = version_number(parameter(request, "version"))
        deleted = flag(request, "deleted")
        return self._lookup.version(str(subject_in(request)), number, deleted=deleted)

    async def _look_up(self, request: Request) -> Response:
        subject = subject_in(request)
        wanted = await decoded_body(request, SubmittedSchema)
        normalize, deleted = flag(request, "normalize"), flag(request, "deleted")
        registration = self._registry.registration
        for place in self._lookup.in_contexts(str(subject)):
            if not wanted.text or not self._subjects.has_versions(str(place), deleted=deleted):
                continue
            question = registration.lookup_question(place, wanted, normalize=normalize)
            judgement = await self._instance.judge(question)
            found = registration.find(place, wanted, judgement, deleted=deleted)
            if found is not None:
                return answer(version_answer(found, await self._service.text_of(request, found)))
        if self._subjects.has_versions(str(subject), deleted=deleted):
            raise errors.schema_not_found()
        raise errors.subject_not_found(str(subject))

    # ---- writing

    async def _register(self, request: Request) -> Response:
        subject = subject_in(request)
        wanted = await decoded_body(request, SubmittedSchema)
        if wanted.rule_set is not None:
            wanted.rule_set.check()
        if not is_valid_subject(subject):
            raise errors.invalid_subject(parameter(request, "subject"))
        normalize, force = flag(request, "normalize"), flag(request, "force")
        # Clients keep the text that is answered: one that sent a descriptor could not read another notation.
        form = "serialized" if _is_descriptor(wanted) else ""
        existing = await self._instance.existing(subject, wanted, normalize=normalize)
        if existing is not None:
            text = await self._service.text_of(request, existing, form)
            return answer(registered_answer(existing, text))

        async def write() -> Any:
            found = await self._instance.register(subject, wanted, normalize=normalize, force=force)
            return registered_answer(found, await self._service.text_of(request, found, form))

        return await self._service.written(request, write)

    async def _tag(self, request: Request) -> Response:
        subject = subject_in(request)
        change = await decoded_body(request, TagsChange)
        if not is_valid_subject(subject):
            raise errors.invalid_subject(parameter(request, "subject"))

        async def write() -> Any:
            found = self._wanted(request)
            wanted = self._registry.registration.tagged(found, change)
            registered = await self._instance.register(parse_subject(found.subject), wanted)
            return registered_answer(registered)

        self._wanted(request)
        return await self._service.written(request, write)

    async def _delete_version(self, request: Request) -> Response:
        subject, text = subject_in(request), parameter(request, "version")
        permanent = flag(request, "permanent")
        return await self._service.decided(
            request,
            lambda: self._registry.deletion.delete_version(subject, text, permanent=permanent),
        )

    async def _delete_subject(self, request: Request) -> Response:
        subject, permanent = subject_in(request), flag(request, "permanent")
        return await self._service.decided(
            request, lambda: self._registry.deletion.delete_subject(subject, permanent=permanent)
        )


def _is_descriptor(wanted: SubmittedSchema) -> bool:
    return wanted.type_name == ProtobufFormat.NAME and looks_like_descriptor(wanted.text)
