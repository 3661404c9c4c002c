"""Rows of tests/acceptance/cpu_kernels.sh. Standard library only; peers run in a venv of their own."""

import math
import pathlib
import statistics
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "bench/peers"))

import beside
import cases
import common
import contender
from common import Daemon, ctl, generate


class Bench:
    """Cases measured beside their peers, in turn, in one run."""

    def __init__(self, work, server, python, options):
        self.work, self.server, self.python, self.options = work, server, python, options
        self.others = contender.other_peers()
        self.limits, self.overhead_us = {}, {}

    def limits_of(self, threads):
        if threads not in self.limits:
            self.limits[threads] = cases.Limits(threads)
        return self.limits[threads]

    def call_overhead_us(self, side, threads):
        """What a call of a peer costs by itself; `side`: "onnxruntime SETTING" or another peer."""
        peer = side.split()[0]
        if (peer, threads) not in self.overhead_us:
            self.overhead_us[peer, threads] = beside.call_overhead_us(
                self.work, lambda model: getattr(contender, peer)(self.python, model, threads))
        return self.overhead_us[peer, threads]

    def measure(self, case, threads, *arguments):
        """How many times faster than its best peer a case is: a dict, or the reason why it cannot be said."""
        model, files = case.files(self.work, self.python)
        make = {"ours": lambda: contender.ours(self.server, model, threads, *arguments)}
        for side, (path, setting) in files.items():
            make[side] = lambda path=path, setting=setting: contender.onnxruntime(self.python, path, threads, setting)
        for other in self.others if case.others else []:
            make[other] = lambda other=other: getattr(contender, other)(self.python, model, threads)
        bursts, failed = beside.bursts_in_turn(make, self.options.seconds)
        model.unlink()
        if "ours" in failed:
            return failed["ours"]
        peers = {name: beside.summary(of)["median_us"] for name, of in bursts.items() if name != "ours"}
        if not peers:
            return "no peer runs it: " + "; ".join(failed.values())[-200:]
        best = min(peers, key=peers.get)
        off_us = self.call_overhead_us(best, threads) if peers[best] < beside.SMALL_US else 0.0
        speed, low, high = beside.ratio(bursts[best], bursts["ours"], off_us)
        ours_us = beside.summary(bursts["ours"])["median_us"]
        return {"best": best, "ours_us": ours_us, "peer_us": peers[best], "speed": speed, "low": low, "high": high, "failed": failed,
                "roof_us": 1e6 * case.roof_s(self.limits_of(threads)) if case.flops or case.reads else 0}


def words(found):
    return (f"{found['ours_us']:.1f} us, {found['best'].replace('onnxruntime', 'ort')} {found['peer_us']:.1f}: "
            f"{found['speed']:.2f} [{found['low']:.2f}, {found['high']:.2f}]" +
            (f", without {', '.join(found['failed'])}" if found["failed"] else ""))


def rate(rows, name, found, bar, aim):
    """One row: PASS by the interval, ROOF where no kernel could reach the bar here."""
    out_of_reach = found["roof_us"] > 0 and found["peer_us"] / found["roof_us"] < bar
    verdict = "PASS" if found["high"] >= bar else "ROOF" if out_of_reach else "SHORT"
    roof = f", roof {found['roof_us']:.1f} us" if found["roof_us"] else ""
    rows.add(verdict, name, words(found) + roof, f">= {bar:.2f}x, aim {aim:.2f}x")


def group_rows(rows, bench, title, group, bar, aim, worst=None):
    """Every case of a group beside its best peer: each has the bar `worst`, or `bar` if there is none; with `worst` their
    geometric mean has `bar`."""
    for threads in bench.options.threads or [1, 2]:
        found = {}
        for case in group:
            row = f"{title}: {case.name}, {threads} thread(s)"
            if not selected(bench.options, row):
                continue
            result = bench.measure(case, threads)
            if isinstance(result, str):
                rows.add("UNMEASURED", row, common.one_line(result)[-160:], f">= {worst or bar:.2f}x")
                continue
            found[case.name] = result
            rate(rows, row, result, worst or bar, aim)
        if worst is not None and len(found) > 1:
            speeds = [f["speed"] for f in found.values()]
            mean = math.exp(statistics.fmean(math.log(s) for s in speeds))
            rows.timed(f"{title}: geometric mean of {len(speeds)}, {threads} thread(s)", mean >= bar,
                       f"{mean:.3f}, worst {min(speeds):.2f}", f">= {bar:.2f}x, aim {aim:.2f}x")


def selected(options, row):
    return not options.only or any(row.lower().startswith(only.lower()) for only in options.only)


def stream_rows(rows, bench, title, group, part, out_of_cache_only):
    """The part of the bandwidth of a stream of the same mix that a case reaches."""
    for threads in bench.options.threads or [1, 2]:
        limits = bench.limits_of(threads)
        for case in group:
            row = f"{title}: {case.name}, part of the stream's rate, {threads} thread(s)"
            if not selected(bench.options, row):
                continue
            size = case.reads + case.writes
            if out_of_cache_only and size < 2 * last_cache_bytes():
                continue
            model = generate(bench.work, *case.model, file="stream.onnx")
            with contender.ours(bench.server, model, threads) as ours:
                ours.burst(3)
                got = []
                for _ in range(7):
                    us = statistics.median(ours.burst(max(3, int(20_000 / max(size / 50_000, 1)))))
                    got.append(size / us * 1e6 / limits.stream(case.mix, size))
            rows.timed(row, statistics.median(got) >= part,
                       f"{100 * statistics.median(got):.0f} % of {limits.stream(case.mix, size) / 1e9:.0f} GB/s "
                       f"({case.mix[0]} read, {case.mix[1]} written, {size / 1e6:.1f} MB)", f">= {100 * part:.0f} %")


