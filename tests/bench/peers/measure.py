"""Rows of tests/bench/peers.sh. Standard library only; each peer runs in a venv."""

import argparse
import dataclasses
import datetime
import json
import os
import pathlib
import sys
import tempfile
import xml.etree.ElementTree

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "acceptance"))

import bench as peer_bench
import cases
import common
import contender
import report


def selected(only, group, case):
    names = [f"{group.name}: {case.name}".lower(), case.name.lower()]
    return not only or any(name.startswith(prefix.lower()) for prefix in only for name in names)


def peers_of(result, wanted, light_only=False):
    """Those of `wanted` that are here or can be installed; says in `result` which are, and which are not."""
    found = contender.other_peers(wanted, light_only)
    result["peers"] = {"onnxruntime": contender.PINNED["onnxruntime"]} | {
        name: contender.OTHERS[name].version for name in found}
    result["missing"] = {name: f"{contender.OTHERS[name].version} of PyPI " + (
        "is not here, and too large for --quick to install" if light_only and not contender.OTHERS[name].light
        else "cannot be installed here") for name in wanted if name not in found}
    return found


def new_result(seconds):
    cpu, commit = common.machine()
    return {"date": datetime.date.today().isoformat(), "commit": commit, "cpu": cpu, "cores": os.cpu_count(),
            "compiler": common.compiler(), "seconds": seconds, "peers": {}, "missing": {}, "call_overhead_us": [], "limits": [],
            "rows": []}


def measure_row(bench, group, case, threads):
    row = {"group": group.name, "case": case.name, "threads": threads}
    try:
        row.update(dataclasses.asdict(bench.measure(case, threads, *group.arguments)))
    except RuntimeError as error:
        row["error"] = common.one_line(error)
    return row


def say(row):
    if "error" in row:
        print(f"{row['group']}: {row['case']}, {row['threads']} thread(s): {row['error']}", file=sys.stderr, flush=True)
        return
    best = row["sides"][row["best"]]
    print(f"{row['group']}: {row['case']}, {row['threads']} thread(s): {row['sides']['ours']['median_us']:.1f} us, "
          f"{row['best']} {best['median_us']:.1f} us, ratio {best['ratio']:.2f} [{best['low']:.2f}, {best['high']:.2f}]" +
          (f", without {', '.join(row['failed'])}" if row["failed"] else ""), flush=True)


def finish(result, bench):
    """What was measured beside the cases."""
    result["call_overhead_us"] = [{"peer": peer, "threads": threads, "us": us}
                                  for (peer, threads), us in bench.overhead_us.items()]
    result["limits"] = [{"threads": threads, "flops": limits.flops, "streams": [
        {"reads": mix[0], "writes": mix[1], "bytes": size * threads, "bytes_per_s": rate}
        for (mix, size), rate in limits.known.items()]} for threads, limits in bench.limits.items()]


def quick(python, wanted):
    """Whether every side answers, and as often as asked; whether what is written can be read. Counts only."""
    rows = common.Rows()
    if python is None:
        rows.add("UNMEASURED", "peers answer", "onnxruntime cannot be installed here", "10 runs each")
        return 0
    result = new_result(0)
    peers = peers_of(result, wanted, light_only=True)
    group, case = cases.GROUPS["models"], cases.Case("mlp", ["mlp"])
    with tempfile.TemporaryDirectory(prefix="peers.") as work, common.Daemon(work) as daemon:
        bench = peer_bench.Bench(work, daemon.address, python, 0, peers)
        row = measure_row(bench, group, case, 1)
        result["rows"].append(row)
        finish(result, bench)
        for name in ["ours", *(f"onnxruntime {setting}" for setting in case.settings), *peers]:
            runs = row.get("sides", {}).get(name, {}).get("runs", 0)
            rows.counted(f"{name} answers", runs >= 10, f"{runs} runs" if runs else
                         row.get("error", row.get("failed", {}).get(name, ""))[-120:], ">= 10 runs, outputs as onnxruntime's")
        for name, reason in result["missing"].items():
            rows.add("UNMEASURED", f"{name} answers", reason, ">= 10 runs, outputs as onnxruntime's")
        base = report.write(result, pathlib.Path(work) / "results")
        read = json.loads(base.with_name(base.name + ".json").read_text())
        rows.counted("JSON", read == json.loads(json.dumps(result)), f"{len(read['rows'])} row(s)", "as measured")
        lines = [line for line in base.with_name(base.name + ".md").read_text().split("\n") if line.startswith("|")]
        cells = {line.count("|") for line in lines}
        rows.counted("Markdown", len(lines) == 3 and len(cells) == 1, f"{len(lines)} lines, of {cells} bars", "1 table, 1 row")
        tree = xml.etree.ElementTree.parse(base.with_name(base.name + ".svg"))
        bars = tree.findall(".//{http://www.w3.org/2000/svg}rect")
        rows.counted("chart", len(bars) == 3, f"{len(bars)} rectangles", "background, legend and 1 bar")
    return 1 if rows.failed else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one small model, counts only")
    parser.add_argument("--only", action="append", help="groups and cases whose name begins so; may be given more than once")
    parser.add_argument("--peer", action="append", choices=list(contender.OTHERS),
                        help="beside onnxruntime; may be given more than once; default: all")
    parser.add_argument("--seconds", type=float, default=8, help="for each case and number of threads")
    parser.add_argument("--prepare", type=float, default=120, help="seconds that a peer has to load and compile a model")
    parser.add_argument("--threads", type=int, action="append", help="default: 1 and 2")
    parser.add_argument("--out", type=pathlib.Path, default=common.RESULTS, help="directory of what is written")
    options = parser.parse_args()
    python = contender.peer_python()
    wanted = options.peer or list(contender.OTHERS)
    if options.quick:
        return quick(python, wanted)
    if python is None:
        print("peers: onnxruntime cannot be installed here", file=sys.stderr)
        return 1
    result = new_result(options.seconds)
    with tempfile.TemporaryDirectory(prefix="peers.") as work, common.Daemon(work) as daemon:
        bench = peer_bench.Bench(work, daemon.address, python, options.seconds, peers_of(result, wanted), options.prepare)
        for group in cases.GROUPS.values():
            chosen = [case for case in group.cases if selected(options.only, group, case)]
            if chosen and group.needs and not common.host_has(group.needs):
                print(f"{group.name}: this CPU has no {group.needs}", file=sys.stderr)
                continue
            for case in chosen:
                for threads in options.threads or [1, 2]:
                    result["rows"].append(measure_row(bench, group, case, threads))
                    say(result["rows"][-1])
            if chosen:
                finish(result, bench)
                base = report.write(result, options.out)  # a run that is stopped keeps what it has
    if not result["rows"]:
        print("peers: no case is named so", file=sys.stderr)
        return 1
    print(f"{base}.md")
    return 1 if any("error" in row for row in result["rows"]) else 0


if __name__ == "__main__":
    sys.exit(main())
