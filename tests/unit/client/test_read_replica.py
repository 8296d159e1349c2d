"""Which replica a partition is read from."""

from headrace.client.read_replica import MAX_AGE_S, ReadReplicas
from headrace.ids import TopicPartition

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def test_a_replica_that_the_leader_named_is_asked_until_that_is_old() -> None:
    replicas = ReadReplicas()
    assert replicas.replica_for(T0, 0.0) is None
    replicas.prefer(T0, 3, 10.0)
    assert replicas.replica_for(T0, 9.0 + MAX_AGE_S) == 3
    assert replicas.replica_for(T1, 10.0) is None
    assert replicas.replica_for(T0, 10.0 + MAX_AGE_S) is None, "the leader may name another one"


def test_after_a_replica_failed_the_leader_serves_although_it_would_name_it_again() -> None:
    replicas = ReadReplicas()
    assert not replicas.must_leader_serve(T0, 0.0)
    replicas.prefer(T0, 3, 0.0)
    assert not replicas.must_leader_serve(T0, 1.0)
    replicas.refuse(T0, 2.0)
    assert replicas.replica_for(T0, 3.0) is None
    assert replicas.must_leader_serve(T0, 3.0)
    assert not replicas.must_leader_serve(T0, 2.0 + MAX_AGE_S), "then the near one is tried again"
