"""The schemas that columns are read with, chosen when a query is planned, and carried in the metadata of Spark's columns.

Spark plans and runs a query in several processes. The newest schema of a subject may change between them, so it is asked for once,
and travels with the column from then on.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from headrace.pipelines.cluster.task_clients import registry_for
from headrace.pipelines.options.known_options import OptionError
from headrace.schemas.columns.codec import PinnedSchema
from headrace.schemas.columns.codecs import codec_of
from headrace.schemas.columns.pinned_schemas import UNKNOWN, PinnedSchemas
from headrace.schemas.formats.schema_format import InvalidSchema
from headrace.schemas.registry_client import RegistryRefused, Schema
from headrace.schemas.subject_names import (
    SubjectNameStrategy,
    context_of,
    in_context,
    subject_name,
)

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

    from headrace.pipelines.options.schema_options import FormatOptions, RegistryOptions
    from headrace.pipelines.options.source_options import TopicChoice

METADATA: Final = "headrace.schema"


def pinned_schemas(wanted: FormatOptions, registry: RegistryOptions) -> PinnedSchemas:
    """The registry's schemas in a column's language, in the context that the subject or the registry's setting names."""
    context = context_of(wanted.subject) or registry.context
    return PinnedSchemas(registry_for(registry), codec_of(wanted.format), context=context)


def chosen_schemas(
    formats: Iterable[FormatOptions], registry: RegistryOptions | None, topics: TopicChoice
) -> dict[str, PinnedSchema]:
    """The schema of each column that has one. Raises OptionError, RegistryUnreachable."""
    found = {}
    for each in formats:
        if each.has_registry:
            assert registry is not None
            try:
                found[each.column] = _chosen(each, registry, topics)
            except InvalidSchema as error:
                raise OptionError(f"the schema of the {each.column}: {error}") from error
            except RegistryRefused as error:
                raise OptionError(f"the schema of the {each.column}: {error}") from error
    return found


def _chosen(wanted: FormatOptions, registry: RegistryOptions, topics: TopicChoice) -> PinnedSchema:
    schemas = pinned_schemas(wanted, registry)
    if wanted.schema:
        language = codec_of(wanted.format).schema_type
        schema = Schema(wanted.schema, language, wanted.references)
        return schemas.of_text(schema, message=wanted.message)
    if wanted.schema_id is not None:
        return schemas.of_id(wanted.schema_id, message=wanted.message).pinned
    found: dict[PinnedSchema, str] = {}
    for subject in _subjects(wanted, registry, topics):
        try:
            known = schemas.of_subject(subject, wanted.version, message=wanted.message)
        except RegistryRefused as error:
            if error.code not in UNKNOWN:
                raise
            raise OptionError(_unknown(subject, wanted, error)) from error
        found.setdefault(known.pinned, subject)
    if len(found) > 1:
        first, second, *_ = found.values()
        raise OptionError(
            f"the subjects {first} and {second} have different schemas, and a column has one:"
            f" choose with {wanted.column}Subject or {wanted.column}Schema"
        )
    return next(iter(found))


def _unknown(subject: str, wanted: FormatOptions, error: RegistryRefused) -> str:
    column = wanted.column
    return (
        f"the registry has no schema for the {column}s: {error} ({column}Subject names another subject than {subject},"
        f" {column}Schema brings a schema of your own)"
    )


def _subjects(
    wanted: FormatOptions, registry: RegistryOptions, topics: TopicChoice
) -> Iterable[str]:
    column = wanted.column
    if wanted.subject:
        return [in_context(registry.context, wanted.subject)]
    if wanted.strategy is not SubjectNameStrategy.TOPIC:
        raise OptionError(
            f"with {wanted.strategy.value}, {column}Subject must name the subject to read with,"
            f" or {column}Schema the schema: a topic alone does not tell which record"
        )
    if topics.pattern is not None:
        raise OptionError(
            f"with subscribePattern, {column}Subject must name the subject to read with, or {column}Schema the schema"
        )
    return [
        subject_name(
            wanted.strategy, topic, is_key=wanted.is_key, record_name="", context=registry.context
        )
        for topic in topics.topics_among([])
    ]


# ---- in Spark's columns


def with_metadata(schema: StructType, pinned: Mapping[str, PinnedSchema]) -> StructType:
    """Spark's columns, each with the schema that it is read with."""
    from pyspark.sql.types import StructField, StructType

    return StructType(
        [
            StructField(each.name, each.dataType, each.nullable, _packed(pinned.get(each.name)))
            for each in schema.fields
        ]
    )


def _packed(schema: PinnedSchema | None) -> dict[str, Any]:
    return {} if schema is None else {METADATA: json.dumps(schema._asdict())}


def from_metadata(schema: StructType) -> dict[str, PinnedSchema]:
    """The schemas that columns came with."""
    return {
        each.name: PinnedSchema(**json.loads(each.metadata[METADATA]))
        for each in schema.fields
        if each.metadata and METADATA in each.metadata
    }
