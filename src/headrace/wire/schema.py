"""Reads the `SCHEMA` rows of a message class as they stand in one version."""

from collections.abc import Iterator
from typing import Any, NamedTuple

FIXED: dict[str, tuple[str, int]] = {
    "bool": ("?", 1),
    "int8": ("b", 1),
    "int16": ("h", 2),
    "uint16": ("H", 2),
    "int32": ("i", 4),
    "uint32": ("I", 4),
    "int64": ("q", 8),
    "float64": ("d", 8),
    "uuid": ("16s", 16),
}


class FieldSchema(NamedTuple):
    """One field in one version."""

    name: str
    type: Any  # the name of a primitive, or a message class
    is_array: bool
    is_present: bool
    is_nullable: bool
    tag: int | None  # None where the field stands in line
    default: Any
    is_always_set: bool  # in no version may it be None

    @property
    def is_struct(self) -> bool:
        return not isinstance(self.type, str)

    @property
    def fixed(self) -> tuple[str, int] | None:
        """The `struct` code and the size of a value whose size is always the same."""
        return None if self.is_array or self.is_struct else FIXED.get(self.type)


def fields_at(cls: Any, version: int) -> Iterator[FieldSchema]:
    """All fields of a class, in wire order; those that the version lacks are marked absent."""
    for row in cls.SCHEMA:
        name, kind, first, last, default = row[:5]
        nullable_from = row[5] if len(row) > 5 else None
        tag: int | None
        tag, tagged_from = row[6:] or (None, 0)
        is_array = isinstance(kind, tuple)
        yield FieldSchema(
            name=name,
            type=kind[0] if is_array else kind,
            is_array=is_array,
            is_present=first <= version <= last,
            is_nullable=nullable_from is not None and nullable_from <= version,
            tag=tag if tag is not None and tagged_from <= version else None,
            default=default,
            is_always_set=nullable_from is None and tag is None,
        )


def holds_records(cls: Any) -> bool:
    """Whether record batches lie somewhere inside, so that copying the whole message would cost."""
    return any(
        field.type == "records" or (field.is_struct and holds_records(field.type))
        for field in fields_at(cls, 0)
    )


def smallest_size(field: FieldSchema, version: int, *, flexible: bool) -> int:
    """The fewest bytes that one value, or one element, of this field takes on the wire."""
    if field.is_struct:
        inner = (one for one in fields_at(field.type, version) if one.is_present)
        size = sum(
            smallest_value(one, version, flexible=flexible) for one in inner if one.tag is None
        )
        return size + flexible
    fixed = FIXED.get(field.type)
    if fixed:
        return fixed[1]
    if flexible:
        return 1
    return 2 if field.type == "string" else 4


def smallest_value(field: FieldSchema, version: int, *, flexible: bool) -> int:
    if field.is_array:
        return 1 if flexible else 4
    if field.is_struct and field.is_nullable:
        return 1
    return smallest_size(field, version, flexible=flexible)
