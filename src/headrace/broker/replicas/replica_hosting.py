"""Hosts what the cluster state assigns to this broker: creates and deletes logs, gives partitions their roles and configs.

Owns which partition is hosted and in which role. The controller's changes come in order, each batch before the request
behind it is answered. A batch only tells which partitions to look at: what each becomes is read from the newest cluster
state, by topic id, so that a topic that was deleted, or created again under the same name, in the same batch is never
mistaken for another one. Role changes beyond the first few of a batch wait in a queue, which `role_application` empties. A partition's
new leader epoch counts only once its log knows it.

A cluster state without this registration (broker id and broker epoch) gives nothing to lead and deletes nothing, because it
may describe an earlier run of this broker. It ends every leadership, because what was led under this registration was given
by a cluster state that contained it: since then the registration has been removed, and others are elected.

A log that has seen a newer leader epoch than the cluster state is newer than the coordination store, of which a backup was
restored. It is neither led nor cut to what a leader has, until the leader epoch has been raised above those that it has seen.
"""

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol
from uuid import UUID

from headrace.broker.cluster.cluster_view import ClusterView
from headrace.broker.coordinators.coordinator_table import CoordinatorTable
from headrace.broker.replicas.role_queue import RoleQueue
from headrace.broker.telemetry.traffic import Traffic
from headrace.clock import Clock
from headrace.controller.changes import (
    Change,
    ChangeBatch,
    ConfigChanged,
    PartitionChanged,
    PartitionsAdded,
    TopicCreated,
    TopicDeleted,
)
from headrace.controller.cluster_state import Topic
from headrace.controller.values import NO_LEADER, ConfigKind, PartitionState
from headrace.coordination.lease import SessionLease
from headrace.coordination.store import SessionState
from headrace.errors import CorruptBatch, DiskFailed, DiskFull
from headrace.ids import TopicIdPartition, TopicPartition
from headrace.log.log_config import LogConfig
from headrace.log.log_dirs import LogDirs
from headrace.log.partition_log import PartitionLog
from headrace.replication.follower import LossyEpochs
from headrace.replication.partition import Partition
from headrace.replication.partition_table import PartitionTable
from headrace.settings.broker_settings import BrokerSettings
from headrace.settings.dynamic import readable_topic_config
from headrace.settings.live_settings import LiveSettings
from headrace.settings.topic_config import TopicConfig

_logger = logging.getLogger(__name__)


class ReplicaFetchers(Protocol):
    """What role changes need of the replica fetchers: start and stop following a leader."""

    def follow(
        self,
        partition: Partition,
        leader_id: int,
        on_disk_failed: Callable[[Partition, DiskFailed], None],
    ) -> None:
        """Fetch a partition from its leader; -1 is no leader."""

    def leave(self, partition: Partition) -> None:
        """Stop fetching a partition."""


