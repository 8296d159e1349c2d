"""The admin client of a simulated cluster: one method for each thing that an operator does. Errors are answers like others."""

from collections.abc import Mapping
from typing import Final

from headrace.testing.simulation.wire_client import ClientAround, Unanswered, WireClient
from headrace.wire.error_code import ErrorCode
from headrace.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from headrace.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from headrace.wire.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from headrace.wire.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from headrace.wire.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from headrace.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from headrace.wire.messages.elect_leaders import ElectLeadersRequest, TopicPartitions
from headrace.wire.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

TOPIC: Final = 2
BROKER: Final = 4
PREFERRED: Final = 0
UNCLEAN: Final = 1
_SET: Final = 0
_UNSET: Final = 1
_TIMEOUT_MS: Final = 3_000
_WAIT_S: Final = 4.0


class SimulatedAdmin:
    """Asks any broker. Every method returns the error, or None if no answer came."""

    def __init__(self, around: ClientAround, number: int) -> None:
        self.client = WireClient(around, f"admin-{number}")

    async def create_topic(
        self, name: str, partitions: int, replication_factor: int, configs: Mapping[str, str]
    ) -> ErrorCode | None:
        """CreateTopics."""
        topic = CreatableTopic(
            name=name,
            num_partitions=partitions,
            replication_factor=replication_factor,
            configs=[CreatableTopicConfig(name=key, value=value) for key, value in configs.items()],
        )
        try:
            answer = await self.client.call_any(
                CreateTopicsRequest(topics=[topic], timeout_ms=_TIMEOUT_MS), 7, _WAIT_S
            )
        except Unanswered:
            return None
        return ErrorCode.of(answer.topics[0].error_code)

    async def delete_topic(self, name: str) -> ErrorCode | None:
        """DeleteTopics, by name."""
        request = DeleteTopicsRequest(topics=[DeleteTopicState(name=name)], timeout_ms=_TIMEOUT_MS)
        try:
            answer = await self.client.call_any(request, 6, _WAIT_S)
        except Unanswered:
            return None
        return ErrorCode.of(answer.responses[0].error_code)

    async def grow_topic(self, name: str, partitions: int) -> ErrorCode | None:
        """CreatePartitions."""
        topic = CreatePartitionsTopic(name=name, count=partitions, assignments=None)
        try:
            answer = await self.client.call_any(
                CreatePartitionsRequest(topics=[topic], timeout_ms=_TIMEOUT_MS), 3, _WAIT_S
            )
        except Unanswered:
            return None
        return ErrorCode.of(answer.results[0].error_code)

    async def reassign(
        self, topic: str, partition: int, replicas: list[int] | None
    ) -> ErrorCode | None:
        """AlterPartitionReassignments; no replicas cancel what is under way."""
        wish = ReassignablePartition(partition_index=partition, replicas=replicas)
        request = AlterPartitionReassignmentsRequest(
            topics=[ReassignableTopic(name=topic, partitions=[wish])], timeout_ms=_TIMEOUT_MS
        )
        try:
            answer = await self.client.call_any(request, 0, _WAIT_S)
        except Unanswered:
            return None
        if answer.error_code:
            return ErrorCode.of(answer.error_code)
        return ErrorCode.of(answer.responses[0].partitions[0].error_code)

    async def move_log(
        self, broker_id: int, topic: str, partition: int, directory: str
    ) -> ErrorCode | None:
        """AlterReplicaLogDirs."""
        wish = AlterReplicaLogDirTopic(name=topic, partitions=[partition])
        request = AlterReplicaLogDirsRequest(
            dirs=[AlterReplicaLogDir(path=directory, topics=[wish])]
        )
        try:
            answer = await self.client.call(broker_id, request, 2, _WAIT_S)
        except Unanswered:
            return None
        return ErrorCode.of(answer.results[0].partitions[0].error_code)

    async def elect(self, topic: str, partition: int, kind: int = PREFERRED) -> ErrorCode | None:
        """ElectLeaders."""
        where = TopicPartitions(topic=topic, partitions=[partition])
        request = ElectLeadersRequest(
            election_type=kind, topic_partitions=[where], timeout_ms=_TIMEOUT_MS
        )
        try:
            answer = await self.client.call_any(request, 2, _WAIT_S)
        except Unanswered:
            return None
        if answer.error_code or not answer.replica_election_results:
            return ErrorCode.of(answer.error_code)
        return ErrorCode.of(answer.replica_election_results[0].partition_result[0].error_code)

    async def configure(
        self, kind: int, name: str, key: str, value: str | None
    ) -> ErrorCode | None:
        """IncrementalAlterConfigs; no value takes the setting away."""
        operation = _UNSET if value is None else _SET
        edit = AlterableConfig(name=key, config_operation=operation, value=value)
        resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=[edit])
        request = IncrementalAlterConfigsRequest(resources=[resource])
        try:
            if kind == BROKER and name:
                answer = await self.client.call(int(name), request, 1, _WAIT_S)
            else:
                answer = await self.client.call_any(request, 1, _WAIT_S)
        except Unanswered:
            return None
        return ErrorCode.of(answer.responses[0].error_code)

    async def delete_records(self, topic: str, partition: int, offset: int) -> ErrorCode | None:
        """DeleteRecords, at the leader that the client knows."""
        known = await self.client.learn(topic)
        if known is None or partition not in known.partitions:
            return None
        leader = known.partitions[partition].leader
        if leader < 0:
            return None
        wish = DeleteRecordsPartition(partition_index=partition, offset=offset)
        request = DeleteRecordsRequest(
            topics=[DeleteRecordsTopic(name=topic, partitions=[wish])], timeout_ms=_TIMEOUT_MS
        )
        try:
            answer = await self.client.call(leader, request, 2, _WAIT_S)
        except Unanswered:
            return None
        return ErrorCode.of(answer.topics[0].partitions[0].error_code)