def last_cache_bytes():
    sizes = [path.read_text().strip() for path in pathlib.Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size")]
    return max((int(size.rstrip("K")) * 1024 for size in sizes), default=32 << 20)


def forced_rows(rows, bench):
    """One case of each group with kernels for AVX2, reported."""
    for case in [cases.GEMM[8], cases.ONE_ROW[0], cases.CAUSAL[0], cases.PLAIN[0], cases.LAYER_NORM[0], cases.SOFTMAX[1],
                 cases.CHAINS[4], cases.CONV[0], cases.LAYERS[1], *cases.TINY]:
        row = f"avx2: {case.name}, 1 thread(s)"
        if not selected(bench.options, row):
            continue
        result = bench.measure(case, 1, "--isa", "avx2")
        if isinstance(result, str):
            rows.add("UNMEASURED", row, common.one_line(result)[-160:], "reported")
        else:
            rows.add("PASS", row, words(result), "reported")


def timing_rows(rows, work, options):
    python = contender.peer_python()
    if python is None:
        rows.add("UNMEASURED", "everything beside peers", "onnxruntime cannot be installed here", "-")
        return
    with Daemon(work) as daemon:
        bench = Bench(work, daemon.address, python, options)
        rows.section(group_rows, bench, "gemm", cases.GEMM, 0.97, 1.0, 0.92)
        rows.section(group_rows, bench, "one row", cases.ONE_ROW, 1.15, 1.4, 1.08)
        rows.section(group_rows, bench, "eight rows", cases.EIGHT_ROWS, 1.05, 1.1, 1.05)
        rows.section(group_rows, bench, "causal", cases.CAUSAL, 1.5, 1.95)
        rows.section(group_rows, bench, "masked", cases.MASKED, 1.2, 1.3)
        rows.section(group_rows, bench, "plain", cases.PLAIN, 1.05, 1.1)
        rows.section(group_rows, bench, "decode", cases.DECODE, 1.2, 1.5)
        rows.section(stream_rows, bench, "decode", cases.DECODE, 0.8, False)
        rows.section(group_rows, bench, "norm", cases.LAYER_NORM, 2.0, 3.5)
        rows.section(group_rows, bench, "softmax", cases.SOFTMAX, 1.5, 2.0)
        rows.section(group_rows, bench, "rmsnorm", cases.RMS_NORM, 1.2, 1.6)
        rows.section(stream_rows, bench, "rows", cases.LAYER_NORM + cases.SOFTMAX + cases.RMS_NORM, 0.8, True)
        rows.section(group_rows, bench, "chain", cases.CHAINS, 1.8, 3.0)
        rows.section(group_rows, bench, "conv", cases.CONV, 0.97, 1.05)
        rows.section(group_rows, bench, "layer", cases.LAYERS, 1.06, 1.12, 1.0)
        rows.section(group_rows, bench, "tiny", cases.TINY, 1.3, 2.0)
        rows.section(forced_rows, bench)


# Ragged and small forms of what the timing rows measure.
RAGGED = [["matmul", "--rows", 129, "--cols", 257, "--hidden", 385], ["matmul", "--rows", 1, "--cols", 33, "--hidden", 77],
          ["matmul", "--rows", 8, "--cols", 100, "--hidden", 31], ["mha_causal", "--seq", 61, "--hidden", 96, "--heads", 4],
          ["mha", "--seq", 37, "--hidden", 60, "--heads", 3], ["mha_nomask", "--seq", 1, "--past", 260, "--hidden", 96, "--heads", 4],
          ["add_bias_layernorm", "--rows", 7, "--cols", 77], ["scale_mask_softmax", "--rows", 5, "--cols", 131],
          ["rmsnorm", "--rows", 3, "--cols", 1001], ["elementwise", "--rows", 9, "--cols", 117, "--depth", 10],
          ["conv_bias_leakyrelu", "--channels", 7, "--image", 13], ["conv1x1", "--channels", 9, "--image", 11],
          ["depthwise", "--channels", 5, "--image", 15], ["lstm_cell"]]


def correctness_rows(rows, work):
    """Each beside the evaluator, with kernels for this machine."""
    with Daemon(work) as daemon:
        for words in RAGGED:
            model = generate(work, *words)
            what = " ".join(str(word).removeprefix("--") for word in words)
            status, said = ctl("verify", model, "--server", daemon.address, check=False)
            outside = sum(output["outside"] for output in said.get("outputs", []))
            rows.counted(f"verify {what}", status == 0 and said.get("pass", False) and said.get("fallbacks") == 0,
                         f"outside {outside}, fallbacks {said.get('fallbacks')}" if "outputs" in said else
                         common.one_line(said.get("error", {}).get("message", ""))[:120], "outside 0, fallbacks 0")


def add_options(parser):
    parser.add_argument("--only", action="append", help="timing rows whose name begins so; may be given more than once")
    parser.add_argument("--seconds", type=float, default=8, help="for each case and number of threads")
    parser.add_argument("--threads", type=int, action="append", help="default: 1 and 2")


def measure(rows, work, options):
    rows.section(correctness_rows, work)
    if not options.quick:
        rows.section(timing_rows, work, options)


if __name__ == "__main__":
    sys.exit(common.main("CPU kernels", "cpu_kernels", measure, add_options))
