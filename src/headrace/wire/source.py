"""Python source under construction: lines, indentation, fresh names, and the constants it refers to."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from struct import Struct
from typing import Any

SHORT = 8  # most arrays of numbers are replica lists


@cache
def _packers(code: str) -> list[Any]:
    return [Struct(f">B{length}{code}").pack for length in range(SHORT)]


@cache
def _unpackers(code: str) -> list[Any]:
    return [Struct(f">{length}{code}").unpack_from for length in range(SHORT)]


class Source:
    """A function's text, and the names it expects to find."""

    def __init__(self) -> None:
        self.names: dict[str, Any] = {}
        self._lines: list[str] = []
        self._depth = 0
        self._count = 0

    def line(self, text: str) -> None:
        self._lines.append("    " * self._depth + text)

    @contextmanager
    def block(self) -> Iterator[None]:
        self._depth += 1
        yield
        self._depth -= 1

    def fresh(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def constant(self, value: Any) -> str:
        """A name for an object that has no literal; classes are told apart by identity."""
        for name, known in self.names.items():
            if known is value:
                return name
        name = self.fresh("k")
        self.names[name] = value
        return name

    def literal(self, value: Any) -> str:
        if value is None or isinstance(value, bool | int | float | str | bytes):
            return repr(value)
        return self.constant(value)

    def packer(self, codes: str) -> str:
        return self._named(f"pack_{codes.replace('?', 'o')}", codes, "pack")

    def unpacker(self, codes: str) -> str:
        return self._named(f"unpack_{codes.replace('?', 'o')}", codes, "unpack_from")

    def packers(self, code: str) -> str:
        """Packs a count byte and so many values: one function for each short length."""
        name = f"packs_{code.replace('?', 'o')}"
        self.names.setdefault(name, _packers(code))
        return name

    def unpackers(self, code: str) -> str:
        """Unpacks an array: one function for each short length."""
        name = f"unpacks_{code.replace('?', 'o')}"
        self.names.setdefault(name, _unpackers(code))
        return name

    def compile(self, function: str, names: dict[str, Any]) -> Any:
        scope = {**names, **self.names}
        exec("\n".join(self._lines), scope)  # noqa: S102 - the text is ours, from checked-in schemas
        return scope[function]

    def _named(self, name: str, codes: str, method: str) -> str:
        if name not in self.names:
            self.names[name] = getattr(Struct(">" + codes), method)
        return name
