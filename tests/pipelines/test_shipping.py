"""Source and sink where Headrace is not installed: sent with the job, on one machine and on a cluster."""

import json
import os
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest

from headrace.pipelines.spark.java import java_home
from headrace.pipelines.spark_session import write_package
from tests.pipelines.environments import python_without_headrace
from tests.pipelines.example_run import EXAMPLES
from tests.pipelines.pipeline_process import QUICK, QUICK_JAVA, call
from tests.support.server_process import free_port
from tests.support.spark_topics import Topics

SPARK_HOME = Path(pyspark.__file__).parent
PATIENCE_S = 120
JOB = """
import sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
from headrace.pipelines.source import HeadraceDataSource
spark.dataSource.register(HeadraceDataSource)
cluster = {"kafka.bootstrap.servers": sys.argv[1]}
rows = spark.range(50).selectExpr("cast(id as string) as value")
rows.write.format("headrace").mode("append").options(topic=sys.argv[2], **cluster).save()
read = spark.read.format("headrace").options(subscribe=sys.argv[2], **cluster).load()
assert read.count() == 50
assert HeadraceDataSource.__module__ == "headrace.pipelines.source"
assert "headrace.zip" in sys.modules["headrace"].__file__, "it came with the job"
"""


def spark_environment() -> dict[str, str]:
    home = java_home()
    return {
        **os.environ,
        **({"JAVA_HOME": home} if home else {}),
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_DAEMON_JAVA_OPTS": QUICK_JAVA,
    }


def test_a_job_that_brings_the_source_along(topics: Topics, tmp_path: Path) -> None:
    topic = topics.create("brought")
    job = tmp_path / "job.py"
    job.write_text(JOB)
    package = write_package(tmp_path / "headrace.zip")
    submit = [str(SPARK_HOME / "bin" / "spark-submit"), *QUICK, "--py-files", str(package)]
    done = subprocess.run(
        [*submit, str(job), topics.bootstrap_servers, topic],
        env=spark_environment() | python_without_headrace(tmp_path),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert len(topics.read(topic)) == 50


@contextmanager
def daemon(name: str, log: Path, *arguments: str) -> Iterator[None]:
    """A master or a worker of Spark's, from its wheel."""
    command = [str(SPARK_HOME / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}"]
    with log.open("w") as output:
        process = subprocess.Popen(
            [*command, *arguments],
            env=spark_environment(),
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        try:
            yield
        finally:
            process.kill()
            process.wait()


@contextmanager
def standalone_cluster(directory: Path) -> Iterator[str]:
    """A master and two workers; the master's URL."""
    port, page = free_port(), free_port()
    master = f"spark://127.0.0.1:{port}"
    host = ("--host", "127.0.0.1")
    worker = ("--cores", "1", "--memory", "600m", *host, "--webui-port", "0", "--work-dir")
    with (
        daemon(
            "master.Master",
            directory / "master.log",
            *(*host, "--port", str(port), "--webui-port", str(page)),
        ),
        daemon("worker.Worker", directory / "one.log", *worker, str(directory / "one"), master),
        daemon("worker.Worker", directory / "two.log", *worker, str(directory / "two"), master),
    ):
        wait_for_workers(page, 2)
        yield master


def wait_for_workers(port: int, count: int) -> None:
    deadline = time.monotonic() + PATIENCE_S
    alive = 0
    while alive < count:
        assert time.monotonic() < deadline, f"{alive} of {count} workers"
        time.sleep(0.2)
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/", timeout=5) as answer:
                alive = json.load(answer)["aliveworkers"]
        except (OSError, ValueError):  # it answers before it has something to say
            continue


@pytest.mark.timeout(900)
def test_a_pipeline_on_a_master_and_two_workers(own_topics: Topics, tmp_path: Path) -> None:
    own_topics.create_named("lines", 4)
    own_topics.create_named("word-counts", 2)
    for number in range(4):
        own_topics.send("lines", [f"a b{number}"] * 25, partition=number)
    with standalone_cluster(tmp_path) as master:
        done = call(
            *("pipeline", "run", str(EXAMPLES / "word_count.py"), "--available-now"),
            *("--master", master, "--bootstrap-server", own_topics.bootstrap_servers),
            *("--conf", "spark.executor.memory=512m", "--conf", "spark.driver.memory=512m"),
            *("--conf", "spark.sql.shuffle.partitions=2"),
            *("--conf", f"spark.driver.extraJavaOptions={QUICK_JAVA}"),
            *("--conf", f"spark.executor.extraJavaOptions={QUICK_JAVA}"),
            state=tmp_path / "state",
            **python_without_headrace(tmp_path),
        )
        assert done.returncode == 0, done.stderr
    found = (json.loads(value or b"") for value in own_topics.values("word-counts"))
    assert {each["word"]: each["count"] for each in found} == {
        "a": 100,
        **{f"b{number}": 25 for number in range(4)},
    }
    for name in ("one", "two"):
        assert list(tmp_path.glob(f"{name}/app-*/*")), f"worker {name} had an executor"
