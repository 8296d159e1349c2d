"""Settings of new instances."""

import msgspec
import pytest

from headrace.rest.consumers.forms import CreateForm, SubscriptionForm
from headrace.rest.errors import RestError
from headrace.rest.payloads.formats import Format

decode = msgspec.json.Decoder(CreateForm).decode


def test_nothing_asked_for() -> None:
    found = decode(b"{}").settings()
    assert (found.name, found.format, found.consumer) == (None, Format.BINARY, {})
    assert (found.min_bytes, found.timeout_ms) == (None, None)


def test_everything_asked_for() -> None:
    found = decode(
        b'{"name":"n","id":"i","format":"Avro","auto.offset.reset":"none",'
        b'"auto.commit.enable":false,"fetch.min.bytes":"5","consumer.request.timeout.ms":7}'
    ).settings()
    assert (found.name, found.format) == ("i", Format.AVRO)
    assert found.consumer == {"auto.offset.reset": "error", "enable.auto.commit": "false"}
    assert (found.min_bytes, found.timeout_ms) == (5, 7)


def test_older_names_of_settings() -> None:
    found = decode(b'{"responseMinBytes":5,"requestWaitMs":6}').settings()
    assert (found.min_bytes, found.timeout_ms) == (5, 6)


@pytest.mark.parametrize(
    ("form", "status"),
    [
        (SubscriptionForm(), 422),
        (SubscriptionForm(topic_pattern="("), 422),
        (SubscriptionForm(topic_pattern="a" * 1001), 422),
        (SubscriptionForm(topics=["a"], topic_pattern="a"), 409),
    ],
)
def test_subscriptions_that_are_none(form: SubscriptionForm, status: int) -> None:
    with pytest.raises(RestError) as refused:
        form.check()
    assert refused.value.status == status
