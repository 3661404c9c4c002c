#!/usr/bin/env python3
"""Writes the Grafana dashboards of fusiond: dashboards/*.json beside this file, from the tables below.

    deploy/observability/dashboards.py            writes them
    deploy/observability/dashboards.py --check    says which files differ from what it would write; exit status 1 if any does

A panel has a title, a unit of Grafana's, one sentence of description, and queries by legend. Every selector of a metric gets
`instance=~"$instance"`, so the tables leave it out. Standard library only; the JSON is for Grafana 10, without plugins.
"""

import argparse
import dataclasses
import json
import pathlib
import re
import sys

FOLDER = pathlib.Path(__file__).resolve().parent / "dashboards"
SCHEMA_VERSION = 38  # Grafana 10
COLUMNS, HEIGHT, STAT_HEIGHT = 24, 8, 4
DATASOURCE = {"type": "prometheus", "uid": "${datasource}"}
METRIC = re.compile(r"\b((?:fusion|grpc_server|process)_[a-z_]+)(\{)?")
GREEN = ((None, "green"),)
BAD_FROM_1 = ((None, "green"), (1, "red"))


@dataclasses.dataclass(frozen=True)
class Panel:
    title: str
    unit: str
    description: str
    queries: dict  # PromQL by legend
    width: int = 8
    stacked: bool = False


@dataclasses.dataclass(frozen=True)
class Stat(Panel):
    """The newest value as a number; `steps` are pairs of a value and the colour from there on."""
    width: int = 4
    steps: tuple = GREEN


@dataclasses.dataclass(frozen=True)
class Dashboard:
    name: str  # of the file, and of the uid
    title: str
    description: str
    rows: dict  # panels by the title of their row


def rate(metric, by="", window="$__rate_interval"):
    return f"sum by ({by}) (rate({metric}[{window}]))" if by else f"sum(rate({metric}[{window}]))"


def quantile(q, metric, by="", where=""):
    labels = f"le, {by}" if by else "le"
    return f"histogram_quantile({q}, {rate(f'{metric}_bucket{where}', labels)})"


def share(part, whole):
    """0 where there is nothing: neither a division by zero nor a gap."""
    return f"({part} or vector(0)) / clamp_min({whole} or vector(0), 1e-9)"


def or_zero(query):
    """One series of zeros where `query` finds none."""
    return f"{query} or on () vector(0)"


PLANNING = '{grpc_method=~"PlanFusion.*"}'
SERVER_FAULTS = 'grpc_server_handled_total{grpc_code=~"INTERNAL|UNKNOWN|DATA_LOSS"}'
REFUSALS = Panel("Calls refused because of a limit", "reqps",
                 "Which limit refuses calls: the runbook of FusionCallsRejected says what each reason means.",
                 {"{{reason}}": rate("fusion_admission_rejected_total", "reason")}, stacked=True)

