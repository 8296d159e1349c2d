"""The log tells how far the opening of logs has come."""

import logging

import pytest

from headrace.broker.replicas.log_opening import RecoveryProgress


def test_a_line_every_few_seconds(caplog: pytest.LogCaptureFixture) -> None:
    now_s = 100.0
    progress = RecoveryProgress(lambda: now_s)
    with caplog.at_level(logging.INFO):
        for done in range(1, 11):
            now_s += 1
            progress("/data", done, 10)
    assert caplog.messages == [
        "/data: 3 of 10 logs are open, 7 to go",
        "/data: 6 of 10 logs are open, 4 to go",
        "/data: 9 of 10 logs are open, 1 to go",
        "/data: all 10 logs are open after 10.0 s",
    ]


def test_no_line_if_it_takes_no_time(caplog: pytest.LogCaptureFixture) -> None:
    progress = RecoveryProgress(lambda: 100.0)
    with caplog.at_level(logging.INFO):
        progress("/data", 10, 10)
    assert caplog.messages == []
