"""What the resources of the HTTP API share: the instance behind them, texts in other forms, writes at the primary."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from headrace.registry import errors
from headrace.registry.forwarding import Forwarding
from headrace.registry.http.answers import MEDIA_TYPE, SchemaTags, answer, schema_tags
from headrace.registry.instance import Instance
from headrace.registry.rules.lookup import FoundVersion
from headrace.registry.state.names import parse_subject, relative
from headrace.registry.state.records import Reference
from headrace.registry.state.writes import Write

Json = Any

FORWARDED: Final = "x-forward"
_POSITION: Final = "x-headrace-position"  # how much of the topic the answering instance knew


class RegistryService:
    """One instance as the resources see it."""

    def __init__(self, instance: Instance) -> None:
        self.instance = instance
        self.registry = instance.registry
        self.subjects = instance.registry.subjects
        self._forwarding = Forwarding()

    async def text_of(self, request: Request, found: FoundVersion, form: str = "") -> str:
        """The text of a version in the form that the query asks for, or in `form`."""
        form = request.query_params.get("format", "").strip() or form
        if not form:
            return found.schema.text
        question = self.registry.questions.of_stored(found.subject, found.version, form=form)
        judgement = await self.instance.judge(question)
        return found.schema.text if judgement.error is not None else judgement.formatted

    def references_of(self, request: Request, found: FoundVersion) -> tuple[Reference, ...]:
        """The references of a version as they are stored, or, if the query asks for it, with their contexts."""
        context = parse_subject(found.subject).context
        references = found.schema.references
        if request.query_params.get("referenceFormat") != "qualified":
            return references
        return tuple(
            Reference(each.name, relative(each.subject, context), each.version)
            for each in references
        )

    async def tags_of(self, request: Request, found: FoundVersion) -> list[SchemaTags] | None:
        """The tagged records and fields that the query asks for; None if it asks for none."""
        wanted = request.query_params.getlist("findTags")
        if not wanted:
            return None
        question = self.registry.questions.of_stored(found.subject, found.version, lists_tags=True)
        judgement = await self.instance.judge(question)
        return schema_tags(judgement.tags, wanted)

    async def decided(
        self,
        request: Request,
        decide: Callable[[], Write[Any]],
        body: Callable[[Any], Json] = lambda decided: decided,
    ) -> Response:
        """Write what is decided; `body` makes the answer of the decision's."""

        async def write() -> Json:
            return body(await self.instance.write(decide))

        return await self.written(request, write)

    async def written(self, request: Request, write: Callable[[], Awaitable[Json]]) -> Response:
        """Write here if this is the primary, else have the primary do it."""
        await self.instance.role_known()
        if self.instance.is_primary:
            written = answer(await write())
            written.headers[_POSITION] = str(self.instance.position)
            return written
        primary = self.instance.primary
        if primary is None or request.headers.get(FORWARDED) is not None:
            raise errors.unknown_primary()
        query = request.scope["query_string"].decode("latin-1")
        found = await self._forwarding.send(
            (primary.host, primary.port),
            request.method,
            request.scope["path"] + (f"?{query}" if query else ""),
            await request.body(),
            {"Content-Type": MEDIA_TYPE, "Accept": MEDIA_TYPE, FORWARDED: "false"},
        )
        position = found.headers.get(_POSITION, "")
        if position.isdecimal():
            await self.instance.reached(int(position))
        return Response(found.body, status_code=found.status, media_type=MEDIA_TYPE)
