"""Documents are validated in processes that end over a schema that takes too long; the next document is validated again."""

import contextlib
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psutil
import pytest

from headrace.rest.payloads.json_schema_data import SchemaDocuments
from headrace.rest.payloads.json_schema_process import ValidatorProcesses
from headrace.rest.payloads.schema_codec import NotOfSchema, UnusableSchema
from tests.support.rest_process import RestProcess

Json = Any

NUMBER = SchemaDocuments.of('{"type":"integer"}', {})


def fan_out(levels: int = 20) -> str:
    """A short schema that stands for 4 ** levels comparisons."""
    definitions: Json = {
        f"d{level}": {"allOf": [{"$ref": f"#/$defs/d{level + 1}"}] * 4} for level in range(levels)
    }
    definitions[f"d{levels}"] = {"type": "object"}
    return json.dumps({"$ref": "#/$defs/d0", "$defs": definitions})


@pytest.fixture
def processes() -> Iterator[ValidatorProcesses]:
    found = ValidatorProcesses(max_cpu_s=0.5, count=2)
    yield found
    found.close()


def test_documents_and_schemas(processes: ValidatorProcesses) -> None:
    processes.compile(NUMBER)
    for _ in range(2):
        processes.validate(NUMBER, b"1")
        with pytest.raises(NotOfSchema, match="is not of type"):
            processes.validate(NUMBER, b'"x"')
    with pytest.raises(NotOfSchema, match="truncated"):
        processes.validate(NUMBER, b"[")
    with pytest.raises(UnusableSchema):
        processes.compile(SchemaDocuments.of('{"type":"nope"}', {}))
    other = SchemaDocuments.of('{"$ref":"other.json"}', {"other.json": '{"type":"string"}'})
    processes.validate(other, b'"x"')
    with pytest.raises(NotOfSchema):
        processes.validate(other, b"1")


def test_more_schemas_than_a_process_keeps(processes: ValidatorProcesses) -> None:
    schemas = [SchemaDocuments.of(f'{{"const":{number}}}', {}) for number in range(300)]
    for number, schema in enumerate(schemas * 2):
        processes.validate(schema, str(number % 300).encode())


def test_large_messages_both_ways(processes: ValidatorProcesses) -> None:
    document = json.dumps("x" * 5_000_000).encode()
    with pytest.raises(NotOfSchema) as refused:
        processes.validate(NUMBER, document)
    assert len(str(refused.value)) < 2000


def test_a_schema_that_takes_too_long(processes: ValidatorProcesses) -> None:
    slow = SchemaDocuments.of(fan_out(), {})
    with ThreadPoolExecutor(3) as threads:
        found = [threads.submit(processes.validate, slow, b"{}") for _ in range(3)]
        for each in found:
            with pytest.raises(NotOfSchema, match=r"within 0\.5 s of CPU time"):
                each.result()
    processes.validate(NUMBER, b"1")


def test_time_is_counted_for_each_document(processes: ValidatorProcesses) -> None:
    """Each of these takes a good part of what one may take."""
    slow = SchemaDocuments.of(fan_out(9), {})
    for _ in range(100):
        processes.validate(slow, b"{}")


def test_a_schema_that_is_nested_too_deeply(processes: ValidatorProcesses) -> None:
    deep = '{"not":' * 100_000 + "{}" + "}" * 100_000
    with pytest.raises(UnusableSchema):
        processes.compile(SchemaDocuments.of(deep, {}))
    processes.validate(NUMBER, b"1")


@pytest.mark.parametrize("size", [1, 1_000_000])
def test_a_process_that_does_not_answer_is_ended(size: int) -> None:
    """A small document is written and not answered; a large one cannot even be written."""
    processes = ValidatorProcesses(silence_s=3.0, count=1)
    try:
        _validate_in_the_end(processes)
        [stopped] = [
            each
            for each in psutil.Process().children()
            if ValidatorProcesses.__module__ in each.cmdline()
        ]
        stopped.suspend()
        with pytest.raises(NotOfSchema, match=r"did not answer within 3 s"):
            processes.validate(NUMBER, b"1" * size)
        assert not stopped.is_running()
        _validate_in_the_end(processes)
    finally:
        processes.close()


def _validate_in_the_end(processes: ValidatorProcesses) -> None:
    """On a busy machine a process may take longer to start than it may be silent."""
    for _ in range(10):
        with contextlib.suppress(NotOfSchema):
            processes.validate(NUMBER, b"1")
            return
    pytest.fail("nothing was validated")


@pytest.mark.parametrize("version", [2, 3])
def test_others_are_served_meanwhile(proxy: RestProcess, topic: str, version: int) -> None:
    schema = fan_out()

    def produce() -> Json:
        if version == 3:
            value = {"type": "JSONSCHEMA", "schema": schema, "data": {}}
            [answer] = proxy.produce(topic, {"value": value})
            return answer
        body = {"value_schema": schema, "records": [{"value": {}}]}
        return proxy.produce_v2(topic, "jsonschema", body)[1]

    with ThreadPoolExecutor(1) as threads:
        answer = threads.submit(produce)
        answered_meanwhile = 0
        while not answer.done():
            assert proxy.ask("GET", "/healthz")[0] == 200
            answered_meanwhile += not answer.done()
        assert answer.result()["error_code"] == 400
        assert "of CPU time" in answer.result()["message"]
    assert answered_meanwhile > 10