SERVICE = Dashboard("service", "fusiond: service", "Does it answer, how fast, and what keeps it from answering?", {
    "Now": [
        Stat("Ready", "none", "Instances that answer ready, and instances that Prometheus reads.",
             {"ready": "sum(fusion_ready)", "instances": "count(fusion_ready)"}),
        Stat("Youngest process", "s", "Time since the last start of any instance.",
             {"up for": "min(time() - process_start_time_seconds)"}),
        Stat("Calls", "reqps", "Calls that come in, of every method.", {"calls": rate("grpc_server_started_total")}),
        Stat("Server faults", "percentunit", "Share of calls that end INTERNAL, UNKNOWN or DATA_LOSS: the server is at fault.",
             {"share": share(rate(SERVER_FAULTS), rate("grpc_server_handled_total"))},
             steps=((None, "green"), (0.001, "orange"), (0.01, "red"))),
        Stat("PlanFusion, p99", "s", "99 of 100 requests for a plan are answered within this time.",
             {"p99": quantile(0.99, "grpc_server_handling_seconds", where=PLANNING)}),
        Stat("Certificate ends in", "s", "Time until the first TLS certificate ends; empty without TLS.",
             {"left": "min(fusion_tls_certificate_expiry_seconds - time())"},
             steps=((None, "red"), (3 * 86400, "orange"), (14 * 86400, "green"))),
    ],
    "Calls": [
        Panel("Calls by method", "reqps", "What callers ask for.",
              {"{{grpc_method}}": rate("grpc_server_started_total", "grpc_method")}, stacked=True),
        Panel("Calls that fail, by code", "reqps",
              "INVALID_ARGUMENT and UNIMPLEMENTED are about the request, RESOURCE_EXHAUSTED is a limit, INTERNAL, UNKNOWN and "
              "DATA_LOSS are faults of the server.",
              {"{{grpc_code}}": or_zero(rate('grpc_server_handled_total{grpc_code!="OK"}', "grpc_code"))}, stacked=True),
        REFUSALS,
    ],
    "Latency": [
        Panel("PlanFusion: quantiles", "s", "Warm answers take some 200 us, cold ones seconds: p50 shows the one, p99 the other.",
              {f"p{percent}": quantile(percent / 100, "grpc_server_handling_seconds", where=PLANNING) for percent in (50, 90, 99)}),
        Panel("p99 by method", "s", "Which method is slow.",
              {"{{grpc_method}}": quantile(0.99, "grpc_server_handling_seconds", "grpc_method")}),
        Panel("p99 by stage", "s", "Which stage of a request for a plan is slow.",
              {"{{stage}}": quantile(0.99, "fusion_stage_seconds", "stage")}),
        Panel("Time by stage", "none", "Where requests for plans spend their time: 1 is one request in this stage all the time.",
              {"{{stage}}": rate("fusion_stage_seconds_sum", "stage")}, stacked=True, width=16),
        Panel("Wait for a thread, p99", "s", "Time before a call gets one of --request-threads.",
              {"p99": quantile(0.99, "fusion_admission_wait_seconds")}),
    ],
    "Limits": [
        Panel("Calls under way", "none", "How near the calls are to the number beyond which they are refused.",
              {"under way": "sum(fusion_inflight_calls)", "waiting": "sum(fusion_inflight_calls_queued)",
               "limit": "sum(fusion_inflight_calls_limit)"}, width=6),
        Panel("Bytes of requests", "bytes", "How near the requests under way are to --max-inflight-bytes.",
              {"under way": "sum(fusion_inflight_bytes)", "limit": "sum(fusion_inflight_limit_bytes)"}, width=6),
        Panel("Memory of planning", "bytes", "Beyond the limit the largest planning of the tenant that holds the most is ended.",
              {"held": "sum(fusion_planning_bytes)", "limit": "sum(fusion_planning_limit_bytes)"}, width=6),
        Panel("Connections", "none", "Open connections, and how many may be open.",
              {"open": "sum(fusion_connections)", "admin port": "sum(fusion_admin_connections)",
               "limit": "sum(fusion_connections_limit)"}, width=6),
        Panel("Connections refused or closed", "cps", "Connections beyond the limit, and those that the server ends to protect "
              "itself.", {"refused": rate("fusion_connections_refused_total"), "closed": rate("fusion_connections_closed_total"),
                          "admin port, {{reason}}": rate("fusion_admin_connections_closed_total", "reason")}),
        Panel("Answers read in parts", "none", "Streams that are open: kernels that are being fetched, and progress of planning.",
              {"streams": "sum(fusion_inflight_streams)"}),
        Panel("Messages", "cps", "Messages received and sent; those of streams are counted one by one.",
              {"received": rate("grpc_server_msg_received_total"), "sent": rate("grpc_server_msg_sent_total")}),
    ],
    "Process": [
        Panel("CPU", "none", "Cores in use by fusiond itself, without compilers.",
              {"{{instance}}": rate("process_cpu_seconds_total", "instance")}, width=6),
        Panel("Resident memory", "bytes", "Memory of fusiond itself, without compilers.",
              {"{{instance}}": "process_resident_memory_bytes"}, width=6),
        Panel("File descriptors in use", "percentunit", "Share of the limit of the process; connections take one each.",
              {"{{instance}}": "process_open_fds / process_max_fds"}, width=6),
        Panel("What runs", "none", "Instances by version and compiler; different ones share no kernels.",
              {"{{version}}, {{compiler}}": "count by (version, compiler) (fusion_build_info)"}, width=6),
    ],
})

