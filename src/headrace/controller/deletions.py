"""Topics that are deleted, and the replicas that remain of them.

A topic is gone from the moment its tombstone exists; its nodes follow, and a controller that finds
both finishes the work. The tombstone names the brokers that hold replicas: each removes them and
says so, however late it comes, so that nobody ever has to guess whether a topic that is not there
was deleted or got lost.
"""

from uuid import UUID

import msgspec

from headrace.controller.changes import Change, ConfigChanged, ReplicasRemoved, TopicDeleted
from headrace.controller.cluster_state import Topic
from headrace.controller.core import Core, Decision, Group
from headrace.controller.topics import TopicAnswer
from headrace.controller.values import ConfigKind
from headrace.coordination.nodes import (
    ConfigNode,
    DeletedTopicNode,
    PartitionStateNode,
    TopicNode,
)
from headrace.coordination.store import Create, Delete
from headrace.wire.error_code import ErrorCode


class DeleteTopics(msgspec.Struct, frozen=True, kw_only=True):
    """Some topics shall go; each is named by its name or by its id."""

    names: tuple[str, ...] = ()
    topic_ids: tuple[UUID, ...] = ()

    def decide(self, core: Core) -> Decision[tuple[TopicAnswer, ...]]:
        """Delete those that exist."""
        answers = []
        found: dict[str, Topic] = {}
        for name in self.names:
            topic = core.state.topics.get(name)
            if topic is None:
                answers.append(TopicAnswer(name=name, error=ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
                continue
            found[name] = topic
            answers.append(TopicAnswer(name=name, topic_id=topic.topic_id))
        for topic_id in self.topic_ids:
            topic = core.state.topics_by_id.get(topic_id)
            if topic is None:
                answers.append(
                    TopicAnswer(name=None, topic_id=topic_id, error=ErrorCode.UNKNOWN_TOPIC_ID)
                )
                continue
            found[topic.name] = topic
            answers.append(TopicAnswer(name=topic.name, topic_id=topic_id))
        groups: list[Group] = []
        changes: list[Change] = []
        for topic in found.values():
            groups += _deletion(core, topic)
            if core.state.config(ConfigKind.TOPIC, topic.name):
                changes.append(ConfigChanged(ConfigKind.TOPIC, topic.name, {}))
            changes.append(TopicDeleted(topic.name, topic.topic_id, _holders(topic)))
        return Decision(answer=tuple(answers), groups=tuple(groups), changes=tuple(changes))


class RemoveReplicas(msgspec.Struct, frozen=True, kw_only=True):
    """A broker has removed its replicas of these deleted topics."""

    broker_id: int
    topic_ids: tuple[UUID, ...]

    def decide(self, core: Core) -> Decision[None]:
        """Strike the broker off the tombstones; the last one takes the tombstone with it."""
        groups: list[Group] = []
        changes: list[Change] = []
        for topic_id in dict.fromkeys(self.topic_ids):
            deleted = core.state.deleted_topics.get(topic_id)
            if deleted is None or self.broker_id not in deleted.pending:
                continue
            path = DeletedTopicNode.path(topic_id)
            rest = tuple(broker for broker in deleted.pending if broker != self.broker_id)
            if rest:
                data = DeletedTopicNode(deleted.name, rest).encode()
                groups.append((core.nodes.put(path, data),))
            else:
                groups.append(core.nodes.remove(path))
            changes.append(ReplicasRemoved(topic_id, self.broker_id))
        return Decision(answer=None, groups=tuple(groups), changes=tuple(changes))


def _holders(topic: Topic) -> tuple[int, ...]:
    return tuple(sorted({broker for p in topic.partitions for broker in p.replicas}))


def _deletion(core: Core, topic: Topic) -> list[Group]:
    """Tombstone first, the topic's own node last."""
    tombstone = DeletedTopicNode(topic.name, _holders(topic)).encode()
    groups: list[Group] = [(Create(DeletedTopicNode.path(topic.topic_id), tombstone),)]
    for index, partition in enumerate(topic.partitions):
        if not partition.is_new:
            path = PartitionStateNode.path(topic.name, index)
            groups.append(
                (Delete(path, partition.partition_epoch), Delete(path.removesuffix("/state")))
            )
    groups.append(
        (
            Delete(PartitionStateNode.folder(topic.name)),
            *core.nodes.remove(ConfigNode.path("topics", topic.name)),
            *core.nodes.remove(TopicNode.path(topic.name)),
        )
    )
    return groups
