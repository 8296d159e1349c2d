"""Makes the hosted partitions what the cluster says they are: creates, leads, resigns, reconfigures, deletes.

Fed with the controller's changes, in order, before the request behind them is answered, many at a time excepted: these take
turns with everything else. Applying a change twice does nothing the second time. A partition's new epoch counts only once its log knows it.

A cluster state without this registration (broker id and broker epoch) gives nothing to lead and deletes nothing, because it
may describe an earlier run of this broker. It ends every leadership, because what was led under this registration was given
by a cluster state that contained it: since then the registration has been removed, and others are elected.
"""

import logging
from collections.abc import Callable
from typing import Final
from uuid import UUID

from headrace.broker.clock import Clock
from headrace.broker.cluster_view import ClusterView
from headrace.broker.follows import Following
from headrace.broker.live_settings import LiveSettings
from headrace.broker.settings.broker_settings import BrokerSettings
from headrace.broker.settings.topic_config import TopicConfig
from headrace.broker.shard_log import PartitionShardLog
from headrace.broker.traffic import Traffic
from headrace.broker.unsettled import Unsettled
from headrace.controller.changes import (
    Change,
    ChangeBatch,
    ConfigChanged,
    PartitionChanged,
    PartitionsAdded,
    TopicCreated,
    TopicDeleted,
)
from headrace.controller.values import ALL_BROKERS, ConfigKind
from headrace.controller.values import Partition as PartitionState
from headrace.coordination.lease import SessionLease
from headrace.coordination.store import SessionState
from headrace.coordinator.group.groups import Groups
from headrace.errors import CorruptBatch, DiskFailed, DiskFull
from headrace.ids import TopicPartition
from headrace.log.log_config import LogConfig
from headrace.log.log_dirs import LogDirs
from headrace.log.partition_log import PartitionLog
from headrace.replication.partition import Partition
from headrace.replication.partition_table import PartitionTable

_logger = logging.getLogger(__name__)

OFFSETS_TOPIC: Final = "__consumer_offsets"


