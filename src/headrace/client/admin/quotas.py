"""Client quotas and SCRAM credentials: per user, client id or address."""

import hashlib
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum

from headrace.client.admin.admin import Admin
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    OpData,
)
from headrace.wire.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from headrace.wire.messages.describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
)
from headrace.wire.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from headrace.wire.refusal import Refusal, refusal_of, require

_EXACT, _DEFAULT, _ANY = 0, 1, 2  # match types
SALT_BYTES = 32


class ScramMechanism(IntEnum):
    """How a password is kept. The number is what goes over the wire."""

    SCRAM_SHA_256 = 1
    SCRAM_SHA_512 = 2

    @property
    def title(self) -> str:
        return self.name.replace("_", "-")

    @property
    def hash_name(self) -> str:
        return self.name.removeprefix("SCRAM_").replace("_", "").lower()


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaEntity:
    """Whom a quota is for, by type (user, client-id, ip); the name None is the default of the type."""

    parts: Mapping[str, str | None]


def describe_quotas(
    admin: Admin, components: Mapping[str, str | None]
) -> list[tuple[QuotaEntity, dict[str, float]]]:
    """The quotas of exactly these entity types. A name of `""` means the default, None any name. Raises Refused."""
    request = DescribeClientQuotasRequest(
        components=[
            ComponentData(
                entity_type=kind,
                match_type=_ANY if name is None else _EXACT if name else _DEFAULT,
                match=name or None,
            )
            for kind, name in components.items()
        ],
        strict=True,
    )
    answer = admin.ask_any(request)
    require(answer.error_code, answer.error_message)
    return [
        (
            QuotaEntity(parts={part.entity_type: part.entity_name for part in entry.entity}),
            {value.key: value.value for value in entry.values},
        )
        for entry in answer.entries or ()
    ]


def alter_quotas(
    admin: Admin, entity: QuotaEntity, *, delete: Sequence[str], add: Mapping[str, float]
) -> None:
    """Remove, then set quotas of one entity. Raises Refused."""
    operations = [OpData(key=key, value=0.0, remove=True) for key in delete]
    operations += [OpData(key=key, value=value, remove=False) for key, value in add.items()]
    request = AlterClientQuotasRequest(
        entries=[
            AlterClientQuotasRequestEntryData(
                entity=[
                    AlterClientQuotasRequestEntityData(entity_type=kind, entity_name=name)
                    for kind, name in entity.parts.items()
                ],
                ops=operations,
            )
        ]
    )
    answer = admin.ask_controller(
        request, errors_of=lambda found: [each.error_code for each in found.entries]
    )
    for entry in answer.entries:
        require(entry.error_code, entry.error_message)


def describe_scram(
    admin: Admin, users: Sequence[str]
) -> dict[str, dict[ScramMechanism, int] | Refusal]:
    """The mechanisms and iterations of users, of all without names. Users without credentials are left out."""
    names = [UserName(name=user) for user in users] or None
    answer = admin.ask_any(DescribeUserScramCredentialsRequest(users=names))
    require(answer.error_code, answer.error_message)
    return {
        result.user: refusal_of(result.error_code, result.error_message)
        or {ScramMechanism(each.mechanism): each.iterations for each in result.credential_infos}
        for result in answer.results
        if result.error_code != ErrorCode.RESOURCE_NOT_FOUND
    }


def alter_scram(
    admin: Admin,
    user: str,
    *,
    delete: Sequence[ScramMechanism],
    add: Mapping[ScramMechanism, tuple[int, str]],
) -> None:
    """Remove credentials, then set them: iterations and password by mechanism. Raises Refused."""
    upsertions = []
    for mechanism, (iterations, password) in add.items():
        salt = secrets.token_bytes(SALT_BYTES)
        upsertions.append(
            ScramCredentialUpsertion(
                name=user,
                mechanism=mechanism,
                iterations=iterations,
                salt=salt,
                salted_password=hashlib.pbkdf2_hmac(
                    mechanism.hash_name, password.encode(), salt, iterations
                ),
            )
        )
    request = AlterUserScramCredentialsRequest(
        deletions=[ScramCredentialDeletion(name=user, mechanism=each) for each in delete],
        upsertions=upsertions,
    )
    answer = admin.ask_controller(
        request, errors_of=lambda found: [each.error_code for each in found.results]
    )
    for result in answer.results:
        require(result.error_code, result.error_message)
