"""What programs that time a peer share. They import it first, and answer lines on stdin with one line of JSON on stdout each:

    N                so many runs: a list of the microseconds of each. The first run of a burst is left out: it finds threads
                     parked and caches cold
    outputs FILE     writes the outputs of one run, a .npz: their number
    compare FILE     how far the outputs of one run are from those: the largest difference as a part of the largest value
"""

import json
import os
import sys
import time

import numpy as np

# What a library prints goes to stderr.
answers = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)


def values(shape, dtype):
    """An input: floats are normal, everything else is ones, which every model takes as masks, indices and positions."""
    if np.issubdtype(dtype, np.floating):
        return np.random.default_rng(1).standard_normal(shape, dtype=np.float32).astype(dtype)
    return np.ones(shape, dtype=dtype)


def distance(outputs, path):
    """Infinite where shapes differ or one of them is no number where the other is."""
    expected = list(np.load(path).values())
    if [value.shape for value in outputs] != [value.shape for value in expected]:
        return float("inf")
    worst = 0.0
    for got, want in zip(outputs, expected):
        got, want = got.astype(np.float64), want.astype(np.float64)
        if not np.array_equal(np.isfinite(got), np.isfinite(want)):
            return float("inf")
        finite = np.isfinite(want)
        worst = max(worst, np.abs(got - want)[finite].max(initial=0) / max(np.abs(want)[finite].max(initial=0), 1e-30))
    return float(worst)


def burst(run, runs):
    times = []
    for _ in range(runs + 1):
        start = time.perf_counter()
        run()
        times.append((time.perf_counter() - start) * 1e6)
    return times[1:]


def serve(run, outputs):
    """`run` does one run; `outputs` does one too and returns numpy arrays, as the model orders them."""
    for _ in range(2):
        run()
    for line in sys.stdin:
        word, *path = line.split(maxsplit=1)
        if word == "outputs":
            found = outputs()
            np.savez(path[0].strip(), *found)
            answer = len(found)
        elif word == "compare":
            answer = distance(outputs(), path[0].strip())
        else:
            answer = burst(run, int(word))
        print(json.dumps(answer), file=answers, flush=True)
