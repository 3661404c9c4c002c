"""Rows of tests/acceptance/service.sh: the service under load, faults and attack."""

import json
import sys

import common
from common import BIN, run

# Of the QPS of a gRPC server that does nothing, with the same bytes in and out.
WARM_QPS, WARM_P99 = 0.70, 2.0
# Of what parsing a request takes: what recognising it may.
RECALL = 0.4
GOODPUT, REFUSAL_MS = 0.90, 10.0


def load(*arguments, timeout=1200):
    return json.loads(run(BIN / "service_load", *arguments, timeout=timeout).stdout)


def spread(value):
    return f"{value['median']:.3g} [{value['low']:.3g}, {value['high']:.3g}]"


def warm(rows, work, options):
    """Answers that were given before, beside a bare echo of the same sizes in the same run."""
    if options.quick:
        one = load("warm", "--model", "bert_layer", "--rounds", 1, "--seconds", 0.5)
        rows.counted("warm calls all answered, none decoded", one["failed"] == 0 and one["recalled_calls"] == 101,
                     f"{one['failed']} failed, {one['recalled_calls']} of 101 recalled by their bytes", "0 failed, 101")
        return
    one = load("warm", "--model", "bert_layer", "--rounds", 15, "--seconds", 2)
    sizes = f"{one['request_bytes']} B in, {one['reply_bytes']} B out, c=8"
    rows.counted("warm calls all answered, none decoded", one["failed"] == 0 and one["recalled_calls"] == 101,
                 f"{one['failed']} failed, {one['recalled_calls']} of 101 recalled by their bytes", "0 failed, 101")
    rows.timed("warm QPS / echo QPS", one["qps_ratio"]["high"] >= WARM_QPS,
               f"{spread(one['qps_ratio'])}; {one['qps']['median']:.0f}/s, {sizes}", f">= {WARM_QPS}")
    rows.timed("warm p99 / echo p99", one["p99_ratio"]["low"] <= WARM_P99,
               f"{spread(one['p99_ratio'])}; {one['p99_ms']['median']:.2f} ms", f"<= {WARM_P99}")
    large = load("warm", "--nodes", 9999, "--rounds", 3, "--seconds", 1)
    ratio = large["recall_ms"] / large["parse_ms"]
    rows.timed("9,999 nodes: recognised / parsed", ratio <= RECALL,
               f"{ratio:.3f}; {large['recall_ms']:.2f} ms of {large['parse_ms']:.2f} ms, {large['request_bytes']} B",
               f"<= {RECALL}")


def sharing(rows, work, options):
    """Equal work once, what nobody wants ended, tenants and priorities."""
    common.test_rows(rows, "sharing", "server_test", "FlowTest.*", "as the test says")


def sandbox(rows, work, options):
    """Generated source that tries to get out."""
    common.test_rows(rows, "sandbox", "worker_test", "EscapeTest.*", "refused, or costs this job alone")


def away(rows, work, options):
    """Clients while the service is away."""
    common.test_rows(rows, "service away", "resilience_test", "*", "the model runs, in time, with right numbers")


def overload(rows, work, options):
    """Four times as many new graphs as can be planned."""
    if options.quick:
        one = load("overload", "--seconds", 5, "--peak-seconds", 3)
        rows.counted("overload: nothing ends otherwise than it should", one["unexpected"] == 0, str(one["codes"]),
                     "OK, RESOURCE_EXHAUSTED or DEADLINE_EXCEEDED")
        return
    one = load("overload", "--seconds", 60)
    rows.counted("overload: nothing ends otherwise than it should", one["unexpected"] == 0, str(one["codes"]),
                 "OK, RESOURCE_EXHAUSTED or DEADLINE_EXCEEDED")
    rows.timed("overload x4, 60 s: goodput / peak", one["goodput_ratio"] >= GOODPUT,
               f"{one['goodput_ratio']:.2f}; {one['goodput']:.0f} of {one['peak_goodput']:.0f}/s", f">= {GOODPUT}")
    rows.timed("overload: refused within", one["refused_p99_ms"] < REFUSAL_MS,
               f"p50 {one['refused_p50_ms']:.2f} ms, p99 {one['refused_p99_ms']:.2f} ms", f"p99 < {REFUSAL_MS:.0f} ms")


GROUPS = [warm, sharing, sandbox, away, overload]


def measure(rows, work, options):
    for group in GROUPS:
        if not options.only or any(text in group.__name__ for text in options.only):
            rows.section(group, work, options)


def add_options(parser):
    parser.add_argument("--only", action="append", default=[], help="groups whose name contains this")


if __name__ == "__main__":
    sys.exit(common.main("service", "service", measure, add_options))
