"""The registry's refusals, with Confluent's error codes and messages. The first three digits of a code are the HTTP status."""

from typing import Final

from headrace.errors import HeadraceError

INVALID_SCHEMA: Final = 42201


class RegistryError(HeadraceError):
    """A request that the registry refuses."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    @property
    def status(self) -> int:
        """The HTTP status of the answer."""
        return int(str(self.code)[:3])


def subject_not_found(subject: str) -> RegistryError:
    return RegistryError(40401, f"Subject '{subject}' not found.")


def version_not_found(version: int | str) -> RegistryError:
    return RegistryError(40402, f"Version {version} not found.")


def schema_not_found(schema_id: int | str | None = None) -> RegistryError:
    return RegistryError(
        40403, "Schema not found" if schema_id is None else f"Schema {schema_id} not found"
    )


def subject_soft_deleted(subject: str) -> RegistryError:
    return RegistryError(
        40404, f"Subject '{subject}' was soft deleted.Set permanent=true to delete permanently"
    )


def subject_not_soft_deleted(subject: str) -> RegistryError:
    return RegistryError(
        40405, f"Subject '{subject}' was not deleted first before being permanently deleted"
    )


def version_soft_deleted(subject: str, version: int) -> RegistryError:
    return RegistryError(
        40406,
        f"Subject '{subject}' Version {version} was soft deleted.Set permanent=true to delete permanently",
    )


def version_not_soft_deleted(subject: str, version: int) -> RegistryError:
    return RegistryError(
        40407,
        f"Subject '{subject}' Version {version} was not deleted first before being permanently deleted",
    )


def no_subject_config(subject: str) -> RegistryError:
    return RegistryError(
        40408, f"Subject '{subject}' does not have subject-level compatibility configured"
    )


def no_subject_mode(subject: str) -> RegistryError:
    return RegistryError(40409, f"Subject '{subject}' does not have subject-level mode configured")


def incompatible(subject: str, details: list[str]) -> RegistryError:
    return RegistryError(
        40901,
        "Schema being registered is incompatible with an earlier schema for subject "
        f'"{subject}", details: [{", ".join(details)}]',
    )


def no_body() -> RegistryError:
    return RegistryError(422, "the request has no body: expected a JSON object")


def invalid_schema(text: str) -> RegistryError:
    return RegistryError(INVALID_SCHEMA, text)


def invalid_version(version: str) -> RegistryError:
    return RegistryError(
        42202,
        f"The specified version '{version}' is not a valid version id. Allowed values are between [1, 2^31-1] "
        'and the string "latest"',
    )


def invalid_level() -> RegistryError:
    return RegistryError(
        42203,
        "Invalid compatibility level. Valid values are none, backward, forward, full, backward_transitive, "
        "forward_transitive, and full_transitive",
    )


def invalid_mode() -> RegistryError:
    return RegistryError(
        42204, "Invalid mode. Valid values are READWRITE, READONLY, IMPORT and FORWARD."
    )


def forward_mode_not_global() -> RegistryError:
    return RegistryError(42204, "Forward mode only supported on global level")


def operation_not_permitted(text: str) -> RegistryError:
    return RegistryError(42205, text)


def reference_exists(subject: str, version: int) -> RegistryError:
    key = f"{{magic=1,keytype=SCHEMA,subject={subject},version={version}}}"
    return RegistryError(42206, f"One or more references exist to the schema {key}.")


def invalid_subject(subject: str) -> RegistryError:
    return RegistryError(42208, f"The specified subject '{subject}' is not a valid.")


def schema_too_large(limit: int) -> RegistryError:
    return RegistryError(42209, f"Schema is too large: more than {limit} bytes")


def record_too_large() -> RegistryError:
    return RegistryError(42209, "Register operation failed because schema is too large")


def invalid_rule_set(text: str) -> RegistryError:
    return RegistryError(42210, text)


def context_not_empty(context: str) -> RegistryError:
    return RegistryError(42211, f"The specified context '{context}' is not empty.")


def store_failed(why: str) -> RegistryError:
    return RegistryError(50001, f"Error in the backend data store - {why}")


def store_timed_out(why: str) -> RegistryError:
    return RegistryError(50002, f"Operation timed out - {why}")


def forwarding_failed(why: str) -> RegistryError:
    return RegistryError(50003, f"Error while forwarding the request to the primary - {why}")


def unknown_primary() -> RegistryError:
    return RegistryError(50004, "Error while forwarding the request: the primary is not known")
