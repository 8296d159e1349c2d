"""Writes the source of an encoder for one message class in one version.

The encoder appends pieces to a list: neighbouring fields of fixed size are packed together, the
length of a string joins the run in front of it, and record batches become pieces of their own,
uncopied. Values that do not fit raise what Python raises: a wrong message is our own mistake.
"""

from typing import Any

from headrace.wire.schema import FIXED, FieldSchema, fields_at
from headrace.wire.source import SHORT, Source


class EncoderSource:
    """Emits `encode(message, w)`, where `w` is the `append` of a list of pieces."""

    def __init__(self, cls: Any, version: int, *, flexible: bool) -> None:
        self.version = version
        self.flexible = flexible
        self.source = Source()
        self._run: list[tuple[str, str | None]] = []  # struct code, value; None for a zero byte
        self._writer = "w"
        self.source.line("def encode(o, w):")
        with self.source.block():
            self._struct(cls, "o")
            self.source.line("return None")

    def _put(self, code: str, value: str | None) -> None:
        self._run.append((code, value))

    def _packed(self, extra: tuple[str, str] | None = None) -> str:
        run = [*self._run, extra] if extra else self._run
        if all(code == "x" for code, _ in run):
            return repr(bytes(len(run)))
        values = ", ".join(value for _, value in run if value is not None)
        return f"{self.source.packer(''.join(code for code, _ in run))}({values})"

    def _flush(self) -> None:
        if self._run:
            self.source.line(f"{self._writer}({self._packed()})")
            self._run.clear()

    def _struct(self, cls: Any, name: str) -> None:
        fields = [one for one in fields_at(cls, self.version) if one.is_present]
        for field in fields:
            if field.tag is None:
                self._value(field, f"{name}.{field.name}")
        if self.flexible:
            self._tags(sorted((one for one in fields if one.tag is not None), key=_tag), name)
        self._flush()

    def _value(self, field: FieldSchema, value: str) -> None:
        if field.is_array:
            self._array(field, value)
        elif field.is_struct:
            self._nested(field, value)
        elif field.fixed:
            self._fixed(field.type, value)
        else:
            self._sized(field.type, field.is_nullable, value)

    def _fixed(self, kind: str, value: str) -> None:
        self._put(FIXED[kind][0], f"{value}.int.to_bytes(16)" if kind == "uuid" else value)

    def _nested(self, field: FieldSchema, value: str) -> None:
        line = self.source.line
        if field.tag is not None or not field.is_nullable:
            assert not (field.is_nullable and field.tag is not None)
            name = self.source.fresh("o")
            line(f"{name} = {value}")
            self._struct(field.type, name)
            return
        self._flush()
        name = self.source.fresh("o")
        line(f"{name} = {value}")
        line(f"if {name} is None:")
        line(f"    {self._writer}(b'\\xff')")
        line("else:")
        with self.source.block():
            self._put("b", "1")
            self._struct(field.type, name)

    def _length(self, length: str, plain: str) -> None:
        """Writes the run so far and a length that is not null."""
        if not self.flexible:
            self._put(plain, length)
            self._flush()
            return
        line = self.source.line
        size = self.source.fresh("n")
        line(f"{size} = {length} + 1")
        short = self._packed(("B", size)) if self._run else f"bytes_of[{size}]"
        long = f"{self._packed()} + varint({size})" if self._run else f"varint({size})"
        line(f"{self._writer}({short} if {size} < 128 else {long})")
        self._run.clear()

    def _null(self, plain: str) -> None:
        run = list(self._run)
        if self.flexible:
            self._put("x", None)
        else:
            self._put(plain, "-1")
        self.source.line(f"{self._writer}({self._packed()})")
        self._run = run

    def _sized(self, kind: str, nullable: bool, value: str) -> None:  # noqa: FBT001
        line = self.source.line
        plain = "h" if kind == "string" else "i"
        name = self.source.fresh("s")
        line(f"{name} = {value}")
        if not nullable:
            self._content(kind, name, plain)
            return
        line(f"if {name} is None:")
        with self.source.block():
            self._null(plain)
        line("else:")
        with self.source.block():
            self._content(kind, name, plain)

    def _content(self, kind: str, name: str, plain: str) -> None:
        if kind == "string":
            self.source.line(f"{name} = {name}.encode()")
        self._length(f"len({name})", plain)
        self.source.line(f"{self._writer}({name})")

    def _array(self, field: FieldSchema, value: str) -> None:
        line = self.source.line
        name = self.source.fresh("a")
        line(f"{name} = {value}")
        if not field.is_nullable:
            self._elements(field, name)
            return
        line(f"if {name} is None:")
        with self.source.block():
            self._null("i")
        line("else:")
        with self.source.block():
            self._elements(field, name)

    def _elements(self, field: FieldSchema, name: str) -> None:
        line = self.source.line
        fixed = FIXED.get(field.type) if not field.is_struct else None
        if fixed and field.type != "uuid":
            self._numbers(fixed[0], name)
            return
        self._length(f"len({name})", "i")
        item = self.source.fresh("v")
        line(f"for {item} in {name}:")
        with self.source.block():
            if field.is_struct:
                self._struct(field.type, item)
            else:
                self._value(field._replace(is_array=False, is_nullable=False), item)
                self._flush()

    def _numbers(self, code: str, name: str) -> None:
        line = self.source.line
        if not self.flexible:
            self._put("i", f"len({name})")
            self._flush()
            line(f"{self._writer}(pack(f'>{{len({name})}}{code}', *{name}))")
            return
        self._flush()
        size = self.source.fresh("n")
        line(f"{size} = len({name})")
        short = self.source.packers(code)
        line(f"if {size} < {SHORT}: {self._writer}({short}[{size}]({size} + 1, *{name}))")
        line(f"else: {self._writer}(varint({size} + 1) + pack(f'>{{{size}}}{code}', *{name}))")

    def _tags(self, fields: list[FieldSchema], name: str) -> None:
        if not fields:
            self._put("x", None)
            return
        line = self.source.line
        self._flush()
        tests = [self._is_set(field, f"{name}.{field.name}") for field in fields]
        line(f"if {' or '.join(tests)}:")
        with self.source.block():
            tags = self.source.fresh("t")
            line(f"{tags} = []")
            for field, test in zip(fields, tests, strict=True):
                line(f"if {test}:")
                with self.source.block():
                    self._tag(field, f"{name}.{field.name}", tags)
            line(f"{self._writer}(tag_section({tags}))")
        line("else:")
        line(f"    {self._writer}(b'\\0')")

    def _tag(self, field: FieldSchema, value: str, tags: str) -> None:
        outer, self._writer = self._writer, self.source.fresh("w")
        pieces = self.source.fresh("p")
        self.source.line(f"{pieces} = []; {self._writer} = {pieces}.append")
        self._value(field, value)
        self._flush()
        self.source.line(f"{tags}.append(({field.tag}, b''.join({pieces})))")
        self._writer = outer

    def _is_set(self, field: FieldSchema, value: str) -> str:
        if field.is_struct and not field.is_array:
            usual = self.source.constant(field.type())
            return f"({value} is not None and {value} != {usual})"
        if field.is_array and field.default is not None:
            return f"({value} is None or len({value}) > 0)" if field.is_nullable else value
        if field.default is None:
            return f"{value} is not None"
        return f"{value} != {self.source.literal(field.default)}"


def _tag(field: FieldSchema) -> int:
    assert field.tag is not None
    return field.tag
