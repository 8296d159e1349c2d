"""The results as a table for the terminal and as a value for JSON. Pure."""

from statistics import median

from bench.beside_kafka.cost import MEMORY, RESIDENT
from bench.beside_kafka.results import Ratio, Results
from bench.beside_kafka.servers import FLOOR, HEADRACE, KAFKA
from bench.beside_kafka.targets import TARGETS, Target, target_of

_HEAD = ("run", "figure", HEADRACE, KAFKA, "ratio", "spread", "target", "", FLOOR)
_WIDTHS = (42, 22, 10, 10, 7, 14, 8, 8, 10)
# Shown only where a target asks for it; the JSON has it for every run.
_TOLD = ("life", "latency maximum")  # whose figures are shown all the same
_QUIET = {MEMORY, RESIDENT, "records/s"}


def table(results: Results) -> str:
    """One line for each case and figure, and the targets' verdicts at the end."""
    lines = [_line(_HEAD), _line(tuple("-" * (width - 1) for width in _WIDTHS))]
    shown = None
    for case, metric in results.cases_and_metrics():
        target = target_of(case, metric)
        if metric in _QUIET and target is None and not case.startswith(_TOLD):
            continue
        lines.append(_row(results, case if case != shown else "", case, metric))
        shown = case
    return "\n".join([*lines, "", *_verdict_lines(results)]) + "\n"


def _row(results: Results, title: str, case: str, metric: str) -> str:
    target, ratio = target_of(case, metric), results.ratio(case, metric)
    return _line(
        (
            title,
            metric,
            *(_number(results.median(case, metric, server)) for server in (HEADRACE, KAFKA)),
            "" if ratio is None else f"{ratio.value:.2f}",
            "" if ratio is None else f"{ratio.lowest:.2f} … {ratio.highest:.2f}",
            "" if target is None else target.text,
            "" if target is None or ratio is None else verdict(target, ratio),
            _number(results.median(case, metric, FLOOR)),
        )
    )


def _line(cells: tuple[str, ...]) -> str:
    left, right = cells[:2], cells[2:]
    text = "".join(f"{cell:<{width}}" for cell, width in zip(left, _WIDTHS, strict=False))
    numbers = zip(right, _WIDTHS[2:], strict=False)
    return (text + "".join(f"{cell:>{width}}" for cell, width in numbers)).rstrip()


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def verdict(target: Target, ratio: Ratio) -> str:
    return "met" if target.is_met(ratio) else "MISSED"


def verdicts(results: Results) -> list[tuple[Target, list[tuple[str, Ratio]]]]:
    """Each target with the cases that were measured for it."""
    return [
        (
            target,
            [
                (case, ratio)
                for case, metric in results.cases_and_metrics()
                if target.covers(case, metric)
                and (ratio := results.ratio(case, metric)) is not None
            ],
        )
        for target in TARGETS
    ]


def _verdict_lines(results: Results) -> list[str]:
    lines = ["targets, as Headrace/Kafka"]
    unmeasured = 0
    for target, cases in verdicts(results):
        met = [case for case, ratio in cases if target.is_met(ratio)]
        if not cases:
            unmeasured += 1
            continue
        if len(met) == len(cases):
            said = "met" if len(cases) == 1 else f"met in all {len(cases)} runs"
        else:
            worst = _worst(target, cases)
            said = f"MISSED in {len(cases) - len(met)} of {len(cases)}; furthest: {worst}"
        lines.append(f"  {target.row:44} {target.text:>7}  {said}")
    return (
        [*lines, f"  not measured: {unmeasured} of {len(TARGETS)} targets"] if unmeasured else lines
    )


def _worst(target: Target, cases: list[tuple[str, Ratio]]) -> str:
    case, ratio = (min if target.at_least is not None else max)(cases, key=lambda c: c[1].value)
    return f"{case} {ratio.value:.2f}"


def as_json(results: Results) -> dict[str, object]:
    """Every figure of every round, in five digits."""
    figures = []
    for case, metric in results.cases_and_metrics():
        ratio, target = results.ratio(case, metric), target_of(case, metric)
        by_server = results.figures[case, metric]
        figure: dict[str, object] = {
            "run": case,
            "figure": metric,
            "rounds": {name: [_short(value) for value in by_server[name]] for name in by_server},
            "medians": {name: _short(median(by_server[name])) for name in by_server},
        }
        if ratio is not None:
            figure["ratio"] = _short(ratio.value)
            figure["spread"] = [_short(ratio.lowest), _short(ratio.highest)]
            if target is not None:
                figure["target"] = target.text
                figure["met"] = target.is_met(ratio)
        figures.append(figure)
    return {"figures": figures}


def _short(value: float) -> float:
    return float(f"{value:.5g}")
