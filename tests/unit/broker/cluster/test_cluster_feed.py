"""The order in which the parts of a broker hear of a change."""

from headrace.broker.cluster.cluster_feed import ClusterFeed, FeedListener
from headrace.broker.cluster.cluster_view import ClusterView
from headrace.controller.changes import BrokerRegistered, ChangeBatch
from headrace.controller.values import Broker


def test_listeners_hear_of_a_batch_around_the_view_and_in_order() -> None:
    cluster = ClusterView(1, "cluster", tells_dialled_address=False)
    heard: list[tuple[str, bool, ChangeBatch]] = []

    def listener(name: str) -> FeedListener:
        return FeedListener(
            name, lambda batch: heard.append((name, 7 in cluster.state.brokers, batch))
        )

    feed = ClusterFeed(
        cluster,
        before=(listener("compares"),),
        after=(listener("first"), listener("second")),
    )
    batch = ChangeBatch(1, 0, (BrokerRegistered(Broker(broker_id=7, epoch=3, endpoints=())),))
    feed.apply(batch)
    assert heard == [("compares", False, batch), ("first", True, batch), ("second", True, batch)]
