"""The APIs and versions that this broker advertises, and the answer to an ApiVersions request of an unknown version."""

from struct import Struct
from typing import Final, TypeAlias

from headrace.wire.api_keys import ApiKey
from headrace.wire.error_code import ErrorCode

AdvertisedApis: TypeAlias = tuple[tuple[int, int, int], ...]
"""(API key, first version, last version), in order of the key."""

_UNSUPPORTED: Final = Struct(">hihhh")  # error, one entry: key, first and last version


def unsupported_version_answer(first_version: int, last_version: int) -> bytes:
    """A v0 body that names the versions of ApiVersions itself, so that the client can try again."""
    return _UNSUPPORTED.pack(
        ErrorCode.UNSUPPORTED_VERSION, 1, ApiKey.API_VERSIONS, first_version, last_version
    )
