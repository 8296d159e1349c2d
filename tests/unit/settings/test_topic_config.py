import pytest

from headrace.errors import SettingError
from headrace.log.log_config import LogConfig
from headrace.settings.broker_settings import BrokerSettings


def test_a_topic_without_configs_has_the_brokers_defaults() -> None:
    settings = BrokerSettings.from_properties({"log.roll.hours": "2", "log.retention.minutes": "3"})
    config = settings.topic_config({})
    assert config.segment_ms == 7_200_000
    assert config.retention_ms == 180_000
    assert config.cleanup_policy == {"delete"}
    assert config is settings.topic_config({})


def test_own_configs_win() -> None:
    settings = BrokerSettings.from_properties({"log.retention.ms": "-7"})
    config = settings.topic_config(
        {"cleanup.policy": "compact,delete", "segment.bytes": "2000000", "preallocate": "true"}
    )
    assert config.retention_ms == -1
    assert config.cleanup_policy == {"compact", "delete"}
    assert config.segment_bytes == 2_000_000
    assert config.preallocate
    assert config == settings.topic_config(
        {"cleanup.policy": "delete,compact", "segment.bytes": "2000000", "preallocate": "TRUE"}
    )
    assert config != settings.topic_defaults


def test_tests_may_have_small_segments() -> None:
    settings = BrokerSettings.from_properties({})
    assert settings.topic_config({"internal.segment.bytes": "1000"}).segment_bytes == 1000


def test_malformed_configs_are_refused() -> None:
    with pytest.raises(SettingError, match=r"Invalid value x for configuration retention\.ms"):
        BrokerSettings.from_properties({}).topic_config({"retention.ms": "x"})


def test_the_defaults_are_those_of_the_log() -> None:
    settings = BrokerSettings.from_properties({})
    ours = settings.topic_defaults.to_log_config(
        producer_id_expiration_ms=settings.producer_id_expiration_ms
    )
    assert ours == LogConfig()


@pytest.mark.parametrize(
    ("codec", "level"),
    [("gzip", None), ("lz4", 9), ("zstd", 5), ("snappy", None), ("producer", None)],
)
def test_a_log_gets_the_level_of_its_codec(codec: str, level: int | None) -> None:
    config = BrokerSettings.from_properties({}).topic_config(
        {"compression.type": codec, "compression.zstd.level": "5", "segment.index.bytes": "4"}
    )
    log_config = config.to_log_config(producer_id_expiration_ms=1)
    assert log_config.compression_level == level
    assert log_config.segment_index_bytes == 24
