"""Topics: what is refused, with which code and words; what is created, grown, deleted."""

import pytest

from headrace.controller.create_partitions import CreatePartitions, MorePartitions
from headrace.controller.deletions import DeleteTopics, RemoveReplicas
from headrace.controller.topics import CreateTopics, NewTopic, TopicAnswer, name_fault
from headrace.wire.error_code import ErrorCode
from tests.unit.controller.cluster_model import ClusterModel


def create(model: ClusterModel, *topics: NewTopic, validate_only: bool = False) -> TopicAnswer:
    (answer,) = model.do(CreateTopics(topics=topics, validate_only=validate_only))
    return answer


def test_defaults_are_the_brokers() -> None:
    model = ClusterModel(0, 1)
    answer = create(model, NewTopic(name="t"))
    assert (answer.error, answer.num_partitions, answer.replication_factor) == (0, 1, 1)
    assert answer.topic_id == model.topic_id("t")
    partition = model.partition("t")
    assert (partition.leader, partition.leader_epoch, partition.partition_epoch) == (0, 0, 0)


def test_partitions_are_spread_and_led_by_their_first_replica() -> None:
    model = ClusterModel(0, 1, 2)
    create(model, NewTopic(name="t", num_partitions=3, replication_factor=2))
    replicas = [partition.replicas for partition in model.state.topics["t"].partitions]
    assert replicas == [(0, 1), (1, 2), (2, 0)]
    assert [model.partition("t", n).leader for n in range(3)] == [0, 1, 2]
    assert all(model.partition("t", n).isr == replicas[n] for n in range(3))


REFUSED = [
    (NewTopic(name=""), 17, "Topic name is invalid: the empty string is not allowed"),
    (NewTopic(name=".."), 17, "Topic name is invalid: '..' is not allowed"),
    (
        NewTopic(name="a b"),
        17,
        "Topic name is invalid: 'a b' contains one or more characters other than ASCII "
        "alphanumerics, '.', '_' and '-'",
    ),
    (NewTopic(name="old"), 36, "Topic 'old' already exists."),
    (NewTopic(name="my_topic"), 17, "Topic 'my_topic' collides with existing topic: my.topic"),
    (
        NewTopic(name="t", num_partitions=0),
        37,
        "Number of partitions was set to an invalid non-positive value.",
    ),
    (
        NewTopic(name="t", num_partitions=10_001),
        44,
        "Excessively large number of partitions per request.",
    ),
    (
        NewTopic(name="t", replication_factor=0),
        38,
        "Replication factor must be larger than 0, or -1 to use the default value.",
    ),
    (
        NewTopic(name="t", replication_factor=4),
        38,
        "Unable to replicate the partition 4 time(s): The target replication factor of 4 cannot be "
        "reached because only 3 broker(s) are registered or some brokers have all their log "
        "directories cordoned.",
    ),
    (
        NewTopic(name="t", assignments=((0, (0,)),), replication_factor=1),
        42,
        "A manual partition assignment was specified, but replication factor was not set to -1.",
    ),
    (
        NewTopic(name="t", assignments=((0, (0,)),), num_partitions=1),
        42,
        "A manual partition assignment was specified, but numPartitions was not set to -1.",
    ),
    (
        NewTopic(name="t", assignments=((0, (0,)), (0, (1,)))),
        39,
        "Found multiple manual partition assignments for partition 0",
    ),
    (
        NewTopic(name="t", assignments=((1, (0,)),)),
        39,
        "partitions should be a consecutive 0-based integer sequence",
    ),
    (
        NewTopic(name="t", assignments=((0, ()),)),
        39,
        "The manual partition assignment includes an empty replica list.",
    ),
    (
        NewTopic(name="t", assignments=((0, (0, 7)),)),
        39,
        "The manual partition assignment includes broker 7, but no such broker is registered.",
    ),
    (
        NewTopic(name="t", assignments=((0, (1, 1)),)),
        39,
        "The manual partition assignment includes the broker 1 more than once.",
    ),
    (
        NewTopic(name="t", assignments=((0, (0, 1)), (1, (2,)))),
        39,
        "The manual partition assignment includes a partition with 1 replica(s), but this is not "
        "consistent with previous partitions, which have 2 replica(s).",
    ),
    (NewTopic(name="t", configs={"k": "bad"}), 40, "Invalid value bad for configuration k"),
    (
        NewTopic(name="t", configs={"k": None}),
        40,
        "Null value not supported for topic configs: k",
    ),
]


@pytest.mark.parametrize(("topic", "code", "text"), REFUSED)
def test_refusals_have_kafkas_codes_and_words(topic: NewTopic, code: int, text: str) -> None:
    model = ClusterModel(0, 1, 2)
    create(model, NewTopic(name="old"))
    create(model, NewTopic(name="my.topic"))
    answer = create(model, topic)
    assert (answer.error, answer.message) == (ErrorCode(code), text)
    assert set(model.state.topics) == {"old", "my.topic"}


def test_a_name_twice_is_one_refusal_and_the_others_are_created() -> None:
    model = ClusterModel(0)
    twice = NewTopic(name="a")
    answers = model.do(CreateTopics(topics=(twice, NewTopic(name="b"), twice)))
    assert [(answer.name, answer.error) for answer in answers] == [
        ("a", ErrorCode.INVALID_REQUEST),
        ("b", ErrorCode.NONE),
    ]
    assert set(model.state.topics) == {"b"}


