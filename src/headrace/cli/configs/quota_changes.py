"""`configs --alter` for users, clients and addresses: quotas and SCRAM credentials, with Kafka's checks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from headrace.cli.configs.config_entities import CLIENTS, DEFAULT, IPS, USERS, Entities
from headrace.cli.shell.command_line import Failure
from headrace.client.admin.admin import Admin
from headrace.client.admin.quotas import (
    QuotaEntity,
    ScramMechanism,
    alter_quotas,
    alter_scram,
    describe_quotas,
)

ENTITY_TYPES = {USERS: "user", CLIENTS: "client-id", IPS: "ip"}
CLIENT_QUOTAS = (
    "consumer_byte_rate",
    "controller_mutation_rate",
    "producer_byte_rate",
    "request_percentage",
)
IP_QUOTAS = ("connection_creation_rate",)
MECHANISMS = {each.title: each for each in ScramMechanism}
LEAST_ITERATIONS = 4096

_CREDENTIAL = re.compile(r"(?:iterations=(-?\d*),)?password=(.*)")


def alter_quotas_or_scram(
    admin: Admin, entities: Entities, *, add: Mapping[str, str], delete: Sequence[str]
) -> None:
    """Change whichever of the two the names belong to. Raises Failure in Kafka's words, or Refused."""
    if entities.kind == IPS:
        unknown = [name for name in (*add, *delete) if name not in IP_QUOTAS]
        if unknown:
            raise Failure(
                f"Only connection quota configs can be added for '{IPS}' using --bootstrap-server."
                f" Unexpected config names: {', '.join(unknown)}"
            )
        _alter_quotas(admin, entities, add=add, delete=delete)
        return
    scram = [name for name in (*add, *delete) if name in MECHANISMS]
    quotas = [name for name in (*add, *delete) if name in CLIENT_QUOTAS]
    users_only = entities.types == [USERS]
    _refuse_unknown("added", add, users_only=users_only)
    _refuse_unknown("deleted", delete, users_only=users_only)
    if scram:
        if DEFAULT in entities.names:
            raise Failure(
                "The use of --entity-default or --user-defaults is not allowed with User SCRAM"
                " Credentials using --bootstrap-server."
            )
        if quotas:
            raise Failure(
                "Cannot alter both quota and SCRAM credential configs simultaneously for"
                f" '{USERS}' using --bootstrap-server."
            )
        _alter_scram(admin, entities.names[0], add=add, delete=delete)
    else:
        _alter_quotas(admin, entities, add=add, delete=delete)


def _refuse_unknown(verb: str, names: Iterable[str], *, users_only: bool) -> None:
    allowed = {*CLIENT_QUOTAS, *(MECHANISMS if users_only else ())}
    unknown = [name for name in names if name not in allowed]
    if unknown:
        what = "quota and SCRAM credential" if users_only else "quota"
        raise Failure(
            f"Only {what} configs can be {verb} for '{USERS if users_only else CLIENTS}' using"
            f" --bootstrap-server. Unexpected config names: {','.join(unknown)}"
        )


def quota_filter(entities: Entities) -> dict[str, str | None]:
    """The entity types to look for; a type without a name matches any."""
    names: list[str | None] = [*entities.names]
    names += [None] * (len(entities.types) - len(names))
    return {ENTITY_TYPES[kind]: name for kind, name in zip(entities.types, names, strict=False)}


def _alter_quotas(
    admin: Admin, entities: Entities, *, add: Mapping[str, str], delete: Sequence[str]
) -> None:
    values = {}
    for name, text in add.items():
        try:
            values[name] = float(text)
        except ValueError:
            raise Failure(f"Cannot parse quota configuration value for {name}: {text}") from None
    if delete:
        old = [
            name for _, found in describe_quotas(admin, quota_filter(entities)) for name in found
        ]
        unset = [name for name in delete if name not in old]
        if unset:
            raise Failure(f"Invalid config(s): {','.join(unset)}")
    parts = {kind: name or None for kind, name in quota_filter(entities).items()}
    alter_quotas(admin, QuotaEntity(parts=parts), delete=delete, add=values)


def _alter_scram(admin: Admin, user: str, *, add: Mapping[str, str], delete: Sequence[str]) -> None:
    wanted = {}
    for name, text in add.items():
        match = _CREDENTIAL.fullmatch(text)
        if match is None:
            raise Failure(f"Invalid credential property {name}=(hidden)")
        iterations = int(match[1]) if match[1] not in (None, "-1") else LEAST_ITERATIONS
        if iterations < LEAST_ITERATIONS:
            raise Failure(
                f"Iterations {iterations} is less than the minimum {LEAST_ITERATIONS} required for {name}"
            )
        wanted[MECHANISMS[name]] = (iterations, match[2])
    alter_scram(admin, user, delete=[MECHANISMS[name] for name in delete], add=wanted)
