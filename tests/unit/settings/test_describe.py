import pytest

from headrace.settings.describe import (
    ConfigQuery,
    describe,
    describe_broker,
    describe_client_metrics,
    describe_topic,
)
from headrace.settings.resolution import ConfigLayers, Source
from headrace.settings.resource import Resource, ResourceType, invalid_request

LAYERS = ConfigLayers(static={"node.id": "1", "ssl.key.password": "secret", "plugin.x": "y"})


def test_only_what_is_wanted_is_told() -> None:
    wanted = ConfigQuery(keys=["retention.ms", "nonsense"], synonyms=False, documentation=False)
    (entry,) = describe_topic({"retention.ms": "5"}, LAYERS, wanted)
    assert (entry.value, entry.source, entry.is_default) == ("5", Source.TOPIC, False)
    assert entry.synonyms == ()
    assert entry.documentation is None
    assert describe_client_metrics({}, wanted) == []


def test_no_keys_means_all() -> None:
    assert len(describe_topic({}, LAYERS, ConfigQuery(keys=[]))) == len(describe_topic({}, LAYERS))


def test_every_known_config_has_its_text() -> None:
    entries = [*describe_topic({}, LAYERS), *describe_broker(LAYERS)]
    assert [entry.name for entry in entries if not entry.documentation] == ["plugin.x"]


def test_secrets_and_strangers_are_not_shown() -> None:
    entries = {entry.name: entry for entry in describe_broker(LAYERS)}
    for name in ("ssl.key.password", "plugin.x"):
        assert entries[name].sensitive
        assert entries[name].value is None
        assert all(synonym.value is None for synonym in entries[name].synonyms)


def test_hidden_settings_are_listed_only_when_set() -> None:
    name = "log.initial.task.delay.ms"
    assert name not in {entry.name for entry in describe_broker(LAYERS)}
    set_one = ConfigLayers(static={name: "5"})
    assert name in {entry.name for entry in describe_broker(set_one)}


@pytest.mark.parametrize(
    ("type_", "name", "message"),
    [
        (
            ResourceType.BROKER,
            "2",
            "Unexpected broker id, expected 1 or empty string, but received 2",
        ),
        (ResourceType.BROKER, "x", "Broker id must be an integer, but it is: x"),
        (ResourceType.BROKER_LOGGER, "", "Broker id must not be empty"),
        (ResourceType.BROKER_LOGGER, "2", "Unexpected broker id, expected 1 but received 2"),
        (ResourceType.GROUP, "", "Group name must not be empty"),
        (ResourceType.CLIENT_METRICS, "", "Client metrics subscription name must not be empty"),
        (99, "x", "Unsupported resource type: 99"),
    ],
)
def test_resources_that_cannot_be_meant_are_refused(type_: int, name: str, message: str) -> None:
    assert describe(Resource(type_, name), {}, LAYERS) == invalid_request(message)


def test_each_resource_has_its_own_configs() -> None:
    own = {"retention.ms": "5", "interval.ms": "500", "consumer.session.timeout.ms": "50000"}

    def sources(type_: ResourceType, name: str) -> set[Source]:
        entries = describe(Resource(type_, name), own, LAYERS)
        assert isinstance(entries, list)
        return {entry.source for entry in entries}

    assert Source.TOPIC in sources(ResourceType.TOPIC, "t")
    assert Source.GROUP in sources(ResourceType.GROUP, "g")
    assert Source.CLIENT_METRICS in sources(ResourceType.CLIENT_METRICS, "m")
    assert Source.STATIC_BROKER in sources(ResourceType.BROKER, "1")
    assert sources(ResourceType.BROKER, "") == set()
    assert sources(ResourceType.BROKER_LOGGER, "1") == {Source.DYNAMIC_BROKER_LOGGER}
