"""What Spark says becomes a line that says what is wrong."""

import pytest

from headrace.pipelines.spark.errors import SparkFailed, first_words, java_told, why_not_started

OURS = """[PYTHON_DATA_SOURCE_ERROR] Failed to plan Python data source: Traceback (most recent call last):
  File "/somewhere/source.py", line 63, in partitions
    raise OptionError(f"there is no topic {name}")
headrace.pipelines.options.known_options.OptionError: there is no topic orders in the cluster
 SQLSTATE: 38000
"""
OF_THE_USER = """Job aborted due to stage failure: Task 0 in stage 1.0 failed 1 times: Traceback (most recent call last):
  File "/home/ann/words.py", line 7, in twice
    return 2 / number
ZeroDivisionError: division by zero
\tat org.apache.spark.api.python.BasePythonRunner.handlePythonException(PythonRunner.scala:572)
\tat java.base/java.lang.Thread.run(Thread.java:840)
"""
OF_SPARK = """[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name `vaule` cannot be resolved. SQLSTATE: 42703; line 1 pos 7;
'Project ['vaule]
+- Range (0, 1)
"""


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (OURS, "there is no topic orders in the cluster"),
        (OF_THE_USER, "ZeroDivisionError: division by zero"),
        (
            OF_SPARK,
            "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column with name `vaule` cannot be resolved",
        ),
        ("[STREAM_FAILED] It ended. SQLSTATE: XXKST", "[STREAM_FAILED] It ended"),
        ("", "no reason was given"),
    ],
)
def test_the_words_that_matter(said: str, told: str) -> None:
    assert first_words(said) == told


NO_MASTER = """WARNING: Using incubator modules: jdk.incubator.vector
Exception in thread "main" org.apache.spark.SparkException: Master must either be yarn or start with spark, k8s, or local
\tat org.apache.spark.deploy.SparkSubmit.error(SparkSubmit.scala:1)
"""
NO_MEMORY = """Invalid maximum heap size: -Xmxabc
Error: Could not create the Java Virtual Machine.
"""
THROWN = """An error occurred while calling None.org.apache.spark.api.java.JavaSparkContext.
: org.apache.spark.SparkException: Could not parse Master URL: 'local[x]'
\tat org.apache.spark.SparkContext$.createTaskScheduler(SparkContext.scala:3391)
"""
GATEWAY = "[JAVA_GATEWAY_EXITED] Java gateway process exited before sending its port number."


@pytest.mark.parametrize(
    ("said", "logged", "why"),
    [
        (GATEWAY, NO_MASTER, "Master must either be yarn or start with spark, k8s, or local"),
        (GATEWAY, NO_MEMORY, "Invalid maximum heap size: -Xmxabc"),
        (GATEWAY, "JAVA_HOME is not set\n", "JAVA_HOME is not set"),
        (THROWN, NO_MASTER, "Could not parse Master URL: 'local[x]'"),
        (GATEWAY, "", GATEWAY),
    ],
)
def test_why_spark_did_not_start(said: str, logged: str, why: str) -> None:
    assert why_not_started(said, logged) == why


class OfTheBridge(Exception):
    """Told apart by its module, like py4j's own."""

    __module__ = "py4j.protocol"


def test_errors_of_the_bridge_lose_their_stack() -> None:
    with pytest.raises(SparkFailed) as told, java_told():
        raise OfTheBridge(THROWN)
    assert str(told.value) == "Spark failed: Could not parse Master URL: 'local[x]'"
    with pytest.raises(ZeroDivisionError), java_told():
        raise ZeroDivisionError
