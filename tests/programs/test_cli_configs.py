"""`headrace configs` against a broker."""

from tests.programs.conftest import Headrace, parsed


def test_configs_of_a_topic(headrace: Headrace, topic: str) -> None:
    changed = headrace(
        *("configs", "--alter", "--entity-type", "topics", "--entity-name", topic),
        *("--add-config", "retention.ms=1000,cleanup.policy=[compact,delete]"),
    )
    assert changed.stdout == f"Completed updating config for topic {topic}.\n"
    title, *lines = headrace("configs", "--describe", "--topic", topic).stdout.splitlines()
    assert title == f"Dynamic configs for topic {topic} are:"
    assert (
        "  retention.ms=1000 sensitive=false synonyms={DYNAMIC_TOPIC_CONFIG:retention.ms=1000}"
        in lines
    )
    assert any(line.startswith("  cleanup.policy=compact,delete sensitive=false") for line in lines)
    headrace(
        "configs", "--alter", "--topic", topic, "--delete-config", "retention.ms,cleanup.policy"
    )
    assert headrace("configs", "--describe", "--topic", topic).stdout == title + "\n"
    everything = headrace("configs", "--describe", "--topic", topic, "--all").stdout
    assert everything.startswith(f"All configs for topic {topic} are:\n")
    assert "synonyms={DEFAULT_CONFIG:log.segment.bytes=1073741824}" in everything


def test_configs_of_brokers(headrace: Headrace) -> None:
    try:
        changed = headrace(
            *("configs", "--alter", "--broker-defaults", "--add-config", "log.retention.ms=1000000")
        )
        assert changed.stdout == "Completed updating default config for brokers in the cluster.\n"
        described = headrace("configs", "--describe", "--broker-defaults").stdout
        assert described.startswith("Default configs for brokers in the cluster are:\n")
        assert (
            "  log.retention.ms=1000000 sensitive=false"
            " synonyms={DYNAMIC_DEFAULT_BROKER_CONFIG:log.retention.ms=1000000}\n"
        ) in described
    finally:
        headrace("configs", "--alter", "--broker-defaults", "--delete-config", "log.retention.ms")
    own = headrace("configs", "--describe", "--broker", "1", "--all").stdout
    assert "STATIC_BROKER_CONFIG:offsets.topic.num.partitions=4" in own


def test_json(headrace: Headrace, topic: str) -> None:
    headrace("configs", "--alter", "--topic", topic, "--add-config", "retention.ms=7")
    [described] = parsed(headrace("configs", "--describe", "--topic", topic, "--output", "json"))
    [entry] = described["configs"]
    assert (entry["name"], entry["value"], entry["source"]) == (
        *("retention.ms", "7", "DYNAMIC_TOPIC_CONFIG"),
    )


def test_wrong_names_and_values_are_told(headrace: Headrace, topic: str) -> None:
    alter = ("configs", "--alter", "--topic", topic, "--add-config")
    unknown = headrace(*alter, "retention.mss=1", succeed=False)
    assert unknown.exit_code == 1
    assert "retention.mss" in unknown.stderr
    assert "did you mean 'retention.ms'?" in unknown.stderr
    malformed = headrace(*alter, "retention.ms=soon", succeed=False)
    assert malformed.exit_code == 1
    assert "retention.ms" in malformed.stderr
    missing = headrace("configs", "--describe", "--topic", topic + "x")
    assert missing.stdout == (
        f"The topic '{topic}x' doesn't exist and doesn't have dynamic config.\n"
    )
    no_type = headrace("configs", "--describe", succeed=False)
    assert (no_type.exit_code, no_type.stderr) == (
        1,
        "At least one entity type must be specified\n",
    )
