"""Rows of tests/acceptance/service.sh: the service under load, faults and attack."""

import json
import math
import shutil
import sys
import time

import common
from common import BIN, Daemon, run

# Of the QPS of a gRPC server that does nothing, with the same bytes in and out.
WARM_QPS, WARM_P99 = 0.70, 2.0
# Of what parsing a request takes: what recognising it may.
RECALL = 0.4
GOODPUT, REFUSAL_MS = 0.90, 10.0
# Of the goodput of a minute's overload, what each part of it has at least if it does not collapse.
NO_COLLAPSE = 0.75
# What a neighbour of attackers may notice, and how many idle ones there are.
OTHERS_P99, CONNECTIONS = 2.0, 10_000
# What the server's memory and file descriptors may gain, over the second half of a soak, and for how many of them it may hold
# at a time more than at another; and memory over the second half of a minute of overload, which fills queues.
SLOPE_MIB, SLOPE_FDS, SPREAD_FDS, OVERLOAD_MIB = 0.2, 0.5, 40, 10.0
# Of the calls beyond capacity, how many may end at their deadlines instead of being refused.
LATE = 0.01
RESTART_SECONDS, RESTART_GIB = 2.0, 10


def load(*arguments, timeout=1200):
    return json.loads(run(BIN / "service_load", *arguments, timeout=timeout).stdout)


def spread(value):
    return f"{value['median']:.3g} [{value['low']:.3g}, {value['high']:.3g}]"


def warm(rows, work, options):
    """Answers that were given before, beside a bare echo of the same sizes in the same run."""
    if options.quick:
        one = load("warm", "--model", "bert_layer", "--rounds", 1, "--seconds", 0.5)
        rows.counted("warm calls: all answered, none decoded", one["failed"] == 0 and one["recalled_calls"] == 101,
                     f"{one['failed']} failed, {one['recalled_calls']} of 101 recalled by their bytes", "0 failed, 101")
        return
    lean = ("--lean", "--nodes", 138, "--most-rows", 1024)  # 4 KB in, 20 KB out
    for of, graph in ("", lean), (", TCP", (*lean, "--tcp")), (", bert_layer", ("--model", "bert_layer")):
        one = load("warm", *graph, "--rounds", 15, "--seconds", 2)
        sizes = f"{one['request_bytes']} B in, {one['reply_bytes']} B out, c=8"
        rows.counted(f"warm calls{of}: all answered, none decoded", one["failed"] == 0 and one["recalled_calls"] == 101,
                     f"{one['failed']} failed, {one['recalled_calls']} of 101 recalled by their bytes", "0 failed, 101")
        rows.timed(f"warm QPS / echo QPS{of}", one["qps_ratio"]["high"] >= WARM_QPS,
                   f"{spread(one['qps_ratio'])}; {one['qps']['median']:.0f}/s, {sizes}", f">= {WARM_QPS}")
        rows.timed(f"warm p99 / echo p99{of}", one["p99_ratio"]["low"] <= WARM_P99,
                   f"{spread(one['p99_ratio'])}; {one['p99_ms']['median']:.2f} ms", f"<= {WARM_P99}")
    large = load("warm", "--nodes", 9999, "--rounds", 3, "--seconds", 1)
    rows.counted("9,999 nodes: all answered, none decoded", large["failed"] == 0 and large["recalled_calls"] == 101,
                 f"{large['failed']} failed, {large['recalled_calls']} of 101 recalled by their bytes", "0 failed, 101")
    ratio = large["recall_ms"] / large["parse_ms"] if large["recalled_calls"] else math.inf
    rows.timed("9,999 nodes: recognised / parsed", ratio <= RECALL,
               f"{ratio:.3f}; {large['recall_ms']:.2f} ms of {large['parse_ms']:.2f} ms, {large['request_bytes']} B",
               f"<= {RECALL}")


def sharing(rows, work, options):
    """Equal work once, what nobody wants ended, tenants and priorities."""
    common.test_rows(rows, "sharing", "server_test", "FlowTest.*:TwoTenantsTest.*", "as the test says")


def sandbox(rows, work, options):
    """Generated source that tries to get out."""
    common.test_rows(rows, "sandbox", "worker_test", "EscapeTest.*", "refused, or costs this job alone",
                     must_run=("WithSeccompAloneOnlyReadingIsLeft", "FiltersAloneKeepCompilersFromWhatLandlockDoesNotSee"))


def away(rows, work, options):
    """Clients while the service is away."""
    common.test_rows(rows, "service away", "resilience_test", "*", "the model runs, in time, with right numbers")


