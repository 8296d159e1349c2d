"""Applies the dynamic configs that the cluster state holds for this broker to its settings."""

from headrace.broker.cluster.cluster_view import ClusterView
from headrace.controller.changes import ChangeBatch, ConfigChanged
from headrace.controller.values import ALL_BROKERS, ConfigKind
from headrace.settings.live_settings import LiveSettings


class DynamicSettings:
    """Listener of the cluster feed."""

    __slots__ = ("_cluster", "_live_settings")

    def __init__(self, cluster: ClusterView, live_settings: LiveSettings) -> None:
        self._cluster = cluster
        self._live_settings = live_settings

    def hear(self, batch: ChangeBatch) -> None:
        """Apply the configs of all brokers and of this one, if the batch may have changed them."""
        if batch.is_snapshot or any(map(_is_broker_config, batch.changes)):
            state = self._cluster.state
            self._live_settings.apply_dynamic(
                default=state.config(ConfigKind.BROKER, ALL_BROKERS),
                broker=state.config(ConfigKind.BROKER, str(self._cluster.broker_id)),
            )


def _is_broker_config(change: object) -> bool:
    return type(change) is ConfigChanged and change.kind is ConfigKind.BROKER
