"""The schema language AVRO: Java's canonical text, and the specification's reader/writer rules. Pure.

The canonical text is what Java's `Schema.toString()` prints, because registries identify schemas by it: the same schema
must have the same id here and in Confluent's registry.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, cast

from headrace.schemas.formats.avro.normalization import normalized_type
from headrace.schemas.formats.avro.parser import parse_avro
from headrace.schemas.formats.avro.printer import schema_text
from headrace.schemas.formats.avro.tags import change_tags, tagged_entities
from headrace.schemas.formats.avro.types import PROMOTIONS, Type
from headrace.schemas.formats.schema_format import Difference, ParsedSchema, TaggedEntity


class AvroFormat:
    """The language AVRO."""

    NAME: Final = "AVRO"

    def parse(
        self, text: str, references: Mapping[str, str], *, is_new: bool = True
    ) -> ParsedSchema:
        """Parse a schema; the types that its references define are known to it."""
        return AvroSchema(*parse_avro(text, references.values(), check_defaults=is_new))


class AvroSchema:
    """A parsed schema. `referenced` are the full names that its text uses and does not define."""

    def __init__(self, root: Type, referenced: frozenset[str] = frozenset()) -> None:
        self.root = root
        self._referenced = referenced

    def canonical(self) -> str:
        """Java's `toString()`."""
        return schema_text(self.root, self._referenced)

    def normalized(self) -> str:
        """The canonical text with attributes in order, as Confluent normalises."""
        return schema_text(normalized_type(self.root), self._referenced)

    def formatted(self, form: str) -> str:
        """`resolved`: with the types of its references written out."""
        return schema_text(self.root) if form == "resolved" else self.canonical()

    def can_read(self, writer: ParsedSchema, *, is_lenient: bool = False) -> list[Difference]:
        """The specification's schema resolution."""
        return _Comparison().compare(self.root, cast(AvroSchema, writer).root, "")

    def tags(self) -> list[TaggedEntity]:
        """The records and fields that have the attribute `confluent:tags`."""
        return list(tagged_entities(self.root))

    def tagged(self, add: Sequence[TaggedEntity], remove: Sequence[TaggedEntity]) -> ParsedSchema:
        """The same schema with other tags; this one is changed, too."""
        change_tags(self.root, add, remove)
        return self

    def has_top_level_field(self, name: str) -> bool:
        """Whether the schema is a record with a field."""
        return any(field.name == name for field in self.root.fields)

    def check_fields(self) -> None:
        """Avro's own rules are strict enough."""


# ---- compatibility


class _Comparison:
    """Compares a reader's schema with a writer's. Pairs under way count as compatible: types may be recursive."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], list[Difference]] = {}

    def compare(self, reader: Type, writer: Type, path: str) -> list[Difference]:
        pair = (id(reader), id(writer))
        if pair not in self._known:
            self._known[pair] = []
            self._known[pair] = self._compare(reader, writer, path)
        return self._known[pair]

    def _compare(self, reader: Type, writer: Type, path: str) -> list[Difference]:
        if reader.kind == writer.kind:
            return self._compare_same_kind(reader, writer, path)
        if writer.kind == "union":
            return [
                difference
                for branch in writer.branches
                for difference in self.compare(reader, branch, path)
            ]
        if reader.kind == "union":
            return self._compare_with_union(reader, writer, path)
        if writer.kind in PROMOTIONS.get(reader.kind, ()):
            return []
        return [
            Difference(
                "TYPE_MISMATCH",
                path or "/",
                f"The type (path '{path or '/'}') of a field in the {{reader}} schema does not match with the "
                "{writer} schema",
                f"reader type: {reader.kind.upper()} not compatible with writer type: {writer.kind.upper()}",
            )
        ]

    def _compare_same_kind(self, reader: Type, writer: Type, path: str) -> list[Difference]:
        match reader.kind:
            case "array":
                return self.compare(reader.element, writer.element, f"{path}/items")
            case "map":
                return self.compare(reader.element, writer.element, f"{path}/values")
            case "union":
                return [
                    difference
                    for index, branch in enumerate(writer.branches)
                    for difference in self._compare_with_union(reader, branch, f"{path}/{index}")
                ]
            case "fixed":
                return _names(reader, writer, path) + _sizes(reader, writer, path)
            case "enum":
                return _names(reader, writer, path) + _symbols(reader, writer, path)
            case "record" | "error":
                return _names(reader, writer, path) + self._fields(reader, writer, path)
            case _:
                return []

    def _compare_with_union(self, reader: Type, writer: Type, path: str) -> list[Difference]:
        if any(not self.compare(branch, writer, path) for branch in reader.branches):
            return []
        return [
            Difference(
                "MISSING_UNION_BRANCH",
                path or "/",
                f"The {{reader}} schema is missing a type inside a union field at path '{path or '/'}' in the "
                "{writer} schema",
                f"reader union lacking writer type: {writer.kind.upper()}",
            )
        ]

    def _fields(self, reader: Type, writer: Type, path: str) -> list[Difference]:
        differences: list[Difference] = []
        writers = {each.name: each for each in writer.fields}
        for index, each in enumerate(reader.fields):
            where = f"{path}/fields/{index}"
            theirs = next(
                (writers[name] for name in (each.name, *each.aliases) if name in writers), None
            )
            if theirs is not None:
                differences += self.compare(each.type, theirs.type, f"{where}/type")
            elif each.has_default:
                continue
            elif each.type.enum_default is not None:
                # Java takes the enum's default for the field's, then compares the enum with the record.
                differences += self.compare(each.type, writer, f"{where}/type")
            else:
                differences.append(
                    Difference(
                        "READER_FIELD_MISSING_DEFAULT_VALUE",
                        where,
                        f"The field '{each.name}' at path '{where}' in the {{reader}} schema has no default value "
                        "and is missing in the {writer} schema",
                        each.name,
                    )
                )
        return differences


def _names(reader: Type, writer: Type, path: str) -> list[Difference]:
    if reader.name == writer.name or writer.full_name in reader.aliases:
        return []
    return [
        Difference(
            "NAME_MISMATCH",
            f"{path}/name",
            f"The name of the schema has changed (path '{path}/name')",
            f"expected: {writer.full_name}",
        )
    ]


def _sizes(reader: Type, writer: Type, path: str) -> list[Difference]:
    if reader.size == writer.size:
        return []
    return [
        Difference(
            "FIXED_SIZE_MISMATCH",
            f"{path}/size",
            f"The size of FIXED type field at path '{path}/size' in the {{reader}} schema does not match with the "
            "{writer} schema",
            f"expected: {writer.size}, found: {reader.size}",
        )
    ]


def _symbols(reader: Type, writer: Type, path: str) -> list[Difference]:
    missing = [symbol for symbol in writer.symbols if symbol not in reader.symbols]
    if not missing or reader.enum_default is not None:
        return []
    return [
        Difference(
            "MISSING_ENUM_SYMBOLS",
            f"{path}/symbols",
            f"The {{reader}} schema is missing enum symbols '[{', '.join(missing)}]' at path '{path}/symbols' in the "
            "{writer} schema",
            f"[{', '.join(missing)}]",
        )
    ]