CACHE = Dashboard("cache", "fusiond: cache by plans", "What is answered from memory and disk, and does the store take what is made?", {
    "Now": [
        Stat("Plans from a cache", "percentunit", "Share of plans that were not planned for their request.",
             {"share": share(rate('fusion_plans_total{cache!="planned"}'), rate("fusion_plans_total"))}),
        Stat("Warm requests", "percentunit", "Share of requests whose very bytes were answered before.",
             {"share": share(rate('fusion_warm_requests_total{result="hit"}'), rate("fusion_warm_requests_total"))}),
        Stat("Store writable", "none", "1 if every store takes what is made, 0 if one does not.",
             {"writable": "min(fusion_store_writable)"}, steps=((None, "red"), (1, "green"))),
        Stat("Plans not written yet", "none", "Plans that are in memory alone and would be lost at a crash.",
             {"plans": 'sum(fusion_store_unwritten_plans{tier="disk"}) or vector(0)'}, steps=BAD_FROM_1),
        Stat("Room left", "bytes", "Free bytes of the fullest store's file system beyond --store-min-free.",
             {"left": "min(fusion_store_free_bytes - fusion_store_min_free_bytes)"}, steps=((None, "red"), (1 << 30, "green"))),
        Stat("Damaged entries", "none", "Entries that did not match their digests within the last day and were deleted.",
             {"entries": "sum(increase(fusion_cache_dropped_total[1d]))"}, steps=BAD_FROM_1),
    ],
    "Plans": [
        Panel("Plans by where they came from", "reqps",
              "planned: made for this request; shared: made for an equal request at the same time; memory and store: found.",
              {"{{cache}}": rate("fusion_plans_total", "cache")}, stacked=True),
        Panel("Warm requests by instance", "percentunit", "A fall means cold callers, a restart, evictions, or requests that differ in some byte.",
              {"{{instance}}": "sum by (instance) (rate(fusion_warm_requests_total{result=\"hit\"}[$__rate_interval])) / "
                               "clamp_min(sum by (instance) (rate(fusion_warm_requests_total[$__rate_interval])), 1e-9)"}),
        Panel("Equal requests at the same time", "none", "Requests that wait for the work of an equal one, and how many found some.",
              {"wait now": "sum(fusion_singleflight_waiters)", "found some, per second": rate("fusion_singleflight_shared_total")}),
    ],
    "Reads and writes": [
        Panel("Reads by tier", "reqps", "Which tier had what was asked for; a miss has the tier none.",
              {"{{kind}}, {{tier}}": rate("fusion_cache_requests_total", "kind, tier")}, stacked=True, width=6),
        Panel("Read, p99", "s", "One read of a plan or a kernel, all tiers.",
              {"{{kind}}": quantile(0.99, "fusion_cache_read_seconds", "kind")}, width=6),
        Panel("Write, p50 and p99", "s", "One plan with its kernels, synced to disk.",
              {"p50": quantile(0.5, "fusion_cache_write_seconds"), "p99": quantile(0.99, "fusion_cache_write_seconds")}, width=6),
        Panel("Writes by result", "cps", "Plans with their kernels; an error leaves them in memory alone.",
              {"{{result}}": rate("fusion_cache_writes_total", "result"),
               "tries that failed, {{tier}}": rate("fusion_cache_write_failures_total", "tier")}, width=6),
    ],
    "Room": [
        Panel("Budget in use", "percentunit", "Bytes of plans and kernels by --store-limit and --memory-limit; at 1 entries are evicted.",
              {"{{tier}}": "sum by (tier) (fusion_cache_bytes) / sum by (tier) (fusion_cache_limit_bytes)"}),
        Panel("Plans and kernels kept", "none", "Entries by tier.",
              {"{{kind}}, {{tier}}": "sum by (kind, tier) (fusion_cache_entries)"}),
        Panel("Evicted and dropped", "cps", "Evicted for lack of room, dropped because of damage.",
              {"evicted, {{tier}}": rate("fusion_cache_evictions_total", "tier"),
               "dropped, {{tier}}": rate("fusion_cache_dropped_total", "tier")}),
        Panel("Disk", "bytes", "What the store occupies, and what its file system has left.",
              {"store": 'sum(fusion_store_disk_bytes{tier="disk"})', "pinned": 'sum(fusion_store_pinned_bytes{tier="disk"})',
               "set aside": "sum(fusion_store_set_aside_bytes)", "free": "min(fusion_store_free_bytes)",
               "kept free": "max(fusion_store_min_free_bytes)"}),
        Panel("Recent requests", "bytes", "Answers, graphs and plans of recent requests in memory; the limit is of each kind.",
              {"{{kind}}": "sum by (kind) (fusion_recent_bytes)", "limit of each": "sum(fusion_recent_limit_bytes)"}),
        Panel("Answers kept by their requests", "none", "Entries of the first tier, which answers a repeated request by its bytes.",
              {"answers": "sum(fusion_warm_answers)"}),
    ],
})

