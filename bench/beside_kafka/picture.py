"""The ratios as a picture: one bar a figure on a logarithmic scale, what is better than Kafka to the right. Pure.

Where less is better (time, CPU, memory) the ratio is turned over, so that every bar means "times as good as Kafka".
"""

from math import log2
from xml.sax.saxutils import escape

from bench.beside_kafka.results import Results
from bench.beside_kafka.targets import Target, target_of

_ROW, _BAR = 20, 12
_LEFT, _PLOT, _RIGHT, _TOP = 430, 460, 90, 64
_MOST = 5.0  # bars end at 32 times as good, or as bad
_GOOD, _BAD, _PLAIN, _INK = "#2f7d5b", "#b5482f", "#7f8c99", "#1f2933"
_HIGHER_IS_BETTER = ("MB/s", "records/s", "requests/s", "last/first part")


def picture(results: Results, caption: str) -> str:
    """An SVG of all figures that have a target, and of throughputs and latencies without one."""
    rows = [row for key in results.cases_and_metrics() if (row := _row(results, *key))]
    height = _TOP + _ROW * len(rows) + 40
    width = _LEFT + _PLOT + _RIGHT
    drawn = "".join(_drawn(row, _TOP + index * _ROW) for index, row in enumerate(rows))
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'font-family="system-ui, sans-serif" font-size="12" fill="{_INK}">\n'
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>\n'
        f'<text x="16" y="24" font-size="16">Headrace beside Apache Kafka: times as good</text>\n'
        f'<text x="16" y="42" fill="{_PLAIN}">{escape(caption)}</text>\n'
        f"{_scale(height)}{drawn}</svg>\n"
    )


def _row(
    results: Results, case: str, metric: str
) -> tuple[str, float, float, Target | None] | None:
    target, ratio = target_of(case, metric), results.ratio(case, metric)
    wanted = target is not None or metric in ("MB/s", "requests/s", "p99 ms")
    if ratio is None or not ratio.value or not wanted:
        return None
    higher = metric in _HIGHER_IS_BETTER
    goodness = ratio.value if higher else 1 / ratio.value
    return f"{case}, {metric}", goodness, ratio.value, target


def _place(goodness: float) -> float:
    share = max(-_MOST, min(_MOST, log2(goodness))) / _MOST
    return _LEFT + _PLOT / 2 * (1 + share)


def _scale(height: int) -> str:
    lines = []
    for power in range(-int(_MOST), int(_MOST) + 1):
        x = _place(2.0**power)
        name = f"{2**power}x" if power >= 0 else f"1/{2**-power}"
        shade = _INK if power == 0 else "#e3e8ec"
        lines.append(
            f'<line x1="{x:.0f}" x2="{x:.0f}" y1="{_TOP - 4}" y2="{height - 28}" stroke="{shade}"/>\n'
            f'<text x="{x:.0f}" y="{height - 12}" text-anchor="middle" fill="{_PLAIN}">{name}</text>\n'
        )
    return "".join(lines)


def _drawn(row: tuple[str, float, float, Target | None], y: int) -> str:
    name, goodness, ratio, target = row
    start, end = sorted((_place(1.0), _place(goodness)))
    colour, mark = _PLAIN, ""
    if target is not None:
        at_least, at_most = target.at_least, target.at_most
        wished = at_least if at_least is not None else 1 / (at_most or 1.0)
        colour = _GOOD if round(goodness, 2) >= round(wished, 2) else _BAD
        x = _place(wished)
        mark = f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{y}" y2="{y + _BAR + 2}" stroke="{_INK}" stroke-width="2"/>\n'
    return (
        f'<text x="{_LEFT - 10}" y="{y + 11}" text-anchor="end">{escape(name)}</text>\n'
        f'<rect x="{start:.1f}" y="{y + 1}" width="{max(1.0, end - start):.1f}" height="{_BAR}" fill="{colour}"/>\n'
        f"{mark}"
        f'<text x="{_LEFT + _PLOT + 8}" y="{y + 11}">{ratio:.2f}</text>\n'
    )
