"""Rows of tests/acceptance/learning.sh. Standard library only."""

import sys

import common
from accuracy import accuracy
from epochs import epochs
from observability import observability
from pages import pages
from probe import probe
from regret import regret
from tuning import tuning
from workload import workload

GROUPS = [observability, epochs, pages, workload, accuracy, regret, tuning, probe]


def measure(rows, work, options):
    for group in GROUPS:
        if not options.only or any(text in group.__name__ for text in options.only):
            rows.section(group, work, options)


def add_options(parser):
    parser.add_argument("--only", action="append", default=[], help="groups whose name contains this")


if __name__ == "__main__":
    sys.exit(common.main("what operators see, and how far estimates are off", "learning", measure, add_options))