class ReplicaHosting:
    """Hosts the replicas that the cluster state assigns to this broker. The event loop owns it."""

    def __init__(  # noqa: PLR0913 (it acts on all of these)
        self,
        *,
        cluster: ClusterView,
        partitions: PartitionTable,
        log_dirs: LogDirs,
        coordinators: CoordinatorTable,
        fetchers: ReplicaFetchers,
        live_settings: LiveSettings,
        traffic: Traffic,
        clock: Clock,
        broker_epoch: Callable[[], int],
        on_topics_deleted: Callable[[list[tuple[str, UUID]], list[str]], None],
        lease: SessionLease,
        new_at_once: int | None = None,
    ) -> None:
        """`broker_epoch` is that of the present registration, `lease` that on the session with the store.

        With `new_at_once`, of many partitions with new roles only so many are given their role by `apply`; the others by `apply_queued`.
        `on_topics_deleted` is called with (name, id) of deleted topics and the directories that are left to remove.
        """
        self._cluster = cluster
        self._partitions = partitions
        self._log_dirs = log_dirs
        self._coordinators = coordinators
        self._fetchers = fetchers
        self._live_settings = live_settings
        self._traffic = traffic
        self._clock = clock
        self._broker_epoch = broker_epoch
        self._on_topics_deleted = on_topics_deleted
        self._lease = lease
        self._void_epoch = -1  # the broker epoch of a registration that ended with its session
        self._is_suspended = False
        self._needs_full_state = False  # changes came while this broker was not registered
        self._without_room: dict[TopicIdPartition, bool] = {}  # → whether it is new
        self._newer_logs: dict[TopicIdPartition, int] = {}  # → the newest leader epoch in the log
        self.highest_producer_id = -1  # in the logs that were hosted
        self._at_once = new_at_once
        self._queue = RoleQueue()
        live_settings.listen(self._on_settings)

    def apply(self, batch: ChangeBatch) -> None:
        """Act on a batch of changes, which the cluster view has applied already."""
        if not self.is_registered:
            self._resign_all()
        if not batch.is_snapshot:
            self._enqueue_new(batch.changes)
        if batch.is_snapshot or self._needs_full_state or not self.is_registered:
            self._needs_full_state = True
            self._reconcile_if_stale(self._at_once)
        else:
            self._apply_changes(batch.changes)
            self.apply_queued(self._at_once)

    @property
    def is_registered(self) -> bool:
        """Whether the cluster state contains this registration (broker id and broker epoch)."""
        us = self._cluster.state.brokers.get(self._cluster.broker_id)
        return us is not None and us.epoch == self._broker_epoch() != self._void_epoch

    @property
    def may_lead(self) -> bool:
        """Whether this broker may lead what the cluster state gives it: it is registered and its session is not overdue."""
        return self.is_registered and not self._is_suspended

    def registered(self) -> None:
        """This broker has a new broker epoch. The cluster state may have contained it before."""
        self._reconcile_if_stale(None)

    def _reconcile_if_stale(self, at_once: int | None) -> None:
        if self._needs_full_state and self.is_registered:
            self._needs_full_state = False
            self._reconcile(at_once)

    # ---- a batch of changes

    def _enqueue_new(self, changes: Sequence[Change]) -> None:
        """Queue the new partitions of this batch as new, because a snapshot does not say which are."""
        for change in changes:
            match change:
                case TopicCreated(name, _, partitions):
                    first = 0
                case PartitionsAdded(name, first, partitions):
                    pass
                case _:
                    continue
            topic = self._cluster.state.topics.get(name)
            for index in range(first, first + len(partitions)):
                if topic is not None and self._is_assigned(topic, index):
                    self._queue.add_new(TopicIdPartition(topic.topic_id, index))

    def _apply_changes(self, changes: Sequence[Change]) -> None:
        """Reconcile every partition that the changes mention with the newest cluster state."""
        deleted: dict[UUID, str] = {}
        configured: dict[str, None] = {}
        changed: dict[TopicPartition, None] = {}
        for change in changes:
            match change:
                case TopicDeleted(name, topic_id, _):
                    deleted[topic_id] = name
                case ConfigChanged(ConfigKind.TOPIC, name, _):
                    configured[name] = None
                case PartitionChanged(name, index, _):
                    changed[TopicPartition(name, index)] = None
                case _:
                    pass
        if deleted:
            self._remove_topics(deleted)
        for name in configured:
            self._reconfigure(name)
        for name, index in changed:
            topic = self._cluster.state.topics.get(name)
            if topic is not None and index < len(topic.partitions):
                self._apply_or_enqueue(topic, index)

    # ---- a whole state

    def _reconcile(self, at_once: int | None) -> None:
        """Reconcile all logs and partitions with the cluster state, whatever was applied before."""
        state = self._cluster.state
        self._reconfigure_all()
        deleted = {
            topic_id: topic.name
            for topic_id, topic in state.deleted_topics.items()
            if self._cluster.broker_id in topic.pending
        }
        if deleted:
            self._remove_topics(deleted)
        self._set_foreign_logs_aside()
        for topic in state.topics.values():
            for index in range(len(topic.partitions)):
                self._apply_or_enqueue(topic, index)
        self.apply_queued(at_once)

    def _set_foreign_logs_aside(self) -> None:
        """Free the names of logs that the state does not assign to this broker."""
        state = self._cluster.state
        for log in list(self._log_dirs):
            name, index = log.topic_partition
            topic = state.topics.get(name)
            if name in state.unreadable_topics:
                self._drop(log.topic_partition)  # the log stays, because its topic is not known
            elif topic is None or log.topic_id not in (None, topic.topic_id):
                self._set_foreign_log_aside(log)
            elif not self._is_assigned(topic, index) and self._partitions.get(name, index) is None:
                # Reassigned while this broker was away. Kept, because this broker did not see the reassignment.
                self._set_foreign_log_aside(log)

    def _set_foreign_log_aside(self, log: PartitionLog) -> None:
        """Delete the log of a deleted topic; keep what nobody knows under another name."""
        where = log.topic_partition
        self._drop(where)
        if log.topic_id in self._cluster.state.deleted_topics:
            self._remove_log(where)
        else:
            path = self._set_aside(where, "stray")
            _logger.warning("%s is not this broker's: set aside as %s", where, path)

    # ---- one partition

    def _is_assigned(self, topic: Topic, index: int) -> bool:
        """Whether this broker is to hold a replica."""
        return (
            index < len(topic.partitions)
            and self._cluster.broker_id in topic.partitions[index].replicas
        )

    def _apply_or_enqueue(self, topic: Topic, index: int) -> None:
        """Apply the role at once, unless the partition is in the queue or has a new leader epoch: then it is queued."""
        where = TopicIdPartition(topic.topic_id, index)
        state = topic.partitions[index]
        hosted = self._partitions.get(topic.name, index)
        if not self._is_assigned(topic, index):
            self._apply_role(where)
        elif hosted is not None and hosted.leader_epoch < state.leader_epoch:
            is_led_here = state.leader == self._cluster.broker_id
            if hosted.is_leader and not is_led_here:
                self._resign(hosted)  # at once: another broker leads in a later epoch
            self._queue.add(where, is_urgent=is_led_here)
        elif where not in self._queue:
            self._apply_role(where)

    def _apply_role(
        self, where: TopicIdPartition, *, is_new: bool = False, is_retry: bool = False
    ) -> None:
        """Host a partition in the role that the newest state gives it, or no longer host it."""
        is_new = self._queue.remove(where) or is_new
        topic = self._cluster.state.topics_by_id.get(where.topic_id)
        if topic is None or where.partition >= len(topic.partitions):
            return  # deleted: `_remove_topics` took care of its log
        topic_partition = TopicPartition(topic.name, where.partition)
        if not self._is_assigned(topic, where.partition):
            if self._drop(topic_partition) is not None:
                self._remove_log(topic_partition)
            return
        try:
            partition = self._partitions.get(*topic_partition)
            if partition is None:
                partition = self._host(topic_partition, topic.topic_id, is_new=is_new)
            if partition is not None:
                self._give_role(partition, topic.partitions[where.partition])
        except DiskFull as error:
            level = logging.DEBUG if is_retry else logging.ERROR  # once, not with every retry
            _logger.log(level, "%s waits for room on the disk: %s", topic_partition, error)
            self._without_room[where] = is_new
        except (DiskFailed, CorruptBatch) as error:
            _logger.error("%s cannot be used: %s", topic_partition, error)
            if isinstance(error, DiskFailed):
                self.take_offline(topic_partition, error)

    def retry_after_full_disk(self) -> None:
        """Apply again the roles of partitions for which the disk had no room; none while this broker is not registered."""
        if not self.is_registered:
            return
        waiting, self._without_room = self._without_room, {}
        for where, is_new in waiting.items():
            self._apply_role(where, is_new=is_new, is_retry=True)

    def apply_queued(self, limit: int | None = None) -> bool:
        """Apply the roles of partitions in the queue, at most `limit`. Returns whether others remain.

        While this broker is not registered they stay in the queue.
        """
        waiting = self._queue.first(limit) if self.is_registered else []
        for where in waiting:
            self._apply_role(where)
        return bool(waiting) and self.has_queued_roles

    @property
    def has_queued_roles(self) -> bool:
        """Whether partitions are in the queue."""
        return len(self._queue) > 0

    def _give_role(self, partition: Partition, state: PartitionState) -> None:
        broker_id = self._cluster.broker_id
        where = TopicIdPartition(partition.topic_id, partition.topic_partition.partition)
        now_ms = self._clock()
        if state.leader_epoch == partition.leader_epoch:
            partition.isr_decided(state, now_ms=now_ms)
        elif state.leader_epoch < partition.leader_epoch:
            # The state is that of a deposed controller, or of a restored backup of the store.
            if state.leader == broker_id and not partition.is_leader:
                self._newer_logs[where] = max(partition.leader_epoch, partition.newest_epoch)
        elif self._is_newer(partition, state):
            self._note_newer(where, partition, state)
        elif state.leader == broker_id:
            if not self._is_suspended:
                self._fetchers.leave(partition)
                partition.become_leader(broker_id, state, now_ms=now_ms)
                self._coordinators.elected(partition)
        else:
            self._resign(partition)
            lossy = LossyEpochs(state.unclean_epoch, state.crashed_epoch)
            is_of_other_history = not state.has_given_out(partition.newest_epoch)
            partition.become_follower(
                state.leader, state.leader_epoch, lossy, is_of_other_history=is_of_other_history
            )
            self._fetchers.follow(partition, state.leader, self._on_disk_failed)

    # ---- logs that are newer than the coordination store

    def newer_logs(self) -> dict[TopicIdPartition, int]:
        """Partitions that this broker can lead only in a leader epoch above the given one."""
        found: dict[TopicIdPartition, int] = {}
        for where, epoch in self._newer_logs.items():
            topic = self._cluster.state.topics_by_id.get(where.topic_id)
            if topic is not None and where.partition < len(topic.partitions):
                state = topic.partitions[where.partition]
                if state.leader == self._cluster.broker_id and state.leader_epoch <= epoch:
                    found[where] = epoch
        self._newer_logs = found
        return found

    def _is_newer(self, partition: Partition, state: PartitionState) -> bool:
        """Whether the replica can have no role, because its log has seen a later leader epoch than the state."""
        log = partition.log
        if state.leader != self._cluster.broker_id:
            # The leader cannot tell the end offset of an epoch that is later than its own.
            return log.leader_epochs.latest > state.leader_epoch
        return partition.newest_epoch > state.leader_epoch or log.leader_epochs.has_written(
            state.leader_epoch, log.log_end_offset
        )

    def _note_newer(
        self, where: TopicIdPartition, partition: Partition, state: PartitionState
    ) -> None:
        self._resign(partition)
        epoch = partition.newest_epoch
        if state.leader == self._cluster.broker_id:
            self._newer_logs[where] = epoch
        elif state.leader != NO_LEADER:
            partition.refuse_leader(
                f"does not follow broker {state.leader}, which leads in leader epoch {state.leader_epoch}: this log holds"
                f" records of leader epoch {epoch}, so the coordination store is older than the logs. If this replica does"
                " not return to the ISR, the leader lacks those records: see docs/operating/cluster.md, a restored backup"
            )

    def _host(
        self, topic_partition: TopicPartition, topic_id: UUID, *, is_new: bool
    ) -> Partition | None:
        now_ms = self._clock()
        log = self._log_dirs.get(topic_partition)
        config = self.topic_config(topic_partition.topic)
        if log is None:
            if not is_new and (self._log_dirs.offline or topic_partition in self._log_dirs.broken):
                # A new, empty log would look as if the partition had no records.
                _logger.error("%s: its log may lie where it cannot be read now", topic_partition)
                return None
            log = self._log_dirs.create(
                topic_partition, topic_id, now_ms=now_ms, on_failed=self._take_directory_offline
            )
        elif log.topic_id is None:
            self._log_dirs.adopt(log, topic_id)
        self.highest_producer_id = max(self.highest_producer_id, log.producers.highest_id)
        log.update_config(self.log_config(config))
        directory = self._log_dirs.directory_of(topic_partition)
        assert directory is not None, f"{topic_partition} has a log in no directory"
        partition = Partition(
            topic_partition,
            topic_id,
            log,
            high_watermark=directory.high_watermarks.get(topic_partition, 0),
            seen_epoch=directory.seen_epochs.get(topic_partition, -1),
            on_disk_failed=self._on_disk_failed,
            lease=self._lease,
        )
        self._partitions.add(partition)
        return partition

    # ---- the right to lead

    def session_changed(self, state: SessionState) -> None:
        """Suspend leadership when the session with the store is overdue and resign when it is lost: another leader may be elected then."""
        if state is SessionState.OVERDUE:
            self._is_suspended = True
            for partition in self._partitions:
                if partition.is_leader:
                    partition.suspend()
                    self._coordinators.resigned(partition)
        elif state is SessionState.LOST:
            # Ignore cluster states until one contains the next registration of this broker.
            self._void_epoch = self._broker_epoch()
            self._is_suspended = False
            self._resign_all()
        elif state is SessionState.CONNECTED and self._is_suspended:
            self._is_suspended = False
            self._resume_all()

    def _resign_all(self) -> None:
        """Resign every leadership, because the registration under which it was given is gone and others are elected."""
        for partition in self._partitions:
            if partition.is_leader:
                self._coordinators.resigned(partition)
            partition.resign()

    def _resume_all(self) -> None:
        for partition in self._partitions:
            if partition.resume(now_ms=self._clock()):
                self._coordinators.elected(partition)
        if self.is_registered:
            self._reconcile(None)

    def _resign(self, partition: Partition) -> None:
        partition.resign()
        self._fetchers.leave(partition)
        self._coordinators.resigned(partition)

    def _drop(self, topic_partition: TopicPartition) -> Partition | None:
        partition = self._partitions.remove(topic_partition)
        if partition is not None:
            self._resign(partition)
        return partition

    def _on_disk_failed(self, partition: Partition, error: DiskFailed) -> None:
        self.take_offline(partition.topic_partition, error)

    def take_offline(self, topic_partition: TopicPartition, error: DiskFailed) -> None:
        """The disk under a partition failed: take its log directory offline, unless the disk is only full."""
        directory = self._log_dirs.directory_of(topic_partition)
        if isinstance(error, DiskFull):
            _logger.error("%s; what could not be written is tried again", error)
        elif directory is not None:
            self._take_directory_offline(directory.path, error)

    def _take_directory_offline(self, path: str, error: DiskFailed) -> None:
        for lost in self._log_dirs.take_offline(path, str(error)):
            self._drop(lost)

    def _set_aside(self, topic_partition: TopicPartition, suffix: str) -> str | None:
        directory = self._log_dirs.directory_of(topic_partition)
        try:
            return self._log_dirs.set_aside(topic_partition, suffix)
        except DiskFailed as error:
            # The directory goes offline, because the old records keep a name that another topic may get.
            _logger.error("%s cannot be set aside: %s", topic_partition, error)
            if directory is not None:
                self._take_directory_offline(directory.path, error)
            return None

    # ---- topics

    def _remove_topics(self, deleted: Mapping[UUID, str]) -> None:
        """Delete the logs of deleted topics (id → name)."""
        paths = []
        for log in [log for log in self._log_dirs if log.topic_id in deleted]:
            self._drop(log.topic_partition)
            self._log_dirs.wanted.pop(log.topic_partition, None)
            path = self._set_aside(log.topic_partition, "delete")
            if path is not None:
                paths.append(path)
        for name in deleted.values():
            self._traffic.forget(name)
        self._on_topics_deleted([(name, topic_id) for topic_id, name in deleted.items()], paths)

    def _remove_log(self, topic_partition: TopicPartition) -> None:
        """Delete the log of one partition that is no longer hosted."""
        path = self._set_aside(topic_partition, "delete")
        if path is not None:
            self._on_topics_deleted([], [path])

    def topic_config(self, topic: str) -> TopicConfig:
        """A topic's configuration as it is now."""
        overrides = self._cluster.state.config(ConfigKind.TOPIC, topic)
        return readable_topic_config(self._live_settings.current, overrides)

    def log_config(self, config: TopicConfig) -> LogConfig:
        """The topic's configuration, as far as its logs need it."""
        expiration_ms = self._live_settings.current.producer_id_expiration_ms
        return config.to_log_config(producer_id_expiration_ms=expiration_ms)

    def _reconfigure(self, topic: str) -> None:
        config = self.topic_config(topic)
        log_config = self.log_config(config)
        for partition in (self._partitions.of_topic(topic) or {}).values():
            partition.log.update_config(log_config)

    def _on_settings(self, _: BrokerSettings) -> None:
        self._reconfigure_all()  # topics inherit what they do not set themselves

    def _reconfigure_all(self) -> None:
        for topic in {partition.topic_partition.topic for partition in self._partitions}:
            self._reconfigure(topic)
