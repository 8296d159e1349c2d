"""What is shown is what Kafka's own tool printed for the same bytes."""

import pytest

from headrace.cli.dump import internal_records
from headrace.cli.dump.internal_records import DELETED, show
from tests.unit.cli.dump import internal_record_samples as samples

OFFSET_KEY = '{"type":"1","data":{"group":"g","topic":"t","partition":3}}'
GROUP_KEY = '{"type":"2","data":{"group":"g"}}'


def shown_offsets(number: int) -> tuple[str, str]:
    return show(internal_records.OFFSETS, *samples.OFFSETS[number], offset=number)


@pytest.mark.parametrize(
    ("number", "value"),
    [
        (0, '{"version":"0","data":{"offset":7,"metadata":"m","commitTimestamp":100}}'),
        (
            2,
            '{"version":"1","data":{"offset":7,"metadata":"mü\\"x","commitTimestamp":100,'
            '"expireTimestamp":200}}',
        ),
        (
            6,
            '{"version":"4","data":{"offset":7,"leaderEpoch":2,"metadata":"m",'
            '"commitTimestamp":100,"topicId":"AAECAwQFBgcICQoLDA0ODw"}}',
        ),
        (7, DELETED),
    ],
)
def test_offsets(number: int, value: str) -> None:
    assert shown_offsets(number) == (OFFSET_KEY, value)


def test_what_a_consumer_put_into_a_group_is_opened() -> None:
    key, value = shown_offsets(11)
    assert key == GROUP_KEY
    assert (
        '"subscription":{"topics":["t"],"userData":null,"ownedPartitions":'
        '[{"topic":"t","partitions":[0,1]}],"generationId":7,"rackId":"rack"},'
        '"assignment":{"assignedPartitions":[{"topic":"t","partitions":[0]}],"userData":null}'
    ) in value


@pytest.mark.parametrize("number", [9, 10])
def test_what_is_no_consumers_stays_bytes(number: int) -> None:
    assert '"subscription":"YWJj","assignment":""' in shown_offsets(number)[1]


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (12, "Unknown record type 99 at offset 12, skipping."),
        (13, "Error at offset 13, skipping. Found an unknown record version 9 for 1 type"),
        (
            14,
            "Error at offset 14, skipping. Could not read record with version 1 from value's buffer"
            " due to: null.",
        ),
        (15, "Error at offset 15, skipping. Could not read version from key's buffer."),
    ],
)
def test_what_cannot_be_read_is_told(number: int, text: str) -> None:
    assert shown_offsets(number) == (text, "")


def test_transactions() -> None:
    key, value = show(internal_records.TRANSACTIONS, *samples.TRANSACTIONS[3], offset=0)
    assert key == '{"type":"0","data":{"transactionalId":"a"}}'
    assert value == (
        '{"version":"1","data":{"producerId":5,"previousProducerId":4,"nextProducerId":6,'
        '"producerEpoch":1,"transactionTimeoutMs":60000,"transactionStatus":4,'
        '"transactionPartitions":null,"transactionLastUpdateTimestampMs":10,'
        '"transactionStartTimestampMs":11,"clientTransactionVersion":2}}'
    )
