"""What a broker that cannot start says of its log directories."""

from headrace.cli.local.start_failures import explained_start
from headrace.errors import NO_LOG_DIRECTORY, DiskFailed
from headrace.settings.broker_settings import BrokerSettings

SETTINGS = BrokerSettings.from_properties({"zookeeper.connect": "localhost:2181/kafka"})


def test_a_directory_in_use_is_named() -> None:
    text = f"{NO_LOG_DIRECTORY}/data/.lock: another broker uses this directory"
    failure = explained_start(DiskFailed(text), SETTINGS)
    assert failure.what == "cannot use the log directory /data"
    assert failure.why == "another broker is running on it"


def test_a_directory_that_cannot_be_written_is_named() -> None:
    failure = explained_start(
        DiskFailed(f"{NO_LOG_DIRECTORY}/data/.lock: Permission denied"), SETTINGS
    )
    assert failure.what == "cannot write to /data"
    assert failure.why == "Permission denied"
    assert "log.dirs=" in (failure.hint or "")
