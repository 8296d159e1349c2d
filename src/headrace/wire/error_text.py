"""One sentence for people per error code: what a tool prints when an answer carries no message."""

from typing import Final

_LINES: Final = """
UNKNOWN_SERVER_ERROR The server failed in an unexpected way while it handled the request.
NONE No error.
OFFSET_OUT_OF_RANGE The offset lies outside the range that the server holds for this partition.
CORRUPT_MESSAGE The batch is corrupt: wrong checksum, invalid size, or no key on a compacted topic.
UNKNOWN_TOPIC_OR_PARTITION This server does not host this topic-partition.
INVALID_FETCH_SIZE The fetch size is not valid.
LEADER_NOT_AVAILABLE The partition has no leader at the moment; an election is under way.
NOT_LEADER_OR_FOLLOWER This broker is not the leader of the partition, or holds no replica of it.
REQUEST_TIMED_OUT The request timed out.
BROKER_NOT_AVAILABLE The broker is not available.
REPLICA_NOT_AVAILABLE No replica of the partition is available here.
MESSAGE_TOO_LARGE A message is larger than the server accepts.
STALE_CONTROLLER_EPOCH The controller has moved to another broker.
OFFSET_METADATA_TOO_LARGE The metadata of a committed offset is too large.
NETWORK_EXCEPTION The server disconnected before it answered.
COORDINATOR_LOAD_IN_PROGRESS The coordinator is still loading and cannot serve requests yet.
COORDINATOR_NOT_AVAILABLE The coordinator is not available.
NOT_COORDINATOR This broker is not the coordinator.
INVALID_TOPIC_EXCEPTION The topic is invalid, or the operation is not allowed on it.
RECORD_LIST_TOO_LARGE The batch is larger than the segment size of the server.
NOT_ENOUGH_REPLICAS Rejected: fewer replicas are in sync than min.insync.replicas requires.
NOT_ENOUGH_REPLICAS_AFTER_APPEND Written, but to fewer in-sync replicas than required.
INVALID_REQUIRED_ACKS The value of acks is not valid.
ILLEGAL_GENERATION The group generation id is not valid.
INCONSISTENT_GROUP_PROTOCOL The member's protocols do not fit those of the group, or it offers none.
INVALID_GROUP_ID The group id is not valid.
UNKNOWN_MEMBER_ID The coordinator does not know this member.
INVALID_SESSION_TIMEOUT The session timeout is outside group.min.session.timeout.ms and group.max.session.timeout.ms.
REBALANCE_IN_PROGRESS The group is rebalancing; the member has to rejoin.
INVALID_COMMIT_OFFSET_SIZE The committed offset data has no valid size.
TOPIC_AUTHORIZATION_FAILED Not authorized to access the topic.
GROUP_AUTHORIZATION_FAILED Not authorized to access the group.
CLUSTER_AUTHORIZATION_FAILED Not authorized for this operation on the cluster.
INVALID_TIMESTAMP The timestamp of a message is outside the accepted range.
UNSUPPORTED_SASL_MECHANISM The server does not offer this SASL mechanism.
ILLEGAL_SASL_STATE The request does not fit the current SASL state.
UNSUPPORTED_VERSION This version of the API is not supported.
TOPIC_ALREADY_EXISTS A topic with this name already exists.
INVALID_PARTITIONS The number of partitions is not valid.
INVALID_REPLICATION_FACTOR The replication factor is below 1 or above the number of available brokers.
INVALID_REPLICA_ASSIGNMENT The replica assignment is not valid.
INVALID_CONFIG The configuration is not valid.
NOT_CONTROLLER This broker is not the controller of the cluster.
INVALID_REQUEST The request is malformed or does not suit this broker; the broker's log says more.
UNSUPPORTED_FOR_MESSAGE_FORMAT The broker's message format does not support the request.
POLICY_VIOLATION The request violates a configured policy.
OUT_OF_ORDER_SEQUENCE_NUMBER A sequence number arrived out of order.
DUPLICATE_SEQUENCE_NUMBER A sequence number arrived twice.
INVALID_PRODUCER_EPOCH The producer used an old epoch.
INVALID_TXN_STATE The transaction is not in a state that allows this operation.
INVALID_PRODUCER_ID_MAPPING The producer id is not the one assigned to this transactional id.
INVALID_TRANSACTION_TIMEOUT The transaction timeout is above transaction.max.timeout.ms.
CONCURRENT_TRANSACTIONS Another operation on the same transaction is still running.
TRANSACTION_COORDINATOR_FENCED The sender of the marker is no longer the coordinator of this producer.
TRANSACTIONAL_ID_AUTHORIZATION_FAILED Not authorized to use the transactional id.
SECURITY_DISABLED Security features are switched off.
OPERATION_NOT_ATTEMPTED Not attempted, because another operation of the same request failed.
KAFKA_STORAGE_ERROR The disk failed while the log was accessed.
LOG_DIR_NOT_FOUND The log directory is not one of the broker's.
SASL_AUTHENTICATION_FAILED SASL authentication failed.
UNKNOWN_PRODUCER_ID The broker holds nothing about this producer id; its records may have expired.
REASSIGNMENT_IN_PROGRESS The partition is being reassigned.
DELEGATION_TOKEN_AUTH_DISABLED Delegation tokens are switched off.
DELEGATION_TOKEN_NOT_FOUND There is no such delegation token.
DELEGATION_TOKEN_OWNER_MISMATCH The principal is neither owner nor renewer of the token.
DELEGATION_TOKEN_REQUEST_NOT_ALLOWED Token requests are not allowed on this kind of connection.
DELEGATION_TOKEN_AUTHORIZATION_FAILED Not authorized to use the delegation token.
DELEGATION_TOKEN_EXPIRED The delegation token has expired.
INVALID_PRINCIPAL_TYPE This type of principal is not supported.
NON_EMPTY_GROUP The group still has members.
GROUP_ID_NOT_FOUND There is no group with this id.
FETCH_SESSION_ID_NOT_FOUND There is no such fetch session.
INVALID_FETCH_SESSION_EPOCH The epoch of the fetch session is not valid.
LISTENER_NOT_FOUND The leader has no listener like the one that was asked.
TOPIC_DELETION_DISABLED Deleting topics is switched off.
FENCED_LEADER_EPOCH The leader epoch of the request is older than the broker's.
UNKNOWN_LEADER_EPOCH The leader epoch of the request is newer than the broker's.
UNSUPPORTED_COMPRESSION_TYPE The client does not support the compression of this partition.
STALE_BROKER_EPOCH The epoch of the broker has changed.
OFFSET_NOT_AVAILABLE The new leader's high watermark has not caught up yet.
MEMBER_ID_REQUIRED The member has to join again with the member id it was given.
PREFERRED_LEADER_NOT_AVAILABLE The preferred leader is not available.
GROUP_MAX_SIZE_REACHED The group is full.
FENCED_INSTANCE_ID Another consumer with the same group.instance.id has taken over.
ELIGIBLE_LEADERS_NOT_AVAILABLE No replica that may lead the partition is available.
ELECTION_NOT_NEEDED The partition needs no election.
NO_REASSIGNMENT_IN_PROGRESS The partition is not being reassigned.
GROUP_SUBSCRIBED_TO_TOPIC The group is subscribed to the topic, so its offsets cannot be deleted.
INVALID_RECORD The broker rejected a record.
UNSTABLE_OFFSET_COMMIT Offsets of an open transaction have to be decided first.
THROTTLING_QUOTA_EXCEEDED The quota is used up.
PRODUCER_FENCED A newer producer with the same transactional id has taken over.
RESOURCE_NOT_FOUND The request names something that does not exist.
DUPLICATE_RESOURCE The request names the same thing twice.
UNACCEPTABLE_CREDENTIAL The credential does not meet the requirements.
INCONSISTENT_VOTER_SET Sender or receiver is not one of the expected voters.
INVALID_UPDATE_VERSION The version to update to is not valid.
FEATURE_UPDATE_FAILED The features could not be updated.
PRINCIPAL_DESERIALIZATION_FAILURE The principal of a forwarded request could not be read.
SNAPSHOT_NOT_FOUND There is no such snapshot.
POSITION_OUT_OF_RANGE The position lies outside the snapshot.
UNKNOWN_TOPIC_ID This server does not host a topic with this id.
DUPLICATE_BROKER_REGISTRATION The broker id is already in use.
BROKER_ID_NOT_REGISTERED The broker id is not registered.
INCONSISTENT_TOPIC_ID The topic id of the request is not that of the log.
INCONSISTENT_CLUSTER_ID The cluster id of the request is not this cluster's.
TRANSACTIONAL_ID_NOT_FOUND There is no such transactional id.
FETCH_SESSION_TOPIC_ID_ERROR The fetch session mixes topic ids and topic names.
INELIGIBLE_REPLICA The new ISR contains a replica that may not be in it.
NEW_LEADER_ELECTED The partition was changed, and now has another leader.
OFFSET_MOVED_TO_TIERED_STORAGE The offset has moved to tiered storage.
FENCED_MEMBER_EPOCH The coordinator fenced the member epoch; the member gives up its partitions and rejoins.
UNRELEASED_INSTANCE_ID Another member still uses this instance id and has to leave first.
UNSUPPORTED_ASSIGNOR The group does not support this assignor.
STALE_MEMBER_EPOCH The member epoch is out of date; retry after the next heartbeat.
MISMATCHED_ENDPOINT_TYPE The request went to the wrong type of endpoint.
UNSUPPORTED_ENDPOINT_TYPE This type of endpoint is not supported.
UNKNOWN_CONTROLLER_ID The controller id is not known.
UNKNOWN_SUBSCRIPTION_ID The telemetry subscription id is invalid or out of date.
TELEMETRY_TOO_LARGE The pushed telemetry is larger than the broker accepts.
INVALID_REGISTRATION The controller refused the registration of the broker.
TRANSACTION_ABORTABLE The transaction failed; after an abort the transactional id can be used again.
INVALID_RECORD_STATE The record is not in a state in which its delivery can be acknowledged.
SHARE_SESSION_NOT_FOUND There is no such share session.
INVALID_SHARE_SESSION_EPOCH The epoch of the share session is not valid.
FENCED_STATE_EPOCH The state epoch of the share group does not match.
INVALID_VOTER_KEY The voter key is not that of the receiving replica.
DUPLICATE_VOTER The voter already belongs to the voters.
VOTER_NOT_FOUND The voter does not belong to the voters.
INVALID_REGULAR_EXPRESSION The regular expression is not valid.
REBOOTSTRAP_REQUIRED The client's metadata is out of date; it has to bootstrap again.
STREAMS_INVALID_TOPOLOGY The topology is not valid.
STREAMS_INVALID_TOPOLOGY_EPOCH The topology epoch is not valid.
STREAMS_TOPOLOGY_FENCED The topology epoch is out of date.
SHARE_SESSION_LIMIT_REACHED No further share session is possible.
"""

# By the name of the error code.
TEXTS: Final = dict(line.split(" ", 1) for line in _LINES.strip().splitlines())
