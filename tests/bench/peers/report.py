"""What a run of measure.py found, as JSON, as Markdown and as a chart. Standard library only.

A result: date, commit, cpu, cores, compiler, seconds, peers {name: version}, missing {name: reason}, call_overhead_us
[{peer, threads, us}], limits [{threads, flops, streams}], rows. A row: group, case, threads, and what bench.Result has, or
error.
"""

import json

import bench
import cases
import chart


def rows_by_group(result):
    """[(Group, its rows)], in the order of cases.GROUPS."""
    found = [(group, [row for row in result["rows"] if row["group"] == name]) for name, group in cases.GROUPS.items()]
    return [(group, rows) for group, rows in found if rows]


def best_of(row, peer):
    """The side of a peer that is fastest, without the cost of a call; None where none runs."""
    sides = [name for name in row["sides"] if name.split()[0] == peer]
    return min(sides, key=lambda name: row["sides"][name]["ratio"], default=None)


def times(side):
    return f"{side['median_us']:.1f} ({side['p10_us']:.1f} .. {side['p90_us']:.1f})"


def case_line(row, peers):
    if "error" in row:
        return f"| {row['case']} | {row['threads']} | not measured: {row['error']} |" + " |" * (len(peers) + 2)
    ours, best = row["sides"]["ours"], row["sides"][row["best"]]
    cells = [row["case"], str(row["threads"]), times(ours)]
    for peer in peers:
        name = best_of(row, peer)
        setting = (name or "").partition(" ")[2].replace("default", "")
        cells.append("" if name is None else times(row["sides"][name]) + (f" {setting}" if setting else ""))
    cells.append(f"{best['ratio']:.2f} [{best['low']:.2f}, {best['high']:.2f}] {row['best'].removesuffix(' default')}")
    cells.append(f"{100 * row['roof_us'] / ours['median_us']:.0f} %" if row["roof_us"] else "")
    return "| " + " | ".join(cells) + " |"


def group_lines(group, rows, peers):
    out = [f"## {group.title} (`--only \"{group.name}\"`)", "",
           "| case | threads | ours | " + " | ".join(peers) + " | ratio to the best | of the roof |",
           "|---" * (len(peers) + 5) + "|", *(case_line(row, peers) for row in rows), ""]
    failed = [f"- {row['case']}, {row['threads']} thread(s): {' '.join(reason.split())[-300:]}"
              for row in rows for reason in row.get("failed", {}).values()]
    return out + (["Not measured:", "", *failed, ""] if failed else [])


def markdown(result):
    peers = list(result["peers"])
    out = [f"# Peer table, {result['date']}, commit {result['commit']}", "",
           f"{result['cpu']}, {result['cores']} cores. " + ", ".join(f"{n} {v}" for n, v in result["peers"].items()) +
           f", {result['compiler']}. Redo: `tests/bench/peers.sh`.", "",
           "Times in microseconds: median (p10 .. p90), each peer at the setting or form of the model that is fastest, which "
           "is named where it is not the only one. Ratio: the fastest peer / ours, median over bursts of the ratio of medians, "
           "with a bootstrap 95 % interval; above 1 ours is faster. All sides ran in turn in one process each, inputs bound "
           "once; torch, jax and tvm allocate their outputs, from memory that they have kept. All compute in f32, and every "
           f"peer's outputs are within {bench.AGREES:g} of the largest value of onnxruntime's; groups that name bf16 or i8 say "
           "so of our side. Of the roof: the least time that the multiply-adds and the stream of this machine allow, as "
           "measured in this run, over our time.", "",
           f"Where a peer's median is below {bench.SMALL_US} us, what it takes for one Add of two numbers through the same "
           "calls is taken off its times before the ratio, not off ours" + "".join(
               f"; {call['peer']} {call['us']:.1f} us with {call['threads']} thread(s)" for call in result["call_overhead_us"]) +
           ".", ""]
    for limit in result["limits"]:
        out.append(f"{limit['threads']} thread(s): {limit['flops'] / 1e9:.0f} GFLOP/s" + "".join(
            f", {s['reads']}:{s['writes']} stream of {s['bytes'] / 1e6:.1f} MB {s['bytes_per_s'] / 1e9:.1f} GB/s"
            for s in limit["streams"]) + ".")
        out.append("")
    for name, reason in result["missing"].items():
        out += [f"No {name}: {reason}.", ""]
    for group, rows in rows_by_group(result):
        out += group_lines(group, rows, peers)
    return "\n".join(out).rstrip() + "\n"


def svg(result):
    groups = []
    for group, rows in rows_by_group(result):
        cases_of = {}
        for row in rows:
            if "error" not in row:
                best = row["sides"][row["best"]]
                bar = chart.Bar(row["threads"], best["ratio"], best["low"], best["high"], row["best"].removesuffix(" default"))
                cases_of.setdefault(row["case"], []).append(bar)
        if cases_of:
            groups.append((group.title, list(cases_of.items())))
    return chart.svg(groups, "Time of the fastest peer / our time",
                     f"{result['date']}, commit {result['commit']}, {result['cpu']}; " +
                     ", ".join(f"{name} {version}" for name, version in result["peers"].items()))


def write(result, folder):
    """PEERS-date-commit.json, .md and .svg; their common name."""
    folder.mkdir(parents=True, exist_ok=True)
    base = folder / f"peers-{result['date']}-{result['commit']}"
    for ending, content in ((".json", json.dumps(result, indent=1) + "\n"), (".md", markdown(result)), (".svg", svg(result))):
        base.with_name(base.name + ending).write_text(content)
    return base
