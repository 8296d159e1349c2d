"""The decorators of Spark Declarative Pipelines (`from pyspark import pipelines as dp`) as definitions of ours.

The decorators only call a registry, an abstract class inside PySpark; this module is the one place that knows it. Tables become
tables of the pipeline, views become views, sinks are any format of Spark. What needs Spark Connect or another table format
(Auto CDC, SQL files) is refused in words.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.pipelines.flow import AutoCdcFlow
from pyspark.pipelines.flow import Flow as SdpFlow
from pyspark.pipelines.graph_element_registry import (
    GraphElementRegistry,
    graph_element_registration_context,
)
from pyspark.pipelines.output import MaterializedView, Output, Sink, TemporaryView

from headrace.pipelines.pipeline import (
    Dataset,
    DefinitionError,
    Definitions,
    Flow,
    SparkFormat,
    Table,
    View,
)


class _Registry(GraphElementRegistry):
    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions
        self.targets: dict[str, Output] = {}

    def register_output(self, output: Output) -> None:
        self.targets[output.name] = output

    def register_flow(self, flow: SdpFlow) -> None:
        target = self.targets.get(flow.target)
        if target is None:
            raise DefinitionError(f"{flow.name} writes into {flow.target}, which is not defined")
        if isinstance(target, TemporaryView):
            self._definitions.add(View(name=flow.name, query=flow.func, inputs=()))
            return
        into: Dataset = Table(name=target.name)
        if isinstance(target, Sink):
            into = SparkFormat(format=target.format, options=dict(target.options))
        self._definitions.add(
            Flow(
                name=flow.name,
                into=into,
                query=flow.func,
                inputs=(),
                is_batch=isinstance(target, MaterializedView),
            )
        )

    def register_auto_cdc_flow(self, flow: AutoCdcFlow) -> None:
        raise DefinitionError(
            f"Auto CDC into {flow.target}: run it with spark-pipelines on an Iceberg table"
        )

    def register_sql(self, sql_text: str, file_path: Path) -> None:
        raise DefinitionError(
            f"{file_path}: SQL files are run by spark-pipelines; use sql_flow and sql_view here"
        )


@contextmanager
def collecting_sdp(definitions: Definitions) -> Iterator[None]:
    """Decorators used in here add to the definitions."""
    with graph_element_registration_context(_Registry(definitions)):
        yield