DIED = 'fusion_compiles_total{result=~"crash|oom|timeout"}'
COMPILE = Dashboard("compile", "fusiond: compile", "Are kernels made, how long does it take, and what goes wrong?", {
    "Now": [
        Stat("Kernels given to workers", "cps", "Jobs that ended, in whatever way.", {"kernels": rate("fusion_compiles_total")}),
        Stat("Crash, memory or time", "percentunit", "Share of jobs over which a worker died, or that ran out of memory or time.",
             {"share": share(rate(DIED), rate("fusion_compiles_total"))}, steps=((None, "green"), (0.01, "orange"), (0.05, "red"))),
        Stat("In quarantine", "none", "Kernels that are not tried any more, because two workers died over each.",
             {"kernels": "sum(fusion_quarantined_kernels)"}, steps=BAD_FROM_1),
        Stat("Failures remembered", "none", "Kernels and plannings that are not tried again within --failure-ttl-seconds.",
             {"kernels": "sum(fusion_remembered_failures)"}),
        Stat("Queue", "percentunit", "Fullest queue of kernels that wait for a worker; at 1 requests are refused.",
             {"share": "max(fusion_compile_queue_depth / fusion_compile_queue_limit)"},
             steps=((None, "green"), (0.5, "orange"), (0.8, "red"))),
        Stat("Workers busy", "percentunit", "Share of the worker processes that have a job; 0 before the first one is started.",
             {"share": 'sum(fusion_workers{state="busy"}) / clamp_min(sum(fusion_workers), 1)'}),
    ],
    "Kernels": [
        Panel("Kernels by result", "cps", "error: it did not compile, or failed its check; rejected: the queue was full.",
              {"{{result}}": rate("fusion_compiles_total", "result")}, stacked=True),
        Panel("Time to compile, p50 and p99", "s", "Compiler and linker, of one kernel.",
              {f"p{percent}": quantile(percent / 100, "fusion_compile_seconds", where='{stage="compile"}') for percent in (50, 99)}),
        Panel("Time to check, p50 and p99", "s", "Runs on random and special inputs and the comparison with the evaluator.",
              {f"p{percent}": quantile(percent / 100, "fusion_compile_seconds", where='{stage="check"}') for percent in (50, 99)}),
    ],
    "Workers": [
        Panel("Kernels that wait", "none", "Kernels that wait for a worker, and how many may.",
              {"waiting": "sum(fusion_compile_queue_depth)", "limit": "sum(fusion_compile_queue_limit)"}),
        Panel("Workers", "none", "Worker processes by state; they are started when they are needed.",
              {"{{state}}": "sum by (state) (fusion_workers)"}, stacked=True),
        Panel("Worker restarts", "none", "Workers started within ten minutes in place of others; one ends with each cancelled job too.",
              {"{{instance}}": "sum by (instance) (increase(fusion_worker_restarts_total[10m]))"}),
    ],
    "Work that was ended, saved or declined": [
        Panel("Ended early", "cps", "Builds that nobody waited for any more, and plannings that took too much memory.",
              {"abandoned": rate("fusion_builds_abandoned_total"), "memory": rate("fusion_plannings_evicted_total")}, width=6),
        Panel("Search for tiles", "cps", "What became of the candidates of --opt-level.",
              {"{{result}}": rate("fusion_tile_candidates_total", "result")}, width=6),
        Panel("Searches and races", "cps", "Searches by how they ended, and kernels that were timed.",
              {"search, {{result}}": rate("fusion_tile_searches_total", "result"),
               "race, {{result}}": rate("fusion_tile_races_total", "result")}, width=6),
        Panel("Registered kernels and skipped rewrites", "none",
              "Registered kernels by state, and plans of the last hour that were made without a faulty rewrite.",
              {"kernels, {{state}}": "sum by (state) (fusion_registered_kernels)",
               "without {{pass}}": or_zero("sum by (pass) (increase(fusion_passes_skipped_total[1h]))")}, width=6),
    ],
})