class Roles:
    """See the module's text."""

    def __init__(  # noqa: PLR0913 (it acts on all of these)
        self,
        *,
        cluster: ClusterView,
        partitions: PartitionTable,
        log_dirs: LogDirs,
        groups: Groups,
        followers: Following,
        live_settings: LiveSettings,
        traffic: Traffic,
        clock: Clock,
        broker_epoch: Callable[[], int],
        on_topics_deleted: Callable[[list[tuple[str, UUID]], list[str]], None],
        lease: SessionLease,
        new_at_once: int | None = None,
    ) -> None:
        """`broker_epoch` is that of the present registration, `lease` that on the session with the store.

        With `new_at_once`, of many partitions with new roles only so many are settled by `apply`; the others by `settle_some`.
        `on_topics_deleted` hears (name, id) of topics that are gone and the directories left to remove.
        """
        self._cluster = cluster
        self._partitions = partitions
        self._log_dirs = log_dirs
        self._groups = groups
        self._followers = followers
        self._live_settings = live_settings
        self._traffic = traffic
        self._clock = clock
        self._broker_epoch = broker_epoch
        self._on_topics_deleted = on_topics_deleted
        self._lease = lease
        self._void_epoch = -1  # of a registration that went with its session
        self._is_suspended = False
        self._is_behind = False  # changes were left out that a whole picture must make up for
        self._without_room: dict[TopicPartition, bool] = {}  # → whether it is new
        self._at_once = new_at_once
        self._unsettled = Unsettled()
        live_settings.listen(self._on_settings)

    def apply(self, batch: ChangeBatch) -> None:
        """Take in what the controller published."""
        self._cluster.apply(batch)
        if not self.is_registered:
            self._resign_all()
        if batch.is_snapshot or self._is_behind or not self.is_registered:
            self._is_behind = True
            self._make_up(self._at_once)
        else:
            for change in batch.changes:
                self._apply(change)
            self.settle_some(self._at_once)

    @property
    def is_registered(self) -> bool:
        """Whether the controller's picture knows this very incarnation of the broker."""
        us = self._cluster.state.brokers.get(self._cluster.broker_id)
        return us is not None and us.epoch == self._broker_epoch() != self._void_epoch

    @property
    def may_lead(self) -> bool:
        """Whether what the picture gives this broker to lead is its to lead now."""
        return self.is_registered and not self._is_suspended

    def registered(self) -> None:
        """There is a new registration; the controller's picture may know it before we do."""
        self._make_up(None)

    def _make_up(self, at_once: int | None) -> None:
        if self._is_behind and self.is_registered:
            self._is_behind = False
            self._reconcile(at_once)

    def _apply(self, change: Change) -> None:
        match change:
            case TopicCreated(name, _, partitions):
                self._unsettled.add_new(name, range(len(partitions)))
            case PartitionsAdded(name, first, partitions):
                self._unsettled.add_new(name, range(first, first + len(partitions)))
            case PartitionChanged(name, index, state):
                topic_id = self._cluster.state.topics[name].topic_id
                self._in_turn(name, topic_id, index, state)
            case TopicDeleted(name, topic_id, _):
                self._delete(name, topic_id)
            case ConfigChanged(ConfigKind.TOPIC, name, _):
                self._reconfigure(name)
            case ConfigChanged(ConfigKind.BROKER, _, _):
                self._apply_dynamic_settings()

    # ---- a whole picture

    def _reconcile(self, at_once: int | None) -> None:
        state = self._cluster.state
        self._apply_dynamic_settings()
        for topic in state.topics.values():
            for index, partition in enumerate(topic.partitions):
                self._in_turn(topic.name, topic.topic_id, index, partition)
        self.settle_some(at_once)
        wanted = {
            TopicPartition(topic.name, index): topic.topic_id
            for topic in state.topics.values()
            for index, partition in enumerate(topic.partitions)
            if self._cluster.broker_id in partition.replicas
        }
        for log in list(self._log_dirs):
            if log.topic_partition not in wanted:
                self._set_stray_aside(log)
        for topic_id, deleted in state.deleted_topics.items():
            if self._cluster.broker_id in deleted.pending:
                self._delete(deleted.name, topic_id)

    def _set_stray_aside(self, log: PartitionLog) -> None:
        is_deleted = log.topic_id in self._cluster.state.deleted_topics
        self._drop(log.topic_partition)
        path = self._set_aside(log.topic_partition, "delete" if is_deleted else "stray")
        _logger.warning("%s is not this broker's: set aside as %s", log.topic_partition, path)

    # ---- one partition

    def _in_turn(self, topic: str, topic_id: UUID, index: int, state: PartitionState) -> None:
        """At once, unless the partition is here and changes hands."""
        here = self._partitions.get(topic, index)
        if here is None or here.topic_id != topic_id or here.leader_epoch >= state.leader_epoch:
            self._settle(topic, topic_id, index, state)
        else:
            is_ours = state.leader == self._cluster.broker_id
            if here.is_leader and not is_ours:
                self._resign(here)  # at once: another broker leads in a later epoch
            self._unsettled.add(here.topic_partition, is_led_here=is_ours)

    def _settle(
        self,
        topic: str,
        topic_id: UUID,
        index: int,
        state: PartitionState,
        *,
        is_new: bool = False,
    ) -> None:
        topic_partition = TopicPartition(topic, index)
        is_new = self._unsettled.take(topic_partition) or is_new
        if self._cluster.broker_id not in state.replicas:
            if self._drop(topic_partition) is not None:
                path = self._set_aside(topic_partition, "delete")
                self._on_topics_deleted([], [] if path is None else [path])
            return
        try:
            partition = self._partitions.get(topic, index)
            if partition is None or partition.topic_id != topic_id:
                partition = self._host(topic_partition, topic_id, is_new=is_new)
            if partition is not None:
                self._give_role(partition, state)
        except DiskFull as error:
            _logger.error("%s waits for room on the disk: %s", topic_partition, error)
            self._without_room[topic_partition] = is_new
        except (DiskFailed, CorruptBatch) as error:
            _logger.error("%s cannot be used: %s", topic_partition, error)
            if isinstance(error, DiskFailed):
                self.take_offline(topic_partition, error)

    def settle_again(self) -> None:
        """Try once more what failed for want of room."""
        waiting, self._without_room = self._without_room, {}
        for topic_partition, is_new in waiting.items():
            self._settle_as_known(topic_partition, is_new=is_new)

    def settle_some(self, limit: int | None = None) -> bool:
        """Settle partitions that wait for their turn, at most `limit`. Returns whether others remain.

        What waits while this broker is not registered is taken up with the next whole picture.
        """
        waiting = self._unsettled.first(limit) if self.is_registered else []
        for topic_partition in waiting:
            is_new = self._unsettled.take(topic_partition)
            self._settle_as_known(topic_partition, is_new=is_new)
        return bool(waiting) and self.has_unsettled

    @property
    def has_unsettled(self) -> bool:
        """Whether partitions wait for their turn."""
        return len(self._unsettled) > 0

    def _settle_as_known(self, topic_partition: TopicPartition, *, is_new: bool) -> None:
        name, index = topic_partition
        topic = self._cluster.state.topics.get(name)
        if topic is not None and index < len(topic.partitions):
            state = topic.partitions[index]
            self._settle(name, topic.topic_id, index, state, is_new=is_new)

    def _give_role(self, partition: Partition, state: PartitionState) -> None:
        broker_id = self._cluster.broker_id
        if state.leader_epoch < partition.leader_epoch:
            return
        now_ms = self._clock()
        if state.leader_epoch == partition.leader_epoch:
            partition.isr_decided(state, now_ms=now_ms)
        elif state.leader == broker_id:
            if not self._is_suspended:
                self._followers.leave(partition)
                partition.become_leader(broker_id, state, now_ms=now_ms)
                self._coordinate(partition)
        else:
            self._resign(partition)
            partition.become_follower(state.leader, state.leader_epoch)
            self._followers.follow(partition, state.leader, self._on_disk_failed)

    def _host(
        self, topic_partition: TopicPartition, topic_id: UUID, *, is_new: bool
    ) -> Partition | None:
        now_ms = self._clock()
        log = self._log_dirs.get(topic_partition)
        if log is not None and log.topic_id not in (None, topic_id):
            # Left by a topic that was deleted while this broker was away; the name is in use again.
            self._drop(topic_partition)
            self._set_aside(topic_partition, "delete")
            log = None
        config = self.topic_config(topic_partition.topic)
        if log is None:
            if not is_new and (self._log_dirs.offline or topic_partition in self._log_dirs.broken):
                # An empty log in its place would pass for all that there ever was.
                _logger.error("%s: its log may lie where it cannot be read now", topic_partition)
                return None
            log = self._log_dirs.create(topic_partition, topic_id, now_ms=now_ms)
        elif log.topic_id is None:
            self._log_dirs.adopt(log, topic_id)
        log.update_config(self.log_config(config))
        directory = self._log_dirs.directory_of(topic_partition)
        checkpointed = {} if directory is None else directory.high_watermarks
        partition = Partition(
            topic_partition,
            topic_id,
            log,
            high_watermark=checkpointed.get(topic_partition, 0),
            on_disk_failed=self._on_disk_failed,
            lease=self._lease,
        )
        self._partitions.add(partition)
        return partition

    # ---- the right to lead

    def session_changed(self, state: SessionState) -> None:
        """It hangs on the session with the store: another may be elected when that is over."""
        if state is SessionState.OVERDUE:
            self._is_suspended = True
            for partition in self._partitions:
                if partition.is_leader:
                    partition.suspend()
                    self._stop_coordinating(partition)
        elif state is SessionState.LOST:
            # Only a picture with the next registration in it can say what is ours.
            self._void_epoch = self._broker_epoch()
            self._is_suspended = False
            self._resign_all()
        elif state is SessionState.CONNECTED and self._is_suspended:
            self._is_suspended = False
            self._resume_all()

    def _resign_all(self) -> None:
        """What was led under a registration that is gone is led by others, or will be: no epoch of it comes back."""
        for partition in self._partitions:
            if partition.is_leader:
                self._stop_coordinating(partition)
            partition.resign()

    def _resume_all(self) -> None:
        for partition in self._partitions:
            if partition.resume(now_ms=self._clock()):
                self._coordinate(partition)
        if self.is_registered:
            self._reconcile(None)

    def _coordinate(self, partition: Partition) -> None:
        topic, index = partition.topic_partition
        if topic == OFFSETS_TOPIC:
            codec = self._live_settings.current.offsets_topic_compression_codec
            self._groups.elected(index, PartitionShardLog(partition, codec=codec))

    def _stop_coordinating(self, partition: Partition) -> None:
        topic, index = partition.topic_partition
        if topic == OFFSETS_TOPIC:
            self._groups.resigned(index)

    def _resign(self, partition: Partition) -> None:
        partition.resign()
        self._followers.leave(partition)
        self._stop_coordinating(partition)

    def _drop(self, topic_partition: TopicPartition) -> Partition | None:
        partition = self._partitions.remove(topic_partition)
        if partition is not None:
            self._resign(partition)
        return partition

    def _on_disk_failed(self, partition: Partition, error: DiskFailed) -> None:
        self.take_offline(partition.topic_partition, error)

    def take_offline(self, topic_partition: TopicPartition, error: DiskFailed) -> None:
        """The disk under a partition failed: give up everything in its directory, unless it is only full."""
        directory = self._log_dirs.directory_of(topic_partition)
        if isinstance(error, DiskFull):
            _logger.error("%s; what could not be written is tried again", error)
        elif directory is not None:
            for lost in self._log_dirs.take_offline(directory.path, str(error)):
                self._drop(lost)

    def _set_aside(self, topic_partition: TopicPartition, suffix: str) -> str | None:
        directory = self._log_dirs.directory_of(topic_partition)
        try:
            return self._log_dirs.set_aside(topic_partition, suffix)
        except DiskFailed as error:
            _logger.error("%s cannot be set aside: %s", topic_partition, error)
            neighbour = next(iter(directory.logs), None) if directory is not None else None
            if neighbour is not None:
                self.take_offline(neighbour, error)
            return None

    # ---- topics

    def _delete(self, topic: str, topic_id: UUID) -> None:
        paths: list[str] = []
        hosted = self._partitions.of_topic(topic) or {}
        for index, partition in list(hosted.items()):
            if partition.topic_id == topic_id:
                self._drop(TopicPartition(topic, index))
                path = self._set_aside(TopicPartition(topic, index), "delete")
                if path is not None:
                    paths.append(path)
        self._traffic.forget(topic)
        self._on_topics_deleted([(topic, topic_id)], paths)

    def topic_config(self, topic: str) -> TopicConfig:
        """A topic's configuration as it is now."""
        overrides = self._cluster.state.config(ConfigKind.TOPIC, topic)
        return self._live_settings.current.topic_config(overrides)

    def log_config(self, config: TopicConfig) -> LogConfig:
        """What a log needs of it."""
        expiration_ms = self._live_settings.current.producer_id_expiration_ms
        return config.to_log_config(producer_id_expiration_ms=expiration_ms)

    def _reconfigure(self, topic: str) -> None:
        config = self.topic_config(topic)
        log_config = self.log_config(config)
        for partition in (self._partitions.of_topic(topic) or {}).values():
            partition.log.update_config(log_config)

    def _apply_dynamic_settings(self) -> None:
        state = self._cluster.state
        self._live_settings.apply_dynamic(
            default=state.config(ConfigKind.BROKER, ALL_BROKERS),
            broker=state.config(ConfigKind.BROKER, str(self._cluster.broker_id)),
        )

    def _on_settings(self, _: BrokerSettings) -> None:
        # Topics inherit what they do not set themselves.
        for topic in {partition.topic_partition.topic for partition in self._partitions}:
            self._reconfigure(topic)
