"""Rows of tests/acceptance/learning.sh. Standard library only."""

import sys

import common
from observability import observability

GROUPS = [observability]


def measure(rows, work, options):
    for group in GROUPS:
        if not options.only or any(text in group.__name__ for text in options.only):
            rows.section(group, work, options)


def add_options(parser):
    parser.add_argument("--only", action="append", default=[], help="groups whose name contains this")


if __name__ == "__main__":
    sys.exit(common.main("what operators see", "learning", measure, add_options))
