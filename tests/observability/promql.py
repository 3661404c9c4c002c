"""What a PromQL query and a page of /metrics name. Standard library only.

Not a parser: it finds selectors and groupings, which is enough to compare them with what a server exports. promtool and Prometheus
check the syntax.
"""

import dataclasses
import re

TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|\$?[a-zA-Z_:][\w:]*|=~|!~|!=|[{}()\[\],=]|[^\s]')
NAME = re.compile(r"[a-zA-Z_:][\w:]*$")
GROUPINGS = {"by", "without", "on", "ignoring", "group_left", "group_right"}
WORDS = {"and", "or", "unless", "bool", "offset", "sum", "min", "max", "avg", "count", "topk", "bottomk", "quantile"}
SAMPLE = re.compile(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)$")
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


@dataclasses.dataclass
class Selector:
    name: str
    matchers: list  # (label, operator, value)


def selectors_and_groupings(query):
    """([Selector], labels by which the query groups or matches)"""
    tokens = TOKEN.findall(re.sub(r"\[[^\]]*\]", " ", query))
    selectors, groupings, index = [], set(), 0
    while index < len(tokens):
        token, after = tokens[index], tokens[index + 1] if index + 1 < len(tokens) else ""
        index += 1
        if token in GROUPINGS:
            if after == "(":
                end = tokens.index(")", index)
                groupings.update(label for label in tokens[index + 1:end] if label != ",")
                index = end + 1
        elif NAME.match(token) and after != "(" and token not in WORDS and not is_duration(tokens, index - 1):
            selectors.append(Selector(token, []))
            if after == "{":
                end = tokens.index("}", index)
                inner = [part for part in tokens[index + 1:end] if part != ","]
                selectors[-1].matchers = [(label, operator, value[1:-1])
                                          for label, operator, value in zip(inner[::3], inner[1::3], inner[2::3])]
                index = end + 1
    return selectors, groupings


def is_duration(tokens, index):
    """Whether it is the unit of a number, as in "offset 1h" or "1e-9"."""
    return index > 0 and tokens[index - 1].isdigit()


def samples(page):
    """[(name, labels, value)] of a page of /metrics."""
    found = [SAMPLE.match(line) for line in page.splitlines() if line and not line.startswith("#")]
    return [(sample[1], dict(LABEL.findall(sample[2] or "")), float(sample[3])) for sample in found]


def matches(operator, wanted, value):
    if operator in ("=", "!="):
        return (value == wanted) == (operator == "=")
    return bool(re.fullmatch(wanted, value)) == (operator == "=~")
