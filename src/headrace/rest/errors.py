"""Errors of the REST API: HTTP status, Confluent's error code, message; and which error a Kafka error becomes. Pure."""

from typing import Final

from headrace.errors import HeadraceError
from headrace.wire.error_code import ErrorCode

_BAD_REQUEST: Final = 40002
_UNKNOWN_TOPIC_OR_PARTITION: Final = 40403
_KAFKA_ERROR: Final = 50002
_RETRIABLE: Final = 50003
_BROKER_NOT_AVAILABLE: Final = 50302

# Kafka errors with an answer of their own. The others: 50003 where a retry may help, else 50002.
_KAFKA_ERRORS: Final = {
    ErrorCode.BROKER_NOT_AVAILABLE: (503, _BROKER_NOT_AVAILABLE),
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: (404, _UNKNOWN_TOPIC_OR_PARTITION),
    ErrorCode.UNKNOWN_TOPIC_ID: (404, _UNKNOWN_TOPIC_OR_PARTITION),
    ErrorCode.MESSAGE_TOO_LARGE: (413, 413),
    ErrorCode.RECORD_LIST_TOO_LARGE: (413, 413),
    ErrorCode.THROTTLING_QUOTA_EXCEEDED: (429, 42901),
    ErrorCode.SASL_AUTHENTICATION_FAILED: (401, 40101),
    ErrorCode.UNSUPPORTED_SASL_MECHANISM: (401, 40101),
    ErrorCode.ILLEGAL_SASL_STATE: (401, 40101),
    ErrorCode.GROUP_ID_NOT_FOUND: (404, 40405),
    **dict.fromkeys(
        (
            ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            ErrorCode.GROUP_AUTHORIZATION_FAILED,
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
            ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED,
        ),
        (403, 40301),
    ),
    **dict.fromkeys(
        (
            ErrorCode.INVALID_TOPIC_EXCEPTION,
            ErrorCode.INVALID_REPLICATION_FACTOR,
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            ErrorCode.INVALID_PARTITIONS,
            ErrorCode.INVALID_REQUEST,
            ErrorCode.INVALID_CONFIG,
            ErrorCode.POLICY_VIOLATION,
            ErrorCode.SECURITY_DISABLED,
            ErrorCode.TOPIC_ALREADY_EXISTS,
            ErrorCode.TOPIC_DELETION_DISABLED,
            ErrorCode.UNKNOWN_SERVER_ERROR,
            ErrorCode.UNSUPPORTED_VERSION,
            ErrorCode.INVALID_TIMESTAMP,
            ErrorCode.INVALID_RECORD,
            ErrorCode.OFFSET_METADATA_TOO_LARGE,
        ),
        (400, _BAD_REQUEST),
    ),
}


class RestError(HeadraceError):
    """A request, or one record of it, is answered with this error."""

    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message


def of_kafka(code: ErrorCode, message: str | None = None) -> RestError:
    """The answer where a broker refused something."""
    status, number = _KAFKA_ERRORS.get(code) or (
        500,
        _RETRIABLE if code.retriable else _KAFKA_ERROR,
    )
    return RestError(status, number, message or code.message)


def bad_request(detail: str) -> RestError:
    return RestError(400, 400, f"Bad Request: {detail}")


def not_found(detail: str = "HTTP 404 Not Found") -> RestError:
    return RestError(404, 404, detail)


def unsupported_media_type() -> RestError:
    return RestError(415, 415, "HTTP 415 Unsupported Media Type")


def not_acceptable() -> RestError:
    return RestError(406, 406, "HTTP 406 Not Acceptable")


def too_large(limit: int) -> RestError:
    return RestError(413, 413, f"The request is larger than {limit} bytes.")


def overloaded(what: str) -> RestError:
    """The proxy has no room for this now; the same request may succeed later."""
    return RestError(503, _BROKER_NOT_AVAILABLE, what)


def cluster_not_found(cluster_id: str) -> RestError:
    return not_found(f"Cluster {cluster_id} cannot be found.")


def topic_not_found() -> RestError:
    return RestError(404, 40401, "Topic not found.")


def unknown_topic_or_partition() -> RestError:
    return of_kafka(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def partition_not_found() -> RestError:
    return RestError(404, 40402, "Partition not found.")


def consumer_not_found() -> RestError:
    return RestError(404, 40403, "Consumer instance not found.")


def consumer_format_mismatch() -> RestError:
    return RestError(
        406,
        40601,
        "The requested embedded data format does not match the deserializer for this consumer instance",
    )


def consumer_exists() -> RestError:
    return RestError(
        409,
        40902,
        "Consumer with specified consumer ID already exists in the specified consumer group.",
    )


def illegal_state(why: str) -> RestError:
    return RestError(409, 40903, f"Illegal state: {why}")


def schema_missing(*, is_key: bool) -> RestError:
    what = "key" if is_key else "value"
    return RestError(
        422,
        42201 if is_key else 42202,
        f"Request includes {what}s but does not include {what} schema",
    )


def invalid_consumer_config(why: str) -> RestError:
    return RestError(422, 42204, f"Invalid consumer configuration: {why}")


def consumer_config_out_of_bounds(why: str) -> RestError:
    return RestError(
        422,
        40001,
        f"Invalid consumer configuration. It does not abide by the constraints: {why}",
    )


def invalid_schema(why: str) -> RestError:
    return RestError(422, 42205, f"Invalid schema: {why}")


def invalid_payload(why: str) -> RestError:
    return RestError(422, 42206, f"Payload error. {why}")


def serialization_failed(why: str) -> RestError:
    return RestError(422, 42207, f"Error serializing message. {why}")


def invalid_batch(why: str) -> RestError:
    return RestError(422, 42208, why)


def unprocessable(why: str) -> RestError:
    return RestError(422, 422, why)


def kafka_failed(why: str) -> RestError:
    """Something in Kafka failed, and asking again will not help."""
    return RestError(500, _KAFKA_ERROR, f"Kafka error: {why}")


def try_again(why: str) -> RestError:
    """Something in Kafka failed, and asking again may help."""
    return RestError(500, _RETRIABLE, why)
