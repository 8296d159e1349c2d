"""Access control lists: finding, adding and deleting bindings. A cluster without an authorizer refuses all of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeVar

from headrace.client.admin.admin import Admin
from headrace.client.exchange import R, VersionNotOffered
from headrace.wire.error_code import ErrorCode
from headrace.wire.message import Request
from headrace.wire.messages.create_acls import AclCreation, CreateAclsRequest
from headrace.wire.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from headrace.wire.messages.describe_acls import DescribeAclsRequest
from headrace.wire.refusal import Refused, require

E = TypeVar("E", bound=IntEnum)


class AclResourceType(IntEnum):
    """What a binding is about."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """How the name of a resource is meant."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(IntEnum):
    """What is allowed or denied."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class PermissionType(IntEnum):
    """Whether it is allowed or denied."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class AclBinding:
    """One entry of an access control list."""

    resource_type: AclResourceType
    resource_name: str
    pattern_type: PatternType
    principal: str
    host: str
    operation: AclOperation
    permission: PermissionType


@dataclass(frozen=True, slots=True, kw_only=True)
class AclFilter:
    """Which bindings are meant; None and ANY mean all."""

    resource_type: AclResourceType
    resource_name: str | None
    pattern_type: PatternType
    principal: str | None
    host: str | None
    operation: AclOperation
    permission: PermissionType


def describe_acls(admin: Admin, wanted: AclFilter) -> list[AclBinding]:
    """The bindings that a filter means, in order. Raises Refused."""
    request = DescribeAclsRequest(
        resource_type_filter=wanted.resource_type,
        resource_name_filter=wanted.resource_name,
        pattern_type_filter=wanted.pattern_type,
        principal_filter=wanted.principal,
        host_filter=wanted.host,
        operation=wanted.operation,
        permission_type=wanted.permission,
    )
    answer = _ask(admin, request)
    require(answer.error_code, answer.error_message)
    return sorted(
        AclBinding(
            resource_type=_known(AclResourceType, resource.resource_type),
            resource_name=resource.resource_name,
            pattern_type=_known(PatternType, resource.pattern_type),
            principal=each.principal,
            host=each.host,
            operation=_known(AclOperation, each.operation),
            permission=_known(PermissionType, each.permission_type),
        )
        for resource in answer.resources
        for each in resource.acls
    )


def create_acls(admin: Admin, bindings: Sequence[AclBinding]) -> None:
    """Add bindings. Raises Refused for the first that was refused; the others are added."""
    request = CreateAclsRequest(
        creations=[
            AclCreation(
                resource_type=each.resource_type,
                resource_name=each.resource_name,
                resource_pattern_type=each.pattern_type,
                principal=each.principal,
                host=each.host,
                operation=each.operation,
                permission_type=each.permission,
            )
            for each in bindings
        ]
    )
    for result in _ask(admin, request).results:
        require(result.error_code, result.error_message)


def delete_acls(admin: Admin, wanted: AclFilter) -> list[AclBinding]:
    """Delete the bindings that a filter means; returns them. Raises Refused."""
    meant = DeleteAclsFilter(
        resource_type_filter=wanted.resource_type,
        resource_name_filter=wanted.resource_name,
        pattern_type_filter=wanted.pattern_type,
        principal_filter=wanted.principal,
        host_filter=wanted.host,
        operation=wanted.operation,
        permission_type=wanted.permission,
    )
    deleted = []
    for result in _ask(admin, DeleteAclsRequest(filters=[meant])).filter_results:
        require(result.error_code, result.error_message)
        for each in result.matching_acls:
            require(each.error_code, each.error_message)
            deleted.append(
                AclBinding(
                    resource_type=_known(AclResourceType, each.resource_type),
                    resource_name=each.resource_name,
                    pattern_type=_known(PatternType, each.pattern_type),
                    principal=each.principal,
                    host=each.host,
                    operation=_known(AclOperation, each.operation),
                    permission=_known(PermissionType, each.permission_type),
                )
            )
    return sorted(deleted)


def _ask(admin: Admin, request: Request[R]) -> R:
    try:
        return admin.ask_any(request)
    except VersionNotOffered:
        raise Refused(
            ErrorCode.SECURITY_DISABLED, "No Authorizer is configured on the broker"
        ) from None


def _known(kind: type[E], number: int) -> E:
    """The value with this number; UNKNOWN, which every kind has, for numbers of newer brokers."""
    try:
        return kind(number)
    except ValueError:
        return kind(0)
