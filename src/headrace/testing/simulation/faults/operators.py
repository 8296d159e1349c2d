"""What operators do while things go wrong: elections, moves, deletions, configs, topics."""

from headrace.testing.simulation.admin import BROKER, TOPIC, UNCLEAN, SimulatedAdmin
from headrace.testing.simulation.faults.act import Act
from headrace.wire.error_code import ErrorCode

_TOPIC_CONFIGS = (
    ("retention.ms", ("604800000",)),
    ("internal.segment.bytes", ("400", "2000", "100000")),
    ("index.interval.bytes", ("100", "4096")),
    ("max.message.bytes", ("900000", "1048588")),
)
_BROKER_CONFIGS = (
    ("log.cleaner.threads", ("1", "2")),
    ("num.replica.fetchers", ("1", "2")),
    ("log.segment.bytes", ("1048576", "1073741824")),
    ("message.max.bytes", ("900000", "1048588")),
)


def elect(act: Act) -> None:
    """Make the replicas' order another one, and give the first of them the lead."""
    truth = act.some_truth()
    if truth is None:
        return
    topic, partition = truth.name
    order = list(truth.replicas)
    act.chance.shuffle(order)
    act.tell(f"the preferred order of {truth.name} shall be {order}, and the first be elected")

    async def work(admin: SimulatedAdmin) -> object:
        return (
            await admin.reassign(topic, partition, order),
            await admin.elect(topic, partition),
        )

    act.ask(work)


def move(act: Act) -> None:
    """Reassign a partition, or cancel that, or replace it by another reassignment."""
    truth = act.some_truth()
    if truth is None:
        return
    topic, partition = truth.name
    count = min(len(act.around.brokers), max(1, len(truth.replicas)))
    target = act.chance.sample(act.around.broker_ids, count)
    wanted = None if act.chance.random() < 0.3 else target
    act.tell(f"{truth.name} shall be on {wanted}" if wanted else f"no move of {truth.name}")
    act.ask(lambda admin: admin.reassign(topic, partition, wanted))


def move_log(act: Act) -> None:
    """Move a replica to another log directory of its broker."""
    truth = act.some_truth()
    if truth is None or len(act.target.log_dirs) < 2:
        return
    topic, partition = truth.name
    directory = act.chance.choice(act.target.log_dirs)
    broker_id = act.target.broker_id
    act.tell(f"{truth.name} on {act.target.name} shall be in {directory}")
    act.ask(lambda admin: admin.move_log(broker_id, topic, partition, directory))


def elect_uncleanly(act: Act) -> None:
    """Ask for an unclean election, which comes about only where nobody leads."""
    truth = act.some_truth()
    if truth is None:
        return
    topic, partition = truth.name
    act.tell(f"an unclean election of {truth.name} is asked for")
    act.around.invariants.unclean_wishes.add(truth.name)
    act.ask(lambda admin: admin.elect(topic, partition, UNCLEAN))


def delete_records(act: Act) -> None:
    """Delete records from the front."""
    truth = act.some_truth()
    if truth is None or truth.committed.is_compacted:
        return
    topic, partition = truth.name
    offset = act.chance.randint(truth.deleted_to, truth.end)
    act.tell(f"{truth.name} shall be deleted up to {offset}")
    truth.delete_to(offset)
    leader = -1 if truth.stored is None else truth.stored.leader

    async def work(admin: SimulatedAdmin) -> object:
        before = _known_to_be_alive(act, leader)
        answer = await admin.delete_records(topic, partition, offset)
        after = _known_to_be_alive(act, leader)
        if answer is ErrorCode.NONE:
            truth.deletion_answered(offset, {each for each, _ in before.items() & after.items()})
        return answer

    act.ask(work)


def _known_to_be_alive(act: Act, leader: int) -> dict[int, int]:
    """The lives of the brokers that a leader knows to be registered."""
    parts = act.around.brokers[leader].parts if leader >= 0 else None
    if parts is None:
        return {}
    return {
        broker_id: act.around.brokers[broker_id].life
        for broker_id, known in parts.cluster.state.brokers.items()
        if act.around.brokers[broker_id].broker_epoch == known.epoch
    }


def change_minimum(act: Act) -> None:
    """Set another minimum for a topic, often to as many as are in sync, which is the remedy for
    NOT_ENOUGH_REPLICAS; or none, and then the default of the controller's broker counts."""
    truth = act.some_truth()
    if truth is None or truth.stored is None:
        return
    value = act.chance.choice((None, "2", "3"))
    if act.chance.random() < 0.5:
        value = str(max(1, len(truth.stored.isr)))
    topic = truth.name.topic
    act.tell(f"min.insync.replicas of {topic} shall be {value}")
    act.ask(lambda admin: admin.configure(TOPIC, topic, "min.insync.replicas", value))


def configure(act: Act) -> None:
    """Change some other config of a topic, of a broker or of all brokers."""
    truth = act.some_truth()
    if truth is None:
        return
    chance = act.chance
    kind = chance.choice((TOPIC, BROKER))
    key, values = chance.choice(_TOPIC_CONFIGS if kind == TOPIC else _BROKER_CONFIGS)
    value = chance.choice((None, *values))
    name = truth.name.topic
    if kind == BROKER:
        name = chance.choice(("", str(act.target.broker_id)))
    act.tell(f"{key} of {name or 'all brokers'} shall be {value}")
    act.ask(lambda admin: admin.configure(kind, name, key, value))


def change_topics(act: Act) -> None:
    """Create, delete, create again or grow a topic."""
    around, chance, plan = act.around, act.chance, act.around.plan
    name = chance.choice(around.volatile_topics)
    configs = {"internal.segment.bytes": str(plan.segment_bytes)}
    if not plan.defaults_differ:
        configs["min.insync.replicas"] = str(plan.min_insync_replicas)
    count = chance.randint(1, 3)
    exists = name in around.invariants.topic_ids
    doing = chance.choice(("delete", "recreate", "grow")) if exists else "create"
    act.tell(f"topic {name}: {doing}")

    truth = around.invariants.truth_of(name, 0)
    order = [] if truth is None else sorted(truth.replicas, key=lambda _: chance.random())

    async def work(admin: SimulatedAdmin) -> object:
        answers: list[object] = []
        if doing == "recreate":
            answers.append(await admin.reassign(name, 0, order or None))
            answers.append(await admin.elect(name, 0))  # its successor must not inherit the epoch
        if doing in ("delete", "recreate"):
            answers.append(await admin.delete_topic(name))
        if doing in ("create", "recreate"):
            factor = plan.replication_factor
            answers.append(await admin.create_topic(name, count, factor, configs))
        if doing == "grow":
            answers.append(await admin.grow_topic(name, count + 1))
        return answers

    act.ask(work)
