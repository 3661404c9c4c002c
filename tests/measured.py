#!/usr/bin/env python3
"""What tests cost.

  tests/measured.py run FILE PROGRAM [ARGUMENT...]   runs a program, with its exit status, and leaves its seconds in FILE
  tests/measured.py slowest DIRECTORY                the ten that took longest of those whose files lie there

Seconds are of the clock, and of the CPU: the program's own and those of the children that it has waited for.
"""

import json
import pathlib
import resource
import subprocess
import sys
import time

SHOWN = 10


def run(path, argv):
    begin = time.monotonic()
    status = subprocess.run(argv, check=False).returncode
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"seconds": time.monotonic() - begin, "cpu_seconds": used.ru_utime + used.ru_stime}))
    return status if status >= 0 else 128 - status


def slowest(directory):
    costs = [(json.loads(path.read_text()), path.stem) for path in directory.rglob("*.cost")]
    print(f"{'test':<44} {'seconds':>8} {'CPU':>8}")
    for cost, name in sorted(costs, key=lambda item: -item[0]["seconds"])[:SHOWN]:
        print(f"{name:<44} {cost['seconds']:>8.1f} {cost['cpu_seconds']:>8.1f}")
    print(f"{f'all {len(costs)}':<44} {sum(c['seconds'] for c, _ in costs):>8.1f} {sum(c['cpu_seconds'] for c, _ in costs):>8.1f}")
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["run"] and len(sys.argv) > 3:
        sys.exit(run(pathlib.Path(sys.argv[2]), sys.argv[3:]))
    if sys.argv[1:2] == ["slowest"] and len(sys.argv) == 3:
        sys.exit(slowest(pathlib.Path(sys.argv[2])))
    sys.exit(__doc__)
