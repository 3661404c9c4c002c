"""The pages of the admin port in a browser: rows of learning.sh."""

import subprocess

from common import BIN, ROOT

NO_BROWSER = 77  # of page_pictures.py


def pages(rows, work, options):
    """Every page at 1280 and 390 px, light and dark, in headless Chromium; what needs no browser is in unit/server and service/access."""
    if options.quick:
        return
    row = "pages: fit the screen, have contrast, complain about nothing"
    bar = "every page, 1280 and 390 px, light and dark"
    done = subprocess.run([ROOT / "tests/service/page_pictures.py", BIN, "--out", work / "pictures"], capture_output=True, text=True, timeout=900)
    if done.returncode == NO_BROWSER:
        rows.add("UNMEASURED", row, done.stdout.strip(), bar)
        return
    seen = [line for line in done.stdout.splitlines() if line[:4] in ("ok  ", "bad ")]
    bad = [line for line in seen if line.startswith("bad")]
    rows.counted(row, done.returncode == 0 and len(seen) >= 40 and not bad, f"{len(seen) - len(bad)} of {len(seen)} {' '.join(bad)[:80]}", bar)
