"""The proxy as a program: start-up, what it tells of itself, limits, how it stops."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.rest.test_v3_records import Stream, text
from tests.support.rest_process import STOP_S, RestProcess, v2_type
from tests.support.server_process import free_port


@pytest.fixture(scope="module")
def tight(brokers: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RestProcess]:
    """A proxy with narrow limits and without a registry."""
    properties = {
        "consumer.instance.timeout.ms": "1500",
        "headrace.consumer.instances.max": "2",
        "headrace.request.max.bytes": "100000",
        "api.v3.produce.request.size.limit.max.bytes": "1000",
        "api.v3.produce.batch.maximum.entries": "2",
        "streaming.connection.max.duration.ms": "1500",
        "advertised.listeners": "https://public.example:8443/",
        "confluent.resource.name.authority": "my.authority",
        "id": "seven",
        "made.up": "1",
        "producer.acks": "1",
        "producer.made.up": "1",
    }
    directory = tmp_path_factory.mktemp("tight-proxy")
    with RestProcess(directory, brokers, properties=properties) as proxy:
        yield proxy


def run_tool(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "headrace.cli.main", "rest-start", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        env=os.environ,
        check=False,
    )


def listeners(port: int) -> str:
    return f"--override=listeners=http://127.0.0.1:{port}"


def test_a_port_that_is_taken(brokers: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = run_tool(
            listeners(taken.getsockname()[1]), f"--override=bootstrap.servers={brokers}"
        )
    assert done.returncode == 1
    assert "cannot listen on 127.0.0.1" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_broker_that_is_away() -> None:
    port = free_port()
    done = run_tool(listeners(free_port()), f"--override=bootstrap.servers=127.0.0.1:{port}")
    assert done.returncode == 1
    assert f"cannot reach a broker at 127.0.0.1:{port}" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("listeners=https://x:1", "listeners=https://x:1"),
        ("fetch.min.bytes=x", "fetch.min.bytes=x: expected a number from -1 to 10000000"),
        ("client.security.protocol=SASL_SSL", "PLAINTEXT only"),
        ("schema.registry.url=nope", "schema.registry.url=nope"),
        ("nonsense", "expected name=value"),
    ],
)
def test_a_setting_that_is_wrong(override: str, words: str) -> None:
    done = run_tool(f"--override={override}")
    assert done.returncode == 1
    assert words in done.stderr
    assert "docs/rest-proxy.md" in done.stderr


def test_a_setting_that_librdkafka_refuses(brokers: str) -> None:
    done = run_tool(
        listeners(free_port()),
        f"--override=bootstrap.servers={brokers}",
        "--override=producer.compression.type=nope",
    )
    assert done.returncode == 1
    assert 'Invalid value "nope" for configuration property' in done.stderr
    assert "Traceback" not in done.stderr


def test_a_file_of_confluents(brokers: str, tmp_path: Path) -> None:
    file = tmp_path / "kafka-rest.properties"
    file.write_text(
        "#id=kafka-rest-test-server\n#schema.registry.url=http://localhost:8081\n"
        f"bootstrap.servers=PLAINTEXT://{brokers}\nconsumer.threads=50\n"
    )
    proxy = RestProcess(tmp_path, brokers)
    proxy.command = [*proxy.command[:4], str(file), f"--override=listeners={proxy.url}"]
    with proxy:
        assert proxy.ask("GET", "/brokers")[0] == 200
        assert "mean nothing" not in proxy.log_tail()


def test_it_tells_which_settings_mean_nothing(tight: RestProcess) -> None:
    assert "settings that mean nothing here: made.up, producer.made.up" in tight.log_tail(100_000)


def test_health_and_metrics(tight: RestProcess, topic: str) -> None:
    assert tight.ask("GET", "/healthz") == (200, {"status": "ok"})
    tight.produce(topic, text("x"), {"value": 1})
    _, headers, page = tight.ask_raw("GET", "/metrics")
    assert headers["content-type"].startswith("text/plain; version=0.0.4")
    lines = dict(line.rsplit(" ", 1) for line in page.decode().splitlines() if line[0] != "#")
    assert float(lines["kafka_rest_produce_api_metrics_response_total"]) >= 1
    assert float(lines["kafka_rest_produce_api_metrics_record_error_total"]) >= 1
    assert lines["kafka_rest_cluster_reachable"] == "1"
    route = 'method="POST",route="/v3/clusters/{cluster}/topics/{topic}/records",status="200"'
    assert float(lines[f"kafka_rest_http_requests_total{{{route}}}"]) >= 1
    assert float(lines["kafka_rest_jersey_metrics_v3_produce_produce_to_topic_request_total"]) >= 1
    assert float(lines["kafka_rest_jetty_metrics_connections_active"]) >= 1


def test_links_lead_to_the_advertised_address(tight: RestProcess) -> None:
    [cluster] = tight.ask("GET", "/v3/clusters")[1]["data"]
    assert cluster["metadata"]["self"].startswith("https://public.example:8443/v3/clusters/")
    assert cluster["metadata"]["resource_name"].startswith("crn://my.authority/kafka=")
    consumer = tight.consumer("links")
    assert consumer.path.rpartition("/")[2].startswith("rest-consumer-seven-")
    consumer.delete()


def test_instances_are_limited_and_expire(tight: RestProcess, topic: str) -> None:
    first, second = tight.consumer("many"), tight.consumer("many")
    first.assign((topic, 0))
    second.assign((topic, 0))
    status, answer = tight.v2("POST", "/consumers/many", {})
    assert (status, answer["error_code"]) == (503, 50302)
    assert "no more are allowed" in answer["message"]
    deadline = time.monotonic() + 30
    # `second` is used, and lives on; `first` is not.
    while first.proxy.v2("POST", "/consumers/many", {"name": "third"})[0] != 200:
        assert second.ask("GET", "/assignments")[0] == 200
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert first.ask("GET", "/assignments")[1]["error_code"] == 40403
    second.delete()


def test_bodies_are_limited(tight: RestProcess, topic: str) -> None:
    status, answer = tight.produce_v2(topic, "json", {"records": [{"value": "x" * 200_000}]})
    assert (status, answer["error_code"]) == (413, 413)
    first, last = tight.produce(topic, text("small"), text("x" * 2000), text("not seen"))
    assert (first["error_code"], last["error_code"]) == (200, 400)
    assert last["message"].endswith("Produce request size is larger than allowed threshold")
    entries = [{"id": str(number)} for number in range(3)]
    status, answer = tight.v3("POST", f"/topics/{topic}/records:batch", {"entries": entries})
    assert answer["message"] == "Too many entries in batch."


def test_a_stream_is_limited_in_time(tight: RestProcess, topic: str) -> None:
    stream = Stream(tight, topic)
    stream.send(json.dumps(text("x")).encode())
    answers = list(stream.answers())
    assert [each["error_code"] for each in answers] == [200, 408]
    stream.close()


def test_without_a_registry_schemas_are_refused(tight: RestProcess, topic: str) -> None:
    [answer] = tight.produce(topic, {"value": {"schema_id": 1, "data": 1}})
    assert answer == {
        "error_code": 422,
        "message": "Error: 42206 : Payload error. Schema Registry must be configured when using schemas.",
    }


def test_versions_can_be_turned_off(brokers: str, tmp_path: Path) -> None:
    for version, gone, there in (
        ("v2", "/topics", "/v3/clusters"),
        ("v3", "/v3/clusters", "/topics"),
    ):
        properties = {f"api.{version}.enable": "false"}
        with RestProcess(tmp_path, brokers, properties=properties) as proxy:
            assert proxy.ask("GET", gone)[0] == 404
            assert proxy.ask("GET", there)[0] == 200


def test_a_registry_that_is_away_costs_schemas_only(
    brokers: str, topic: str, tmp_path: Path
) -> None:
    registry = f"http://127.0.0.1:{free_port()}"
    properties = {"headrace.registry.timeout.ms": "1000"}
    with RestProcess(tmp_path, brokers, registry=registry, properties=properties) as proxy:
        asked, plain = proxy.produce(topic, {"value": {"schema_id": 1, "data": 1}}, text("x"))
        assert (asked["error_code"], plain["error_code"]) == (50003, 200)
        assert "Error when fetching schema by id. schemaId = 1" in asked["message"]
        body = {"value_schema_id": 1, "records": [{"value": 1}]}
        status, answer = proxy.produce_v2(topic, "avro", body)
        assert (status, answer["error_code"]) == (500, 50003)
        assert "does not answer" in answer["message"]


def test_it_stops_in_good_order_with_clients_there(
    brokers: str, topic: str, tmp_path: Path
) -> None:
    proxy = RestProcess(tmp_path, brokers)
    proxy.start()
    stream = Stream(proxy, topic)
    stream.send(json.dumps(text("x")).encode())
    answers = stream.answers()
    assert next(answers)["error_code"] == 200
    consumer = proxy.consumer("stopping")
    consumer.subscribe(topic)
    consumer.records(1)
    started = time.monotonic()
    proxy.stop()
    assert time.monotonic() - started < STOP_S
    assert list(answers) == []
    assert "Traceback" not in proxy.log_tail(100_000)
    with RestProcess(tmp_path, brokers) as again:
        # What was read was committed when the proxy stopped.
        _, lags = again.v3("GET", "/consumer-groups/stopping/lags")
        assert [each["lag"] for each in lags["data"]] == [0]
    stream.close()


def test_hostile_bytes_cost_their_connection_only(proxy: RestProcess) -> None:
    for data in (
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"POST /topics/t HTTP/1.1\r\nContent-Length: -5\r\n\r\n",
        b"GET /" + b"a" * 200_000 + b" HTTP/1.1\r\n\r\n",
        b"POST /topics/t HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"GET /topics/%ff%00%2e%2e HTTP/1.1\r\nHost: x\r\n\r\n",
    ):
        with socket.create_connection(("127.0.0.1", proxy.port), timeout=10) as connection:
            answer = b""
            with suppress(ConnectionError):  # the proxy may close it before all is sent
                connection.sendall(data)
                with suppress(OSError):  # it is closed already
                    connection.shutdown(socket.SHUT_WR)
                answer = connection.recv(100)
            assert b" 5" not in answer[:14]
    deep = b'{"records":[{"value":' + b"[" * 100_000 + b"]" * 100_000 + b"}]}"
    headers = {"Content-Type": v2_type("json")}
    assert proxy.ask_raw("POST", "/topics/t", deep, headers=headers)[0] in (400, 404)
    assert proxy.ask("GET", "/healthz")[0] == 200
