"""What programs that time a peer share: for each number on stdin so many runs, one line on stdout, a JSON list of the
microseconds of each. The first run of a burst is left out: it finds threads parked and caches cold."""

import json
import sys
import time

import numpy as np


def values(shape, dtype):
    """An input: floats are normal, everything else is ones, which every model takes as masks, indices and positions."""
    if np.issubdtype(dtype, np.floating):
        return np.random.default_rng(1).standard_normal(shape, dtype=np.float32).astype(dtype)
    return np.ones(shape, dtype=dtype)


def serve(run):
    for _ in range(2):
        run()
    for line in sys.stdin:
        times = []
        for _ in range(int(line) + 1):
            start = time.perf_counter()
            run()
            times.append((time.perf_counter() - start) * 1e6)
        print(json.dumps(times[1:]), flush=True)
