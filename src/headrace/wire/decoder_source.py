"""Writes the source of a decoder for one message class in one version.

The decoder is one function without calls between structs: position and end stay in local variables,
neighbouring fields of fixed size are unpacked together, and the length byte in front of a string or
the tag count at the end of a struct joins the run before it. Every length is checked against the
bytes that are left before anything of that length is made.
"""

from typing import Any

from headrace.wire.schema import FIXED, FieldSchema, fields_at, holds_records, smallest_size
from headrace.wire.source import SHORT, Source

MAX_STRING_BYTES = 0x7FFF
# Of all arrays of one request, and of its tagged fields. An element of a byte or two becomes an object, and its answer
# another, of hundreds: a frame within the limit on its size must not become gigabytes, nor seconds of work in which
# nobody else is served.
MAX_ELEMENTS = 100_000


class DecoderSource:
    """Emits `decode(buf, p) -> (message, position)`."""

    def __init__(self, cls: Any, version: int, *, flexible: bool) -> None:
        self.version = version
        self.flexible = flexible
        self.source = Source()
        self._run: list[tuple[str, int, str]] = []  # struct code, size, target
        self._after: list[str] = []  # what turns raw values of the run into fields
        line = self.source.line
        line("def decode(buf, p):")
        with self.source.block():
            # Slices of bytes are cheaper than slices of views, but copy: right unless there are records.
            line(f"buf = {'memoryview' if holds_records(cls) else 'bytes'}(buf)")
            line("end = len(buf)")
            self._is_request = hasattr(cls, "RESPONSE")
            if self._is_request:
                line(f"left = {MAX_ELEMENTS}")
            line("try:")
            with self.source.block():
                root = self._struct(cls)
            line("except (StructError, IndexError, UnicodeDecodeError) as broken:")
            line(f"    raise Malformed('{cls.__name__} v{version}: ' + str(broken)) from None")
            line(f"return {root}, p")

    def _read(self, code: str, size: int, target: str) -> None:
        self._run.append((code, size, target))

    def _flush(self) -> None:
        if [code for code, _, _ in self._run] == ["B"]:
            self.source.line(f"{self._run.pop()[2]} = buf[p]; p += 1")
        if self._run:
            codes = "".join(code for code, _, _ in self._run)
            size = sum(size for _, size, _ in self._run)
            targets = ", ".join(target for _, _, target in self._run)
            comma = "," if len(self._run) == 1 else ""
            unpack = self.source.unpacker(codes)
            self.source.line(f"{targets}{comma} = {unpack}(buf, p); p += {size}")
            self._run.clear()
        for text in self._after:
            self.source.line(text)
        self._after.clear()

    def _struct(self, cls: Any) -> str:
        line = self.source.line
        self._flush()
        name = self.source.fresh("o")
        line(f"{name} = new({self.source.constant(cls)})")
        fields = list(fields_at(cls, self.version))
        for field in fields:
            if not field.is_present or field.tag is not None:
                line(f"{name}.{field.name} = {self._default(field)}")
        for field in fields:
            if field.is_present and field.tag is None:
                self._value(field, f"{name}.{field.name}")
        if self.flexible:
            self._tags([one for one in fields if one.is_present and one.tag is not None], name)
        self._flush()
        return name

    def _default(self, field: FieldSchema) -> str:
        if field.is_struct and not field.is_array:
            return f"{self.source.constant(field.type)}()" if field.is_always_set else "None"
        if field.is_array and field.default is not None:
            return "[]"
        return self.source.literal(field.default)

    def _tags(self, fields: list[FieldSchema], name: str) -> None:
        line = self.source.line
        count = self.source.fresh("t")
        self._read("B", 1, count)
        self._flush()
        line(f"if {count}:")
        with self.source.block():
            line(f"if {count} > 127: {count}, p = finish(buf, p, {count})")
            if self._is_request:
                line(f"if (left := left - {count}) < 0: raise Malformed('too many tagged fields')")
            if not fields:
                line(f"p = skip_tags(buf, p, {count}, end)")
                return
            line(f"for _ in range({count}):")
            with self.source.block():
                tag, stop = self.source.fresh("g"), self.source.fresh("e")
                line(f"{tag}, p = varint(buf, p)")
                line(f"{stop}, p = varint(buf, p)")
                line(f"{stop} += p")
                line(f"if {stop} > end: raise Malformed('a tagged field ends after its message')")
                for place, field in enumerate(fields):
                    line(f"{'if' if place == 0 else 'elif'} {tag} == {field.tag}:")
                    with self.source.block():
                        self._value(field, f"{name}.{field.name}")
                        self._flush()
                        line(f"if p != {stop}: raise Malformed('tag {field.tag} has a wrong size')")
                line("else:")
                line(f"    p = {stop}")

    def _value(self, field: FieldSchema, target: str) -> None:
        if field.is_array:
            self._array(field, target)
        elif field.is_struct:
            self._nested(field, target)
        elif field.fixed:
            self._fixed(field.type, target)
        else:
            self._sized(field.type, field.is_nullable, target)

    def _fixed(self, kind: str, target: str) -> None:
        code, size = FIXED[kind]
        if kind != "uuid":
            self._read(code, size, target)
            return
        raw = self.source.fresh("u")
        self._read(code, size, raw)
        self._after.append(f"{target} = uuid_of({raw})")

    def _nested(self, field: FieldSchema, target: str) -> None:
        line = self.source.line
        if not field.is_nullable:
            self.source.line(f"{target} = {self._struct(field.type)}")
            return
        mark = self.source.fresh("n")
        self._read("b", 1, mark)
        self._flush()
        line(f"if {mark} < 0:")
        line(f"    {target} = None")
        line("else:")
        with self.source.block():
            line(f"{target} = {self._struct(field.type)}")

    def _length(self, *, plain: tuple[str, int]) -> tuple[str, str]:
        """Reads a length; returns its name and the condition under which it says null."""
        length = self.source.fresh("n")
        if not self.flexible:
            self._read(*plain, length)
            self._flush()
            return length, f"{length} < 0"
        self._read("B", 1, length)
        self._flush()
        self.source.line(f"if {length} > 127: {length}, p = finish(buf, p, {length})")
        self.source.line(f"{length} -= 1")
        return length, f"{length} < 0"

    def _sized(self, kind: str, nullable: bool, target: str) -> None:  # noqa: FBT001
        line = self.source.line
        length, is_null = self._length(plain=("h", 2) if kind == "string" else ("i", 4))
        piece = {
            "string": "str(buf[p:e], 'utf-8')",
            "bytes": "bytes(buf[p:e])",
            "records": "buf[p:e]",
        }[kind]
        line(f"e = p + {length}")
        if kind == "string" and self.flexible:
            # As Kafka: the compact form may not say more than the old one could.
            line(f"if {length} > {MAX_STRING_BYTES}: raise Malformed('a string is too long')")
        if nullable:
            line(f"if {is_null}:")
            line(f"    {target} = None")
            line("else:")
            with self.source.block():
                line(f"if e > end: raise Malformed('a {kind} ends after its message')")
                line(f"{target} = {piece}; p = e")
        else:
            line(f"if {is_null} or e > end: raise Malformed('a {kind} is null or too long')")
            line(f"{target} = {piece}; p = e")

    def _array(self, field: FieldSchema, target: str) -> None:
        line = self.source.line
        length, is_null = self._length(plain=("i", 4))
        size = max(1, smallest_size(field, self.version, flexible=self.flexible))
        too_long = f"{length} * {size} > end - p"
        if self._is_request:
            too_long += f" or (left := left - {length}) < 0"
        if not field.is_nullable:
            line(f"if {is_null} or {too_long}:")
            line(
                f"    raise Malformed('the array {field.name} is null, too long or longer than its message')"
            )
            self._elements(field, length, target)
            return
        line(f"if {is_null}:")
        line(f"    {target} = None")
        line("else:")
        with self.source.block():
            line(f"if {too_long}: raise Malformed('the array {field.name} is too long')")
            self._elements(field, length, target)

    def _elements(self, field: FieldSchema, length: str, target: str) -> None:
        line = self.source.line
        fixed = FIXED.get(field.type) if not field.is_struct else None
        if fixed and field.type != "uuid":
            short = self.source.unpackers(fixed[0])
            line(f"if {length} < {SHORT}: {target} = [*{short}[{length}](buf, p)]")
            line(f"else: {target} = [*unpack_from(f'>{{{length}}}{fixed[0]}', buf, p)]")
            line(f"p += {length} * {fixed[1]}")
            return
        items = self.source.fresh("a")
        line(f"{items} = []")
        line(f"for _ in range({length}):")
        with self.source.block():
            if field.is_struct:
                element = self._struct(field.type)
            else:
                element = self.source.fresh("v")
                self._value(field._replace(is_array=False, is_nullable=False), element)
                self._flush()
            line(f"{items}.append({element})")
        line(f"{target} = {items}")
