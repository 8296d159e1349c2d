"""`/compatibility`: whether a schema could be registered."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from headrace.registry import errors
from headrace.registry.http.answers import CompatibilityAnswer, answer
from headrace.registry.http.operations import Operation, Query
from headrace.registry.http.requests import decoded_body, flag, parameter, subject_in
from headrace.registry.http.service import RegistryService
from headrace.registry.rules.lookup import LATEST, version_number
from headrace.registry.rules.question_builder import invalid
from headrace.registry.rules.submitted import SubmittedSchema
from headrace.registry.state.names import SubjectName


class CompatibilityResource:
    """Compares a schema with versions, and registers nothing."""

    def __init__(self, service: RegistryService) -> None:
        self._instance = service.instance
        self._subjects = service.subjects
        self._registry = service.registry

    def operations(self) -> list[Operation]:
        """The routes."""
        path = "/compatibility/subjects/{subject}/versions"
        query = (Query.VERBOSE, Query.NORMALIZE)
        return [
            Operation(
                "POST", path, self._with_all, "Compare a schema with what the level names.",
                CompatibilityAnswer, query=query, body=SubmittedSchema, errors=(422,),
            ),
            Operation(
                "POST", path + "/{version}", self._with_one, "Compare a schema with a version.",
                CompatibilityAnswer, query=query, body=SubmittedSchema, errors=(404, 422),
            ),
        ]  # fmt: skip

    async def _with_all(self, request: Request) -> Response:
        return await self._compare(request, None)

    async def _with_one(self, request: Request) -> Response:
        return await self._compare(request, version_number(parameter(request, "version")))

    async def _compare(self, request: Request, number: int | None) -> Response:
        """Compare with a version, or, with None, with those that the level names."""
        subject = subject_in(request)
        wanted = await decoded_body(request, SubmittedSchema)
        name = str(subject)
        if number == LATEST:
            number = self._subjects.latest(name)
        elif number is not None and self._subjects.version(name, number) is None:
            raise errors.version_not_found(number)
        verbose = flag(request, "verbose")
        try:
            found = await self._messages(
                subject, wanted, number, normalize=flag(request, "normalize")
            )
        except errors.RegistryError as refusal:
            if not verbose or refusal.code != errors.INVALID_SCHEMA:
                raise
            found = [refusal.message]
        return answer(CompatibilityAnswer(not found, found if verbose else None))

    async def _messages(
        self,
        subject: SubjectName,
        wanted: SubmittedSchema,
        number: int | None,
        *,
        normalize: bool,
    ) -> list[str]:
        registry = self._registry
        question = registry.questions.of_compatibility(
            subject,
            wanted,
            registry.scopes.config(str(subject)),
            normalize=registry.registration.normalizes(subject, asked=normalize),
            only_version=number,
        )
        judgement = await self._instance.judge(question)
        if judgement.error is not None:
            raise invalid(wanted, judgement.error)
        return registry.registration.messages(subject, wanted, judgement)