def test_validation_creates_nothing() -> None:
    model = ClusterModel(0)
    answer = create(model, NewTopic(name="t", num_partitions=5), validate_only=True)
    assert (answer.error, answer.num_partitions) == (ErrorCode.NONE, 5)
    assert not model.state.topics
    model.check()


def test_longest_name() -> None:
    assert name_fault("a" * 249) is None
    assert name_fault("a" * 250) == (
        f"Topic name is invalid: the length of '{'a' * 250}' is longer than the max allowed "
        "length 249"
    )


def test_creation_that_a_crash_interrupts_is_absent_or_completed() -> None:
    event = CreateTopics(topics=(NewTopic(name="t", num_partitions=3, configs={"k": "v"}),))
    for groups in range(5):
        model = ClusterModel(0, 1)
        model.crash_after(event, groups)
        if groups == 0:
            assert not model.state.topics
        else:
            assert [model.partition("t", n).leader for n in range(3)] == [0, 1, 0]
        model.check()


def test_growth_goes_on_where_the_topic_ends() -> None:
    model = ClusterModel(0, 1, 2)
    create(model, NewTopic(name="t", num_partitions=2, replication_factor=2))
    (answer,) = model.do(CreatePartitions(topics=(MorePartitions(name="t", count=4),)))
    assert answer.error is ErrorCode.NONE
    replicas = [partition.replicas for partition in model.state.topics["t"].partitions]
    assert replicas == [(0, 1), (1, 2), (2, 0), (0, 2)]
    model.check()


@pytest.mark.parametrize(
    ("wanted", "code", "text"),
    [
        (MorePartitions(name="x", count=4), 3, None),
        (MorePartitions(name="t", count=2), 37, "Topic already has 2 partition(s)."),
        (
            MorePartitions(name="t", count=1),
            37,
            "The topic t currently has 2 partition(s); 1 would not be an increase.",
        ),
        (
            MorePartitions(name="t", count=4, assignments=((0,),)),
            39,
            "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified.",
        ),
        (
            MorePartitions(name="t", count=3, assignments=((9,),)),
            39,
            "The manual partition assignment includes broker 9, but no such broker is registered.",
        ),
    ],
)
def test_growth_refused(wanted: MorePartitions, code: int, text: str | None) -> None:
    model = ClusterModel(0, 1)
    create(model, NewTopic(name="t", num_partitions=2))
    (answer,) = model.do(CreatePartitions(topics=(wanted,)))
    assert (answer.error, answer.message) == (ErrorCode(code), text)
    assert len(model.state.topics["t"].partitions) == 2


def test_a_deleted_topic_is_remembered_until_every_broker_has_obeyed() -> None:
    model = ClusterModel(0, 1, 2)
    create(model, NewTopic(name="t", assignments=((0, (0, 1)),), configs={"k": "v"}))
    topic_id = model.topic_id("t")
    (answer,) = model.do(DeleteTopics(names=("t",)))
    assert (answer.error, answer.topic_id) == (ErrorCode.NONE, topic_id)
    assert not model.state.topics
    assert not model.state.configs
    create(model, NewTopic(name="t"))
    assert model.topic_id("t") != topic_id
    model.take_over()
    assert model.state.deleted_topics[topic_id].pending == (0, 1)
    model.do(RemoveReplicas(broker_id=0, topic_ids=(topic_id, topic_id)))
    model.do(RemoveReplicas(broker_id=2, topic_ids=(topic_id,)))
    assert model.state.deleted_topics[topic_id].pending == (1,)
    model.do(RemoveReplicas(broker_id=1, topic_ids=(topic_id,)))
    assert not model.state.deleted_topics
    model.check()


def test_deletion_by_id_and_of_what_is_not_there() -> None:
    model = ClusterModel(0)
    create(model, NewTopic(name="t"))
    topic_id = model.topic_id("t")
    answers = model.do(DeleteTopics(names=("x",), topic_ids=(topic_id,)))
    assert [(a.name, a.error) for a in answers] == [
        ("x", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", ErrorCode.NONE),
    ]
    (answer,) = model.do(DeleteTopics(topic_ids=(topic_id,)))
    assert (answer.name, answer.error) == (None, ErrorCode.UNKNOWN_TOPIC_ID)


def test_deletion_that_a_crash_interrupts_is_absent_or_completed() -> None:
    for groups in range(6):
        model = ClusterModel(0)
        create(model, NewTopic(name="t", num_partitions=3, configs={"k": "v"}))
        model.crash_after(DeleteTopics(names=("t",)), groups)
        assert ("t" in model.state.topics) == (groups == 0)
        model.check()


@pytest.mark.parametrize("name", ["__consumer_offsets", "__transaction_state"])
def test_a_topic_of_a_coordinator_does_not_grow(name: str) -> None:
    """The number of partitions says where a group's offsets are: with another one nobody would find them."""
    model = ClusterModel(0)
    model.do(CreateTopics(topics=(NewTopic(name=name, num_partitions=4, replication_factor=1),)))
    before = dict(model.nodes)
    for validate_only in (True, False):
        (answer,) = model.do(
            CreatePartitions(
                topics=(MorePartitions(name=name, count=8),), validate_only=validate_only
            )
        )
        assert answer.error is ErrorCode.INVALID_PARTITIONS
        assert f"number of partitions of {name} cannot be changed" in str(answer.message)
    assert model.nodes == before
    (answer,) = model.do(CreatePartitions(topics=(MorePartitions(name=name, count=4),)))
    assert answer.message == "Topic already has 4 partition(s)."
