"""A small reader of Prometheus' text format, strict about what scrapers are strict about."""

import re
from dataclasses import dataclass, field

_SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)')
_SUFFIXES = {"histogram": ("_bucket", "_sum", "_count"), "summary": ("", "_sum", "_count")}
_UNESCAPED = {r"\\": "\\", r"\"": '"', r"\n": "\n"}

Labels = frozenset[tuple[str, str]]


@dataclass
class Family:
    kind: str
    text: str
    samples: dict[tuple[str, Labels], float] = field(default_factory=dict)


class Page:
    """Families by name. A sample outside its family, or given twice, is an error."""

    def __init__(self, text: str) -> None:
        assert text.endswith("\n")
        self.families: dict[str, Family] = {}
        lines = iter(text.splitlines())
        name = ""
        for line in lines:
            if line.startswith("# HELP "):
                name, help_text = line.removeprefix("# HELP ").split(" ", 1)
                type_name, kind = next(lines).removeprefix("# TYPE ").split(" ")
                assert type_name == name
                assert name not in self.families, f"{name} comes twice"
                self.families[name] = Family(kind, help_text)
            else:
                self._read_sample(name, line)

    def _read_sample(self, name: str, line: str) -> None:
        family = self.families[name]
        match = _SAMPLE.fullmatch(line)
        assert match, line
        sample, labels, value = match.groups()
        suffix = sample.removeprefix(name)
        assert sample.startswith(name), f"{sample} stands in {name}"
        assert suffix in _SUFFIXES.get(family.kind, ("",)), sample
        key = suffix, _parse_labels(labels or "")
        assert key not in family.samples, line
        family.samples[key] = float(value)

    def value(self, name: str, suffix: str = "", **labels: str) -> float:
        return self.families[name].samples[suffix, frozenset(labels.items())]

    def labels(self, name: str) -> list[dict[str, str]]:
        return [dict(labels) for _, labels in self.families[name].samples]


def _parse_labels(text: str) -> Labels:
    labels = {}
    position = 0
    while position < len(text):
        match = _LABEL.match(text, position)
        assert match, text
        name, value = match.groups()
        labels[name] = re.sub(r'\\[\\"n]', lambda found: _UNESCAPED[found.group()], value)
        position = match.end()
    return frozenset(labels.items())
