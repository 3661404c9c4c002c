#!/usr/bin/env python3
"""Phases as pipelines beside the same phases with barriers: what --low-latency chooses (core/plan/cost/phase_pipelines.cc).

    tests/bench/pipelines.py [--keep] [--seconds S] [--rounds N]

Each plan is locked as it is and without its pipelines, and both locks run in turn. Needs build/release. Standard
library only."""

import pathlib
import re
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "acceptance"))

import common

MODELS = [("bert_tiny", "--batch", batch, "--seq", seq, "--layers", layers, "--hidden", hidden, "--heads", 2, "--ff", ff)
          for batch, seq, layers, hidden, ff in [(8, 4, 3, 16, 32), (8, 4, 4, 16, 32), (16, 4, 2, 16, 32), (8, 8, 2, 32, 64),
                                                 (8, 16, 2, 64, 128), (4, 32, 1, 64, 128), (32, 8, 1, 32, 64),
                                                 (16, 32, 2, 128, 512)]]
MODELS += [("bert_layer", "--batch", 8)]
DIGEST = re.compile(r"^\s*(schedule_sha256|source_sha256|kernel_key|plan_sha256): .*$", re.MULTILINE)


def without_pipelines(lock):
    """The lock's text with barriers in the place of pipelines; what it was the digest of is another plan."""
    kept, depth = [], 0
    for line in DIGEST.sub("", lock).splitlines():
        if depth or line.strip().startswith("pipelines {"):
            depth += line.count("{") - line.count("}")
        elif line.strip():
            kept.append(line)
    return "\n".join(kept) + "\n"


def measure(rows, work, options):
    for model in MODELS:
        name = " ".join(str(word).lstrip("-") for word in model)
        path = common.generate(work, *model)
        locks = {"pipelines": pathlib.Path(work) / "with.lock", "barriers": pathlib.Path(work) / "without.lock"}
        common.ctl("plan", path, "--low-latency", "--plan-only", "--write-lock", locks["pipelines"])
        text = locks["pipelines"].read_text()
        if "pipelines {" not in text:
            rows.add("UNMEASURED", name, "no pipeline is chosen on this machine", "")
            continue
        locks["barriers"].write_text(without_pipelines(text))
        took, promised = {how: [] for how in locks}, {}
        for i in range(options.rounds):
            for how in sorted(locks, reverse=i % 2 == 1):
                _, fused = common.ctl("bench", path, "--low-latency", "--lock", locks[how], "--seconds", options.seconds)
                took[how].append(fused["fused"]["latency_us"]["median"])
                promised[how] = fused["fused"]["totals"]["estimated_us"]
        ratios = [b / p for p, b in zip(took["pipelines"], took["barriers"])]
        low, high = common.interval(ratios)
        rows.timed(name, statistics.median(ratios) >= 1,
                   f"{statistics.median(took['pipelines']):.1f} us, {statistics.median(took['barriers']):.1f} us with "
                   f"barriers: {statistics.median(ratios):.3f} [{low:.3f}, {high:.3f}]",
                   f">= 1, promised {promised['barriers'] / promised['pipelines']:.3f}")


def add_options(parser):
    parser.add_argument("--seconds", type=float, default=1.5, help="of each of the rounds, half for either lock")
    parser.add_argument("--rounds", type=int, default=5)


if __name__ == "__main__":
    sys.exit(common.main("pipelines", "pipelines", measure, add_options))
