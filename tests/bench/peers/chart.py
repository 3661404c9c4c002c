"""A bar chart of ratios, SVG in plain text. Standard library only.

    svg([("Matrix products", [("gemm 128x128x128", [Bar(1, 1.08, 1.05, 1.1, "openvino")])])], title, subtitle)
"""

import dataclasses
import math
from xml.sax.saxutils import escape

# In pixels at the natural size.
WIDTH = 980
LEFT, RIGHT = 290, 780  # of the drawing; names left of it, figures right of it
HEAD = 92
BAR, ROW_GAP, GROUP_HEAD, GROUP_GAP = 13, 8, 24, 12
NAME_LETTERS = 42  # of 12 px, that fit left of the drawing
TICKS = [0.1, 0.2, 0.33, 0.5, 0.67, 0.8, 1, 1.25, 1.5, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50]
COLOURS = ["#1f6fb2", "#e08a1e", "#3f8f4f", "#8a5fb0"]  # a number of threads each


@dataclasses.dataclass
class Bar:
    threads: int
    ratio: float
    low: float
    high: float
    than: str


def text(x, y, words, anchor="start", more=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{more}>{escape(words)}</text>'


def fitting(words, letters):
    return words if len(words) <= letters else words[:letters - 1] + "…"


class Scale:
    """Logarithmic: twice as fast and twice as slow are as long."""

    def __init__(self, values):
        self.low = min([0.8, *values]) / 1.03
        self.high = max([1.25, *values]) * 1.03

    def x(self, value):
        part = math.log(max(value, self.low) / self.low) / math.log(self.high / self.low)
        return LEFT + min(part, 1.0) * (RIGHT - LEFT)

    def ticks(self):
        """Those that lie inside, and so far from their neighbours that they can be read; 1 always."""
        shown = [1]
        for tick in sorted(TICKS, key=lambda tick: (tick not in (0.5, 2, 5, 10), tick)):
            if self.low <= tick <= self.high and all(abs(self.x(tick) - self.x(other)) >= 34 for other in shown):
                shown.append(tick)
        return sorted(shown)


def bar_lines(bar, scale, y, colour):
    """The bar from 1, its interval as a whisker, its figure at the right."""
    one, end, middle = scale.x(1), scale.x(bar.ratio), y + BAR / 2
    low, high = scale.x(bar.low), scale.x(bar.high)
    ends = "".join(f'<line x1="{x:.1f}" y1="{middle - 3:.1f}" x2="{x:.1f}" y2="{middle + 3:.1f}"/>' for x in (low, high))
    return [f'<rect x="{min(one, end):.1f}" y="{y + 1:.1f}" width="{max(abs(end - one), 0.5):.1f}" height="{BAR - 2}" '
            f'fill="{colour}"/>',
            f'<g stroke="#222"><line x1="{low:.1f}" y1="{middle:.1f}" x2="{high:.1f}" y2="{middle:.1f}"/>{ends}</g>',
            text(RIGHT + 10, y + BAR - 1.5, f"{bar.ratio:.2f}  {bar.than}", more=' font-size="11"')]


def group_lines(title, rows, scale, colours, y):
    """(lines, y below them)"""
    out = [text(LEFT, y + 14, title, more=' font-weight="bold"')]
    top = y + GROUP_HEAD
    bottom = top + sum(BAR * len(bars) + ROW_GAP for _, bars in rows)
    for tick in scale.ticks():
        x = scale.x(tick)
        style = 'stroke="#444" stroke-width="1.5"' if tick == 1 else 'stroke="#ddd"'
        out.append(f'<line x1="{x:.1f}" y1="{top:.1f}" x2="{x:.1f}" y2="{bottom:.1f}" {style}/>')
        out.append(text(x, bottom + 11, f"{tick:g}", "middle", ' font-size="10" fill="#555"'))
    y = top + ROW_GAP / 2
    for name, bars in rows:
        out.append(text(LEFT - 10, y + BAR * len(bars) / 2 + 4, fitting(name, NAME_LETTERS), "end"))
        for bar in bars:
            out += bar_lines(bar, scale, y, colours[bar.threads])
            y += BAR
        y += ROW_GAP
    return out, bottom + GROUP_GAP + 12


def svg(groups, title, subtitle):
    """`groups`: [(title, [(name, [Bar of each number of threads])])]. Ratios above 1 go right."""
    every = [bar for _, rows in groups for _, bars in rows for bar in bars]
    scale = Scale([value for bar in every for value in (bar.low, bar.ratio, bar.high)])
    threads = sorted({bar.threads for bar in every})
    colours = {count: COLOURS[i % len(COLOURS)] for i, count in enumerate(threads)}
    lines = [text(20, 28, title, more=' font-size="16" font-weight="bold"'), text(20, 48, subtitle, more=' fill="#444"')]
    x = 20.0
    for count in threads:
        lines.append(f'<rect x="{x:.1f}" y="60" width="12" height="12" fill="{colours[count]}"/>')
        lines.append(text(x + 18, 70.5, f"{count} thread{'s' if count > 1 else ''}"))
        x += 100
    legend = "right of 1: ours is faster; whisker: 95 % interval; at the right the ratio and the fastest peer"
    lines.append(text(x, 70.5, legend, more=' fill="#444"'))
    y = float(HEAD)
    for name, rows in groups:
        more, y = group_lines(name, rows, scale, colours, y)
        lines += more
    size = f'width="{WIDTH}" height="{y:.0f}"'
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {WIDTH} {y:.0f}" '
                      'font-family="Helvetica, Arial, sans-serif" font-size="12">', f"<title>{escape(title)}</title>",
                      f'<rect {size} fill="#fcfcfa"/>', *lines, "</svg>"]) + "\n"
