"""Java's .properties syntax, and `--override name=value`. Text in, names and texts out."""

from collections.abc import Iterable, Iterator

from headrace.errors import SettingError

_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_BLANK = " \t\f"


def parse_properties(text: str) -> dict[str, str]:
    """What a .properties file sets; of a name that comes twice the last one counts."""
    return dict(_split(line) for line in _logical_lines(text))


def parse_overrides(overrides: Iterable[str]) -> dict[str, str]:
    """What `name=value` arguments set."""
    properties = {}
    for override in overrides:
        name, equals, value = override.partition("=")
        if not equals or not name.strip():
            raise SettingError(f"override {override!r}: expected name=value")
        properties[name.strip()] = value.strip()
    return properties


def _logical_lines(text: str) -> Iterator[str]:
    """Lines without comments and blank ones; a line that ends in a backslash goes on in the next."""
    pending = ""
    for line in text.replace("\r\n", "\n").replace("\r", "\n").split("\n"):
        line = line.lstrip(_BLANK)
        if not pending and (not line or line[0] in "#!"):
            continue
        backslashes = len(line) - len(line.rstrip("\\"))
        if backslashes % 2:
            pending += line[:-1]
            continue
        yield pending + line
        pending = ""
    if pending:
        yield pending


def _split(line: str) -> tuple[str, str]:
    """The name ends at the first `=`, `:` or blank that is not escaped."""
    end = 0
    while end < len(line) and line[end] not in "=:" + _BLANK:
        end += 2 if line[end] == "\\" else 1
    value = line[end:].lstrip(_BLANK)
    if value[:1] in {"=", ":"}:
        value = value[1:].lstrip(_BLANK)
    return _unescaped(line[:end]), _unescaped(value)


def _unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    pieces = []
    position = 0
    while position < len(text):
        character = text[position]
        position += 1
        if character == "\\" and position < len(text):
            character = text[position]
            position += 1
            if character == "u":
                digits = text[position : position + 4]
                try:
                    character = chr(int(digits, 16))
                except ValueError:
                    raise SettingError(f"\\u{digits}: malformed escape") from None
                position += 4
            else:
                character = _ESCAPES.get(character, character)
        pieces.append(character)
    # Two escapes may be the halves of one character.
    return "".join(pieces).encode("utf-16", "surrogatepass").decode("utf-16", "replace")