TENANT_TIME = rate("fusion_tenant_seconds_total", "tenant")
TENANTS = Dashboard("tenants", "fusiond: tenants", "Who uses the server, and who is refused?", {
    "Now": [
        Stat("Tenants", "none", "Tenants that have called since the start; from the 65th on they share the name other.",
             {"tenants": "count(count by (tenant) (fusion_tenant_calls_total))"}),
        Stat("Share of the busiest", "percentunit", "Part of the time of all calls that belongs to one tenant.",
             {"share": share(f"max({TENANT_TIME})", rate("fusion_tenant_seconds_total"))}),
        Stat("Refused calls", "percentunit", "Share of calls that end RESOURCE_EXHAUSTED.",
             {"share": share(rate("fusion_tenant_refused_total"), rate("fusion_tenant_calls_total"))}),
    ],
    "Use": [
        Panel("Calls", "reqps", "The ten tenants with the most calls.",
              {"{{tenant}}": f"topk(10, {rate('fusion_tenant_calls_total', 'tenant')})"}, stacked=True),
        Panel("Time of calls", "none", "The ten tenants that take the most time: 1 is one call all the time.",
              {"{{tenant}}": f"topk(10, {TENANT_TIME})"}, stacked=True),
        Panel("Mean time of a call", "s", "Large graphs and cold caches make it long, and so does waiting.",
              {"{{tenant}}": f"topk(10, {TENANT_TIME} / clamp_min({rate('fusion_tenant_calls_total', 'tenant')}, 1e-9))"}),
    ],
    "Refusals": [
        Panel("Refused calls by tenant", "reqps", "Calls that end RESOURCE_EXHAUSTED: a quota, a full queue, or a request too large.",
              {"{{tenant}}": f"topk(10, {rate('fusion_tenant_refused_total', 'tenant')})"}, stacked=True),
        REFUSALS,
        Panel("Plannings ended for memory", "cps", "The largest planning of the tenant that holds the most is ended first.",
              {"ended": rate("fusion_plannings_evicted_total")}),
    ],
})

