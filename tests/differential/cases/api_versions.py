"""ApiVersions, frames and headers: what a client meets before anything else."""

from struct import pack

from headrace.wire.api_keys import ApiKey
from headrace.wire.messages.api_versions import ApiVersionsRequest
from headrace.wire.messages.metadata import MetadataRequest
from tests.differential.plain import Plain
from tests.differential.requests import versions
from tests.differential.script import Script

# The APIs that Headrace has; Kafka has more.
OFFERED = {
    *(ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.METADATA, ApiKey.OFFSET_COMMIT),
    *(ApiKey.OFFSET_FETCH, ApiKey.FIND_COORDINATOR, ApiKey.JOIN_GROUP, ApiKey.HEARTBEAT),
    *(ApiKey.LEAVE_GROUP, ApiKey.SYNC_GROUP, ApiKey.DESCRIBE_GROUPS, ApiKey.LIST_GROUPS),
    *(ApiKey.API_VERSIONS, ApiKey.CREATE_TOPICS, ApiKey.DELETE_TOPICS, ApiKey.DELETE_RECORDS),
    *(ApiKey.INIT_PRODUCER_ID, ApiKey.OFFSET_FOR_LEADER_EPOCH, ApiKey.DESCRIBE_CONFIGS),
    *(ApiKey.ALTER_CONFIGS, ApiKey.DESCRIBE_LOG_DIRS, ApiKey.CREATE_PARTITIONS),
    *(ApiKey.DELETE_GROUPS, ApiKey.INCREMENTAL_ALTER_CONFIGS, ApiKey.OFFSET_DELETE),
    *(ApiKey.DESCRIBE_CLUSTER, ApiKey.DESCRIBE_PRODUCERS, ApiKey.LIST_CONFIG_RESOURCES),
    *(ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN, ApiKey.END_TXN),
    *(ApiKey.WRITE_TXN_MARKERS, ApiKey.TXN_OFFSET_COMMIT, ApiKey.DESCRIBE_TRANSACTIONS),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS,
}


def _ours(answer: Plain) -> Plain:
    apis = [api for api in answer["api_keys"] if api["api_key"] in OFFERED]
    return {"error_code": answer["error_code"], "api_keys": apis}


def every_api_is_offered_in_kafkas_versions(script: Script) -> None:
    for version in versions(ApiVersionsRequest):
        request = ApiVersionsRequest(client_software_name="test", client_software_version="1.0")
        script.ask(request, version, pick=_ours)


def a_client_must_name_itself_properly(script: Script) -> None:
    for name, version in (
        ("", "1"),
        ("a b", "1"),
        ("-a", "1"),
        ("a", ""),
        ("a", "1!"),
        ("a-b.c", "1-2"),
    ):
        request = ApiVersionsRequest(client_software_name=name, client_software_version=version)
        script.ask(request, 3, pick=lambda answer: answer["error_code"])


def an_unknown_version_of_api_versions_is_answered_in_version_0(script: Script) -> None:
    for version in (5, 99, 32767):
        header = pack(">hhih", ApiKey.API_VERSIONS, version, 7, -1)
        script.exchange_frames(f"ApiVersions v{version}", header + b"\0\x05whatever")


def unknown_keys_and_versions_end_the_connection(script: Script) -> None:
    for key, version in (
        (999, 0),
        (-1, 0),
        (ApiKey.METADATA, 14),
        (ApiKey.FETCH, 3),
        (ApiKey.PRODUCE, 2),
    ):
        script.exchange_frames(
            f"key {key} v{version}", pack(">hhih", key, version, 7, -1) + bytes(8)
        )


def garbage_ends_the_connection(script: Script) -> None:
    script.exchange_frames("short header", b"\0\x03\0")
    script.exchange_frames("body cut off", pack(">hhihi", ApiKey.METADATA, 1, 7, -1, 5))
    script.exchange_frames("huge array", pack(">hhihi", ApiKey.METADATA, 1, 7, -1, 2**31 - 1))
    script.exchange_frames("null array", pack(">hhihi", ApiKey.METADATA, 0, 7, -1, -1))


def unknown_tags_are_skipped(script: Script) -> None:
    """A header and a body with tags that no version of Kafka knows."""
    tags = b"\x01\xe8\x07\x03abc"  # one tag, number 1000, three bytes
    header = pack(">hhih", ApiKey.API_VERSIONS, 3, 7, -1) + tags
    body = b"\x05test\x041.0" + tags
    script.exchange_frames("tags", header + body, compared=6)  # correlation id and error code


def a_missing_client_id_is_fine(script: Script) -> None:
    script.ask(MetadataRequest(topics=()), 1, pick=lambda answer: answer["topics"])
