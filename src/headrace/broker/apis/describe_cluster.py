"""DescribeCluster (60), versions 0-2: the cluster's id, its controller and its brokers.

v1 endpoint type (KIP-919) · v2 fenced brokers; there are none: a broker is registered or it is not.
Errors: MISMATCHED_ENDPOINT_TYPE for the controllers' endpoints, which are no separate ones here, UNSUPPORTED_ENDPOINT_TYPE.
"""

from typing import Final

from headrace.broker.cluster.cluster_view import ClusterView
from headrace.broker.cluster.reachable_brokers import controller_id, reachable_brokers
from headrace.broker.requests.request_context import RequestContext
from headrace.broker.security.authorized_operations import CLUSTER_OPERATIONS, NOT_ASKED_FOR
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.describe_cluster import (
    DescribeClusterBroker,
    DescribeClusterRequest,
    DescribeClusterResponse,
)

_BROKERS: Final = 1
_CONTROLLERS: Final = 2


def handle(
    request: DescribeClusterRequest, context: RequestContext, *, cluster: ClusterView
) -> DescribeClusterResponse:
    if request.endpoint_type == _CONTROLLERS:
        return DescribeClusterResponse(
            error_code=ErrorCode.MISMATCHED_ENDPOINT_TYPE,
            error_message="The request was sent to an endpoint of type BROKER, but we wanted an "
            "endpoint of type CONTROLLER",
        )
    if request.endpoint_type != _BROKERS:
        return DescribeClusterResponse(
            error_code=ErrorCode.UNSUPPORTED_ENDPOINT_TYPE,
            error_message=f"Unsupported endpoint type {request.endpoint_type}",
        )
    reachable = reachable_brokers(cluster, context.connection)
    return DescribeClusterResponse(
        cluster_id=cluster.cluster_id,
        controller_id=controller_id(cluster, reachable),
        brokers=[
            DescribeClusterBroker(
                broker_id=broker_id,
                host=endpoint.host,
                port=endpoint.port,
                rack=cluster.state.brokers[broker_id].rack,
            )
            for broker_id, endpoint in reachable.items()
        ],
        cluster_authorized_operations=CLUSTER_OPERATIONS
        if request.include_cluster_authorized_operations
        else NOT_ASKED_FOR,
    )
