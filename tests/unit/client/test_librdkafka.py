"""Clients of librdkafka: quiet, and clear about a setting that they do not take."""

import pytest

from headrace.client.librdkafka import SettingRefused, make_consumer, make_producer


def test_clients_are_made_without_a_broker() -> None:
    assert len(make_producer({"bootstrap.servers": ""})) == 0
    consumer = make_consumer({"bootstrap.servers": "", "group.id": "g"})
    assert consumer.assignment() == []
    consumer.close()


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"no.such.setting": "1"}, 'No such configuration property: "no.such.setting"'),
        ({"acks": "many"}, 'Invalid value for configuration property "request.required.acks"'),
    ],
)
def test_a_setting_that_is_not_taken_is_named(settings: dict[str, object], text: str) -> None:
    with pytest.raises(SettingRefused, match=text):
        make_producer(settings)


def test_a_consumer_without_a_group_is_refused() -> None:
    with pytest.raises(SettingRefused, match=r"group\.id"):
        make_consumer({"bootstrap.servers": ""})
