"""The operators' pack, deploy/observability, as tests read it. Standard library only."""

import dataclasses
import json
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACK = ROOT / "deploy/observability"
RULES = PACK / "fusion_rules.yml"


@dataclasses.dataclass
class Rule:
    kind: str  # alert or record
    name: str
    expr: str = ""
    lasts: str = ""  # for:
    severity: str = ""
    annotations: dict = dataclasses.field(default_factory=dict)


def rules(text=None):
    """The rules of the file, which keeps to one form of YAML: a key a line, queries on one line or as a block."""
    found, block = [], False
    for line in (text or RULES.read_text()).splitlines():
        indent, words = len(line) - len(line.lstrip()), line.strip()
        start = re.match(r"- (alert|record): (\S+)$", words)
        if start:
            found.append(Rule(start[1], start[2]))
        elif block and indent >= 6:
            found[-1].expr += words + "\n"
            continue
        elif words.startswith("expr: "):
            block = words == "expr: |"
            found[-1].expr = "" if block else words.removeprefix("expr: ")
            continue
        elif words.startswith("for: "):
            found[-1].lasts = words.removeprefix("for: ")
        elif words.startswith("labels: "):
            found[-1].severity = re.fullmatch(r"labels: \{severity: (\w+)\}", words)[1]
        elif indent == 6 and found:
            key, _, value = words.partition(": ")
            found[-1].annotations[key] = value.strip('"')
        block = False
    return found


def alerts():
    return [rule for rule in rules() if rule.kind == "alert"]


def dashboards():
    """By file name."""
    return {path.name: json.loads(path.read_text()) for path in sorted((PACK / "dashboards").glob("*.json"))}


def panels(dashboard):
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def queries():
    """[(where, PromQL)] of every dashboard and rule."""
    found = [(f"{name}: {panel['title']}", target["expr"]) for name, dashboard in dashboards().items()
             for panel in panels(dashboard) for target in panel["targets"]]
    return found + [(rule.name, rule.expr) for rule in rules()]
