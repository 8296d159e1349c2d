"""What a benchmark found: lines with a ratio or a count, and which of them have a target."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One finding. `value` is held against `at_least` and `at_most`, where given."""

    what: str
    value: float
    unit: str = "x"
    at_least: float | None = None
    at_most: float | None = None
    detail: str = ""

    @property
    def is_met(self) -> bool:
        """Whether the target, if any, is reached."""
        return (self.at_least is None or self.value >= self.at_least) and (
            self.at_most is None or self.value <= self.at_most
        )

    @property
    def target(self) -> str:
        """The target as text; empty without one."""
        if self.at_least is not None:
            return f">= {self.at_least:g}"
        return "" if self.at_most is None else f"<= {self.at_most:g}"


@dataclass(slots=True)
class Report:
    """All findings of one benchmark."""

    title: str
    lines: list[Line] = field(default_factory=list)

    @property
    def missed(self) -> list[Line]:
        """Lines whose target was not reached."""
        return [line for line in self.lines if not line.is_met]

    def table(self) -> str:
        """For people."""
        rows = [self.title]
        for line in self.lines:
            verdict = "" if not line.target else "  ok" if line.is_met else "  MISSED"
            value = f"{line.value:,.2f}" if line.unit == "x" else f"{line.value:,g}"
            rows.append(
                f"  {line.what:<52} {value:>14} {line.unit:<6} {line.target:>8}{verdict:<8}  {line.detail}".rstrip()
            )
        return "\n".join(rows) + "\n"

    def as_json(self) -> dict[str, object]:
        """For programs."""
        return {
            "title": self.title,
            "lines": [
                {
                    "what": line.what,
                    "value": line.value,
                    "unit": line.unit,
                    "target": line.target,
                    "met": line.is_met,
                    "detail": line.detail,
                }
                for line in self.lines
            ],
        }