ACCURACY = Dashboard("accuracy", "fusiond: model accuracy", "Do runtimes report latencies, against which estimates can be judged?", {
    "Reports": [
        Panel("Reports of latencies", "cps", "unknown_plan: the plan was evicted or never stored; invalid: a number is impossible.",
              {"{{result}}": rate("fusion_measurements_ingested_total", "result")}, stacked=True),
        Panel("Reports that are accepted", "percentunit", "Share of the reports of the last hour.",
              {"share": share(rate('fusion_measurements_ingested_total{result="ok"}', window="1h"),
                              rate("fusion_measurements_ingested_total", window="1h"))}),
        Panel("Reports that are read", "reqps", "Calls of GetReport and GetAccuracy (fusionctl report).",
              {"GetReport": or_zero(rate('grpc_server_started_total{grpc_method="GetReport"}')),
               "GetAccuracy": or_zero(rate('grpc_server_started_total{grpc_method="GetAccuracy"}'))}),
    ],
    "What is learned": [
        Panel("Measured / expected", "none", "By kind of device, with the constants in force; 1 is as expected.",
              {"{{target}}, {{threads}} threads": "max by (target, threads) (fusion_measured_over_expected)"}),
        Panel("Epochs", "none", "Sets of fitted constants that are kept. fusionctl epochs shows them.",
              {"{{state}}": "sum by (state) (fusion_epochs)"}, stacked=True),
        Panel("Plans made again", "cps", "changed: other constants make a better plan, or a fusion was slower than its parts.",
              {"{{result}}": rate("fusion_plans_renewed_total", "result")}),
        Panel("Drift alarms", "none", "Latencies of a machine moved away from what is expected.",
              {"alarms": "sum(increase(fusion_drift_alarms_total[1h]))"}),
    ],
    "What is kept": [
        Panel("Plans with latencies", "none", "Plans for which runtimes have reported.", {"plans": "sum(fusion_measurements_plans)"}),
        Panel("Kernels with latencies", "none", "Each counts once for every machine that measured it. fusionctl report --accuracy compares them.",
              {"kernels": "sum(fusion_timings_kernels)"}),
        Panel("Budget in use", "percentunit", "At 1 the plan whose last report is oldest, or the tenant who has most times of kernels, loses latencies.",
              {"plans": "sum(fusion_measurements_bytes) / sum(fusion_measurements_limit_bytes)",
               "kernels": "sum(fusion_timings_bytes) / sum(fusion_timings_limit_bytes)"}),
        Panel("Evicted and dropped", "cps", "Latencies that went for lack of room, and records that were damaged.",
              {"plans evicted": rate("fusion_measurements_evictions_total"), "plans dropped": rate("fusion_measurements_dropped_total"),
               "kernels evicted": rate("fusion_timings_evictions_total"), "kernels dropped": rate("fusion_timings_dropped_total")}),
    ],
})

DASHBOARDS = (SERVICE, CACHE, COMPILE, TENANTS, ACCURACY)


def on_instance(query):
    """The query with the instances that the dashboard shows in every selector."""
    return METRIC.sub(lambda found: f'{found[1]}{{instance=~"$instance"' + (", " if found[2] else "}"), query)


