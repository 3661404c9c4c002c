"""Rows of tests/acceptance/house.sh. Standard library only."""

import collections
import pathlib
import subprocess
import sys
import time

import common
from common import ROOT, run

README_LINES, OTHER_README_LINES = 200, 500
SOURCE_LINES = 600
FOLDER_FILES = 30
FIRST_RUN_MIN, SECOND_RUN_MIN = 25, 12
# One file an operator: as many as there are operators.
LARGE_FOLDERS = ("core/op/defs",)


def tracked():
    """Files of the repository, by path from its root."""
    return [pathlib.PurePosixPath(name) for name in run("git", "-C", ROOT, "ls-files").stdout.splitlines()]


def lines_of(path):
    return len((ROOT / path).read_text().splitlines())


def named(found, most=4):
    """The first of some paths with their counts, for a figure."""
    words = [f"{path} {count}" for count, path in sorted(((c, p) for p, c in found.items()), reverse=True)[:most]]
    return f"{len(found)}" + (f": {', '.join(words)}" if words else "")


def document_rows(rows, files):
    lines = {str(path): lines_of(path) for path in files if path.name == "README.md"}
    first = lines.pop("README.md")
    rows.counted("README.md: lines", first <= README_LINES, str(first), f"<= {README_LINES}")
    long = {path: count for path, count in lines.items() if count > OTHER_README_LINES}
    rows.counted(f"other READMEs of more than {OTHER_README_LINES} lines", not long, named(long), f"none of {len(lines)}")


def source_rows(rows, files):
    ours = [path for path in files if path.suffix in (".cc", ".h") and path.parts[0] != "tests"]
    long = {str(path): count for path in ours if (count := lines_of(path)) > SOURCE_LINES}
    rows.counted(f"sources of more than {SOURCE_LINES} lines", not long, named(long), f"none of {len(ours)}")
    folders = collections.Counter(str(path.parent) for path in files if path.parts[0] in ("core", "server", "client"))
    large = {folder: count for folder, count in folders.items()
             if count > FOLDER_FILES and not folder.startswith(LARGE_FOLDERS)}
    rows.counted(f"folders of more than {FOLDER_FILES} files", not large, named(large), f"none of {len(folders)}")


def test_rows(rows):
    for row, which, bar in (("upward includes between layers are refused", "unit/layering", "those that are planted, and no other"),
                            ("upward includes between rooms, circles", "unit/rooms", "those that are planted, and no other"),
                            ("generated sources of a fixed corpus", "replay", "byte-identical"),
                            ("texts after named stages", "golden", "as they are"),
                            ("examples, links and lists of the READMEs", "examples/documentation", "as the programs")):
        common.ctest_row(rows, row, which, bar)


def time_rows(rows, work):
    """tests/run.sh from nothing, and again."""
    clone = work / "clone"
    run("git", "clone", "--quiet", ROOT, clone)
    for row, bar in (("tests/run.sh in a fresh clone", FIRST_RUN_MIN), ("again", SECOND_RUN_MIN)):
        begin = time.monotonic()
        status = subprocess.run([clone / "tests/run.sh"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False).returncode
        took = (time.monotonic() - begin) / 60
        rows.counted(f"{row}: passes", status == 0, f"exit {status}", "exit 0")
        rows.timed(f"{row}: minutes", took <= bar, f"{took:.1f}", f"<= {bar}")


def measure(rows, work, options):
    files = tracked()
    rows.section(document_rows, files)
    rows.section(source_rows, files)
    rows.section(test_rows)
    if options.time:
        rows.section(time_rows, work)


def add_options(parser):
    parser.add_argument("--time", action="store_true", help="time tests/run.sh in a fresh clone, twice")


if __name__ == "__main__":
    sys.exit(common.main("the shape of the house", "house", measure, add_options))
