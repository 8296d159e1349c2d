"""UpdateFeatures (57), versions 0-2: finalized levels of the cluster's features change, all of them or none.

v1 upgrade type (before: whether a downgrade is allowed), validate only · v2 no results of each feature any more, which up to v1 stand in
the answer only if all is well.
Errors, for all: INVALID_UPDATE_VERSION, NOT_CONTROLLER, REQUEST_TIMED_OUT, UNSUPPORTED_VERSION while a controller of an earlier version leads.
"""

from typing import Final

from headrace.broker.cluster.controller_call import TIMED_OUT, ask_controller
from headrace.broker.requests.request_context import RequestContext
from headrace.controller.core import Controller
from headrace.controller.features import FeatureUpdate, UpdateFeatures, UpgradeType
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)
from headrace.wire.refusal import Refusal

_LAST_WITH_RESULTS: Final = 1
_FAILED: Final = "The update failed for all features since the following feature had an error: "


async def handle(
    request: UpdateFeaturesRequest, context: RequestContext, *, controller: Controller
) -> UpdateFeaturesResponse:
    updates = tuple(_update(asked, context.version) for asked in request.feature_updates)
    if request.timeout_ms <= 0:
        return _answer(request, context.version, TIMED_OUT.error_code, TIMED_OUT.message)
    answer = await ask_controller(
        controller.ask(UpdateFeatures(updates=updates, validate_only=request.validate_only)),
        request.timeout_ms,
    )
    if isinstance(answer, Refusal):
        return _answer(request, context.version, answer.error_code, answer.message)
    message = f"{_FAILED}{answer.message}" if answer.error else None
    return _answer(request, context.version, answer.error, message)


def _update(asked: FeatureUpdateKey, version: int) -> FeatureUpdate:
    upgrade_type = asked.upgrade_type
    if version == 0:
        upgrade_type = UpgradeType.SAFE_DOWNGRADE if asked.allow_downgrade else UpgradeType.UPGRADE
    return FeatureUpdate(
        name=asked.feature, level=asked.max_version_level, upgrade_type=upgrade_type
    )


def _answer(
    request: UpdateFeaturesRequest, version: int, error: ErrorCode, message: str | None
) -> UpdateFeaturesResponse:
    if error:
        return UpdateFeaturesResponse(error_code=error, error_message=message)
    results: list[UpdatableFeatureResult] = []
    if version <= _LAST_WITH_RESULTS:
        results = [
            UpdatableFeatureResult(feature=each.feature, error_message=message)
            for each in request.feature_updates
        ]
    return UpdateFeaturesResponse(results=results)