def slope_words(slope):
    return f"{slope['a_minute']:+.2f} [{slope['low']:+.2f}, {slope['high']:+.2f}]"


def slope_row(rows, row, slope, bar, figure, words):
    """A counted row: FAIL also where the slope is above its bar for sure, UNMEASURED where it may be on either side."""
    if slope["low"] <= bar < slope["high"]:
        rows.add("UNMEASURED", row, f"{figure}: too short to tell", words)
    else:
        rows.counted(row, slope["high"] <= bar, figure, words)


def overload(rows, work, options):
    """Four times as many new graphs as can be planned."""
    short = ["--seconds", 5, "--rounds", 1, "--round-seconds", 2, "--fill-seconds", 0]
    one = load("overload", *(short if options.quick else ["--seconds", 60]))
    codes = one["codes"]
    good, refused, late = (codes.get(code, 0) for code in ("OK", "RESOURCE_EXHAUSTED", "DEADLINE_EXCEEDED"))
    rows.counted("overload: nothing ends otherwise than it should", one["unexpected"] == 0 and good > 0 and refused > 0,
                 str(codes), "OK, RESOURCE_EXHAUSTED or DEADLINE_EXCEEDED")
    if options.quick:
        return
    rows.counted("overload: what is too much is refused", late <= LATE * (refused + late),
                 f"{refused} refused, {late} ended at their deadlines", f"<= {LATE:.0%} of them at deadlines")
    memory = one["second_half"]["mib"]
    slope_row(rows, "overload: memory", memory, OVERLOAD_MIB,
              f"{slope_words(memory)} MiB a minute over the second half", f"<= {OVERLOAD_MIB}")
    ratio, roof, of_roof = one["goodput_ratio"], one["roof_ratio"], one["goodput_of_roof"]
    at_roof = roof["median"] < GOODPUT and of_roof["high"] >= 1
    verdict = "PASS" if ratio["high"] >= GOODPUT else "ROOF" if at_roof else "SHORT"
    rows.add(verdict, "overload x4: goodput / peak",
             f"{spread(ratio)} in {one['rounds']} rounds, {one['peak_goodput']['median']:.0f}/s at the peak; while a bare gRPC "
             f"server refuses the rest {spread(roof)}", f">= {GOODPUT}")
    parts, goodput = one["goodput_of_parts"], one["goodput"]
    rows.timed("overload x4, 60 s: no collapse", min(parts) >= NO_COLLAPSE * goodput,
               f"{goodput:.0f}/s; of its parts of {60 // len(parts)} s {', '.join(f'{part:.0f}' for part in parts)}/s",
               f">= {NO_COLLAPSE} of it in each")
    rows.timed("overload: refused within", one["refused_p99_ms"] < REFUSAL_MS,
               f"p50 {one['refused_p50_ms']:.2f} ms, p99 {one['refused_p99_ms']:.2f} ms", f"p99 < {REFUSAL_MS:.0f} ms")


def store(rows, work, options):
    """What is acknowledged stays, what is damaged is made again, a full disk passes."""
    def rounds(**variables):
        return {} if options.quick else {f"FUSION_{name.upper()}_ROUNDS": str(n) for name, n in variables.items()}

    tests = common.test_rows(rows, "store", "store_faults_test", "*", "nothing acknowledged lost, nothing wrong served",
                             timeout=7200, environment=rounds(crash=200, upkeep=100_000, full=30, flip=60))
    for test in tests:
        if not options.quick and "write_points" in test:
            hit, points = test["write_points_hit"], test["write_points"]
            load = "upkeep" if test["name"].startswith("Upkeep") else "a load"
            rows.counted(f"store: kill -9 at every write point of {load}", hit == points, f"{hit} of {points}", "all")
    common.test_rows(rows, "store", "cache_test", "RocksFlips.*", "right, or a counted miss", timeout=3600,
                     environment=rounds(flip=1000))
    common.test_rows(rows, "store", "admin_test", "*", "as the test says")


def restart(rows, work, options):
    """A large store is ready soon after a start, also after a kill."""
    gib = 0.05 if options.quick else min(RESTART_GIB, shutil.disk_usage(work).free / 2**30 / 3)
    directory = work / "large"
    filled = json.loads(run(BIN / "store_restart", directory / "db", "--gib", f"{gib:.3f}", timeout=3600).stdout)
    seconds = []
    for _ in range(2 if options.quick else 5):
        begin = time.monotonic()
        with Daemon(work, store=directory, more=["--store-limit", f"{2 * RESTART_GIB}GiB"]) as daemon:
            seconds.append(time.monotonic() - begin)
            tiers = common.ctl("store", "stats", "--server", daemon.address)[1]["tiers"]
            plans = next(tier["plans"] for tier in tiers if tier["name"] == "disk")
            daemon.process.kill()  # the next start follows a crash
    rows.counted("restart: every plan is there", plans == filled["plans"], f"{plans} of {filled['plans']}", "all")
    if not options.quick:
        rows.timed("restart after kill -9 to ready", max(seconds) <= RESTART_SECONDS,
                   f"{max(seconds):.2f} s, store {filled['disk_bytes'] / 2**30:.1f} GiB on disk, "
                   f"{filled['kernels']} kernels", f"<= {RESTART_SECONDS} s")
    shutil.rmtree(directory)


