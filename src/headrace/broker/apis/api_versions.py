"""ApiVersions (18), versions 0-4: what this broker offers.

v1 throttle time · v3 client name and version, features (KIP-511, KIP-584) · v4 features whose minimum is 0.
Errors: UNSUPPORTED_VERSION (in a v0 body that every client can read), INVALID_REQUEST for an odd client name.
"""

import re
from typing import Final

from headrace.broker.cluster.cluster_view import ClusterView
from headrace.broker.requests.advertised_apis import AdvertisedApis
from headrace.broker.requests.request_context import RequestContext
from headrace.controller.features import SUPPORTED_LEVELS
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)

_SOFTWARE_NAME: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
_FIRST_WITH_ZERO: Final = 4
# Those with the highest level 0 are not there; clients and `kafka-features describe` go by their names.
_FEATURES: Final = tuple(
    SupportedFeatureKey(name=name, min_version=0, max_version=level)
    for name, level in SUPPORTED_LEVELS.items()
)


def handle(
    request: ApiVersionsRequest,
    context: RequestContext,
    *,
    advertised_apis: AdvertisedApis,
    cluster: ClusterView,
) -> ApiVersionsResponse:
    if context.version >= 3 and not (
        _SOFTWARE_NAME.fullmatch(request.client_software_name)
        and _SOFTWARE_NAME.fullmatch(request.client_software_version)
    ):
        return ApiVersionsResponse(error_code=ErrorCode.INVALID_REQUEST)
    return ApiVersionsResponse(
        api_keys=[
            ApiVersion(api_key=key, min_version=first, max_version=last)
            for key, first, last in advertised_apis
        ],
        supported_features=_FEATURES if context.version >= _FIRST_WITH_ZERO else (),
        finalized_features_epoch=cluster.state.features_epoch,
        finalized_features=[
            FinalizedFeatureKey(name=name, min_version_level=level, max_version_level=level)
            for name, level in cluster.state.features.items()
            if level > 0
        ],
    )
