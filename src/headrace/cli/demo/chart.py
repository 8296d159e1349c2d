"""The result as a chart: bars of text for the terminal, and the same as an SVG picture. Pure."""

from collections.abc import Sequence
from xml.sax.saxutils import escape

Bar = tuple[str, int, int]  # time, events, cents

_WIDTH = 32
_EIGHTHS = " ▏▎▍▌▋▊▉"
_BAR_PIXELS, _GAP_PIXELS, _PLOT_PIXELS = 44, 14, 220
_LEFT, _TOP, _BOTTOM = 30, 60, 60


def text_bars(bars: Sequence[Bar]) -> list[tuple[str, str, str]]:
    """For each bar its label, the bar itself, and its numbers."""
    longest = max((events for _, events, _ in bars), default=0) or 1
    return [
        (
            label,
            text_bar(_WIDTH * events / longest),
            f"{events:>7,} events {cents / 100:>10,.2f} €",
        )
        for label, events, cents in bars
    ]


def text_bar(length: float) -> str:
    """A bar of so many characters, to an eighth."""
    whole, rest = divmod(round(length * 8), 8)
    return "█" * whole + (_EIGHTHS[rest] if rest else "")


def svg_bars(title: str, remark: str, bars: Sequence[Bar]) -> str:
    """The picture: a bar for the events of each window, with its takings above it."""
    longest = max((events for _, events, _ in bars), default=0) or 1
    width = 2 * _LEFT + len(bars) * (_BAR_PIXELS + _GAP_PIXELS)
    height = _TOP + _PLOT_PIXELS + _BOTTOM
    floor = _TOP + _PLOT_PIXELS
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="system-ui, sans-serif" font-size="11">',
        f'<rect width="{width}" height="{height}" rx="8" fill="#ffffff" stroke="#d0d7de"/>',
        f'<text x="{_LEFT}" y="26" font-size="16" font-weight="600">{escape(title)}</text>',
    ]
    for index, (label, events, cents) in enumerate(bars):
        x = _LEFT + index * (_BAR_PIXELS + _GAP_PIXELS)
        tall = round(_PLOT_PIXELS * events / longest)
        middle = x + _BAR_PIXELS // 2
        parts += [
            f'<rect x="{x}" y="{floor - tall}" width="{_BAR_PIXELS}" height="{tall}" rx="3" fill="#1f6feb">'
            f"<title>{label}: {events:,} events, {cents / 100:,.2f} €</title></rect>",
            f'<text x="{middle}" y="{floor - tall - 5}" text-anchor="middle" fill="#57606a">'
            f"{cents / 100:,.0f} €</text>",
            f'<text x="{middle}" y="{floor + 16}" text-anchor="middle">{escape(label)}</text>',
        ]
    parts += [
        f'<line x1="{_LEFT}" y1="{floor}" x2="{width - _LEFT}" y2="{floor}" stroke="#8c959f"/>',
        f'<text x="{_LEFT}" y="{floor + 42}" fill="#57606a">{escape(remark)}</text>',
        "</svg>",
    ]
    return "\n".join(parts) + "\n"