def panel_json(panel, number, place):
    is_stat = isinstance(panel, Stat)
    defaults = {"unit": panel.unit, "min": 0}
    if is_stat:
        defaults = {"unit": panel.unit, "noValue": "none", "color": {"mode": "thresholds"}, "thresholds": {
            "mode": "absolute", "steps": [{"value": value, "color": color} for value, color in panel.steps]}}
        options = {"colorMode": "value", "graphMode": "area", "justifyMode": "auto", "textMode": "auto", "orientation": "auto",
                   "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}}
    else:
        defaults["custom"] = {"drawStyle": "line", "lineWidth": 1, "fillOpacity": 30 if panel.stacked else 5, "showPoints": "never",
                              "stacking": {"mode": "normal" if panel.stacked else "none", "group": "A"}}
        options = {"legend": {"displayMode": "list", "placement": "bottom", "showLegend": True},
                   "tooltip": {"mode": "multi", "sort": "desc"}}
    targets = [{"refId": chr(ord("A") + index), "datasource": DATASOURCE, "editorMode": "code", "expr": on_instance(query),
                "legendFormat": legend, "instant": False, "range": True}
               for index, (legend, query) in enumerate(panel.queries.items())]
    return {"id": number, "type": "stat" if is_stat else "timeseries", "title": panel.title, "description": panel.description,
            "datasource": DATASOURCE, "gridPos": place, "fieldConfig": {"defaults": defaults, "overrides": []}, "options": options,
            "targets": targets}


def panels_json(rows):
    panels, top = [], 0
    for title, row in rows.items():
        panels.append({"id": len(panels) + 1, "type": "row", "title": title, "collapsed": False, "panels": [],
                       "gridPos": {"x": 0, "y": top, "w": COLUMNS, "h": 1}})
        top, left, height = top + 1, 0, 0
        for panel in row:
            if left + panel.width > COLUMNS:
                top, left, height = top + height, 0, 0
            height = max(height, STAT_HEIGHT if isinstance(panel, Stat) else HEIGHT)
            place = {"x": left, "y": top, "w": panel.width, "h": STAT_HEIGHT if isinstance(panel, Stat) else HEIGHT}
            panels.append(panel_json(panel, len(panels) + 1, place))
            left += panel.width
        top += height
    return panels


def variables():
    instances = "label_values(fusion_ready, instance)"
    return [{"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus", "regex": "", "hide": 0,
             "multi": False, "includeAll": False, "options": [], "current": {}, "refresh": 1},
            {"name": "instance", "label": "Instance", "type": "query", "datasource": DATASOURCE, "definition": instances,
             "query": {"query": instances, "refId": "instances"}, "regex": "", "hide": 0, "multi": True, "includeAll": True,
             "allValue": ".*", "options": [], "current": {"selected": True, "text": ["All"], "value": ["$__all"]}, "refresh": 2,
             "sort": 1}]


def dashboard_json(dashboard):
    alerts = {"name": "Alerts", "datasource": DATASOURCE, "enable": True, "iconColor": "red", "titleFormat": "{{alertname}}",
              "expr": 'ALERTS{alertname=~"Fusion.*", alertstate="firing"}', "step": "60s"}
    links = {"type": "dashboards", "title": "fusiond", "tags": ["fusiond"], "asDropdown": True, "icon": "external link",
             "includeVars": True, "keepTime": True, "targetBlank": False, "tooltip": "", "url": ""}
    return {"uid": f"fusiond-{dashboard.name}", "title": dashboard.title, "description": dashboard.description,
            "tags": ["fusiond"], "schemaVersion": SCHEMA_VERSION, "version": 1, "id": None, "editable": True, "graphTooltip": 1,
            "timezone": "", "refresh": "30s", "time": {"from": "now-3h", "to": "now"}, "fiscalYearStartMonth": 0,
            "annotations": {"list": [alerts]}, "links": [links], "templating": {"list": variables()},
            "panels": panels_json(dashboard.rows)}


def files():
    """The text of each file, by name."""
    return {f"{dashboard.name}.json": json.dumps(dashboard_json(dashboard), indent=1) + "\n" for dashboard in DASHBOARDS}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="writes nothing; exit status 1 if a file differs")
    options = parser.parse_args()
    expected = files()
    if not options.check:
        FOLDER.mkdir(exist_ok=True)
        for name, text in expected.items():
            (FOLDER / name).write_text(text)
    found = {path.name: path.read_text() for path in FOLDER.glob("*.json")}
    differ = sorted(name for name in {**expected, **found} if found.get(name) != expected.get(name))
    for name in differ:
        print(f"{name}: not what {pathlib.Path(__file__).name} writes", file=sys.stderr)
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
