"""`/config`, `/mode` and `/contexts`: what applies to subjects and contexts."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from headrace.registry import errors
from headrace.registry.http.answers import ModeAnswer, OldModeAnswer, answer, config_body
from headrace.registry.http.operations import Operation, Query
from headrace.registry.http.requests import decoded_body, flag, page, parameter, subject_in
from headrace.registry.http.service import RegistryService
from headrace.registry.rules.submitted import ConfigChange, ModeChange
from headrace.registry.state.names import (
    DEFAULT_CONTEXT,
    SubjectName,
    is_valid_scope,
    parse_subject,
)
from headrace.registry.state.records import ConfigValue
from headrace.registry.state.scopes import Scope, scope_of

_RECURSIVE = Query("recursive", "also the modes of the subjects in the context", bool)


class SettingsResource:
    """Reads and writes settings, modes and contexts."""

    def __init__(self, service: RegistryService) -> None:
        self._service = service
        self._subjects = service.subjects
        self._scopes = service.registry.scopes
        self._changes = service.registry.settings

    def operations(self) -> list[Operation]:
        """The routes."""
        found: list[Operation] = []
        for path, whose in (("", "all subjects"), ("/{subject}", "a subject or a context")):
            gone = (404,) if path else ()
            found += [
                Operation(
                    "GET", f"/config{path}", self._config, f"The settings of {whose}.", ConfigValue,
                    query=(Query.DEFAULT_TO_GLOBAL,), errors=gone,
                ),
                Operation(
                    "PUT", f"/config{path}", self._set_config, f"Change the settings of {whose}.",
                    ConfigChange, body=ConfigChange, errors=(422,),
                ),
                Operation(
                    "DELETE", f"/config{path}", self._delete_config, f"Forget the settings of {whose}.",
                    ConfigValue, errors=(*gone, 422),
                ),
                Operation(
                    "GET", f"/mode{path}", self._mode, f"The mode of {whose}.", ModeAnswer,
                    query=(Query.DEFAULT_TO_GLOBAL,), errors=gone,
                ),
                Operation(
                    "PUT", f"/mode{path}", self._set_mode, f"Change the mode of {whose}.", ModeAnswer,
                    query=(Query("force", "into IMPORT, even if there are schemas", bool),),
                    body=ModeChange, errors=(422,),
                ),
                Operation(
                    "DELETE", f"/mode{path}", self._delete_mode, f"Forget the mode of {whose}.",
                    OldModeAnswer, query=(_RECURSIVE,), errors=(*gone, 422),
                ),
            ]  # fmt: skip
        return [
            *found,
            Operation(
                "GET", "/contexts", self._contexts, "List contexts.", list[str],
                query=(
                    Query("contextPrefix", "how the context begins"), Query.OFFSET, Query.LIMIT,
                ),
            ),
            Operation(
                "DELETE", "/contexts/{context}", self._delete_context, "Delete an empty context.",
                None, errors=(422,), status=204,
            ),
        ]  # fmt: skip

    # ---- settings

    async def _config(self, request: Request) -> Response:
        scope = _scope(request)
        if flag(request, "defaultToGlobal"):
            return answer(config_body(self._scopes.config(scope)))
        config = self._scopes.own_config(scope)
        if config is None:
            raise errors.no_subject_config(str(scope))
        return answer(config_body(config))

    async def _set_config(self, request: Request) -> Response:
        change = await decoded_body(request, ConfigChange)
        named = change.named()
        scope = _checked_scope(request)
        return await self._service.decided(
            request,
            lambda: self._changes.set_config(scope, named),
            lambda config: config_body(config, level_name="compatibility"),
        )

    async def _delete_config(self, request: Request) -> Response:
        scope = _scope(request)
        return await self._service.decided(
            request, lambda: self._changes.delete_config(scope), config_body
        )

    # ---- modes

    async def _mode(self, request: Request) -> Response:
        scope = _scope(request)
        in_force = flag(request, "defaultToGlobal")
        mode = self._scopes.mode(scope) if in_force else self._scopes.own_mode(scope)
        if mode is None:
            raise errors.no_subject_mode(str(scope))
        return answer(ModeAnswer(mode))

    async def _set_mode(self, request: Request) -> Response:
        force = flag(request, "force")
        change = await decoded_body(request, ModeChange)
        scope = _checked_scope(request)
        mode = None if change.mode is None else change.mode.upper()
        return await self._service.decided(
            request,
            lambda: self._changes.set_mode(scope, mode, force=force),
            lambda _: ModeAnswer(change.mode),
        )

    async def _delete_mode(self, request: Request) -> Response:
        scope, recursive = _scope(request), flag(request, "recursive")

        return await self._service.decided(
            request,
            lambda: self._changes.delete_mode(scope, recursive=recursive),
            OldModeAnswer,
        )

    # ---- contexts

    async def _contexts(self, request: Request) -> Response:
        prefix = request.query_params.get("contextPrefix", "")
        found = [each for each in self._subjects.contexts() if each.startswith(prefix)]
        return answer(page(request, found))

    async def _delete_context(self, request: Request) -> Response:
        context = parse_subject(parameter(request, "context")).context
        deleted = await self._service.decided(
            request, lambda: self._changes.delete_context(context)
        )
        return Response(status_code=204) if deleted.status_code == 200 else deleted


def _subject(request: Request) -> SubjectName:
    return (
        subject_in(request)
        if "subject" in request.path_params
        else SubjectName(DEFAULT_CONTEXT, "")
    )


def _scope(request: Request) -> Scope:
    return scope_of(_subject(request))


def _checked_scope(request: Request) -> Scope:
    """The scope of a change. Raises RegistryError."""
    subject = _subject(request)
    if not is_valid_scope(subject):
        raise errors.invalid_subject(parameter(request, "subject"))
    return scope_of(subject)