def access(rows, work, options):
    """Who may call, signed kernels, configuration, drain."""
    common.test_rows(rows, "access", "access_test", "*", "as the test says", must_run=common.of_root("PrivilegeTest", "PoisonedArchiveTest"))


def hostile(rows, work, options):
    """Attackers beside a neighbour who must not notice."""
    rounds = {} if options.quick else {"FUSION_ATTACK_ROUNDS": "5"}
    tests = common.test_rows(rows, "hostile", "hostile_test", "*", "clear error, server + 512 MiB at most", timeout=3600,
                             environment=rounds)
    for test in tests:
        if int(test.get("connections", CONNECTIONS)) < CONNECTIONS:
            rows.add("UNMEASURED", f"hostile: {CONNECTIONS} idle connections",
                     f"{test['connections']}: this session may open no more files", f"{CONNECTIONS}")
        if options.quick or "p99_ratio" not in test:
            continue
        ratio, low, high = (float(test[f"p99_ratio{end}"]) for end in ("", "_low", "_high"))
        figure = f"{ratio:.2f} [{low:.2f}, {high:.2f}] x; {float(test['p99_ms']):.2f} ms, {test['neighbour_retries']} retries"
        bare = float(test.get("bare_p99_ratio", 0))
        if bare > 0:
            figure += f"; a gRPC server that does nothing: {bare:.2f} x, {float(test['bare_p99_ms']):.2f} ms"
        # As much as gRPC itself lets them notice, within the interval.
        verdict = "PASS" if ratio <= OTHERS_P99 else "ROOF" if low <= bare else "SHORT"
        rows.add(verdict, f"hostile: {test['name']}: p99 of others", figure, f"<= {OTHERS_P99} x")


def soak(rows, work, options):
    """Calls of all kinds, for long, with caches that are full soon."""
    seconds = options.soak_seconds or (15 if options.quick else 300)
    done = run(BIN / "soak", "--clients", 16, "--seconds", seconds, "--json", "--memory-limit", "32MiB",
               "--server-flag=--store-limit=64MiB", check=False, timeout=seconds + 600)
    if not done.stdout:
        raise RuntimeError(done.stderr)
    one = json.loads(done.stdout)
    words = [w for call in one["by_call"].values() for w in call["unexpected"]] + one["server_errors"]
    rows.counted(f"soak, {seconds} s: nothing unexpected", one["unexpected"] == 0 and not one["never_called"],
                 f"{one['calls']} calls of {len(one['by_call'])} kinds, {one['unexpected']} unexpected" +
                 (f": {words[0][:80]}" if words else ""), "0, and every kind")
    end, limit, held = one["resident_end_bytes"], one["resident_limit_bytes"], one["second_half"]
    rows.counted(f"soak, {seconds} s: memory is what caches may take", 0 < end <= limit, f"{end >> 20} MiB",
                 f"<= {limit >> 20} MiB")
    rows.counted(f"soak, {seconds} s: file descriptors", held["most_fds"] - held["least_fds"] <= SPREAD_FDS,
                 f"{held['least_fds']} to {held['most_fds']}", f"{SPREAD_FDS} apart: workers and files come and go")
    if options.quick:  # of a short one slopes say nothing
        return
    for what, name, bar in ("MiB of memory", "mib", SLOPE_MIB), ("file descriptors", "fds", SLOPE_FDS):
        slope_row(rows, f"soak, {seconds} s: {what} a minute over the second half", held[name], bar,
                  slope_words(held[name]), f"<= {bar}")


GROUPS = [warm, sharing, store, restart, sandbox, access, away, hostile, overload, soak]


def measure(rows, work, options):
    for group in GROUPS:
        if not options.only or any(text in group.__name__ for text in options.only):
            rows.section(group, work, options)


def add_options(parser):
    parser.add_argument("--only", action="append", default=[], help="groups whose name contains this")
    parser.add_argument("--soak-seconds", type=int, help="default: 300; 15 with --quick")


if __name__ == "__main__":
    sys.exit(common.main("service", "service", measure, add_options))
