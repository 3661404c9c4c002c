"""Series on which each alert must fire, and series on which none may. Values are in promtool's notation, one a minute.

A case is the healthy server but for the series that it names; None leaves one out. Nothing but its own alert fires.
"""

import dataclasses

MINUTES = 150
STAGES = {"import": ("0.003", "0.3", "1"), "plan": ("0.1", "3", "10"), "publish": ("0.01", "0.3", "3")}


def steady(value):
    return f"{value}x{MINUTES}"


def grows(per_minute):
    return f"0+{per_minute}x{MINUTES}"


def series(name, **labels):
    labels = {"job": "fusiond", "instance": "a", **labels}
    return name + "{" + ", ".join(f'{key}="{labels[key]}"' for key in sorted(labels)) + "}"


def times(name, bounds, per_minute, **labels):
    """A histogram whose observations all lie below the first bound."""
    found = {series(f"{name}_bucket", le=bound, **labels): grows(per_minute) for bound in (*bounds, "+Inf")}
    return {**found, series(f"{name}_count", **labels): grows(per_minute)}


def above(name, bounds, **labels):
    """What makes all of them lie between the last two bounds."""
    return {series(f"{name}_bucket", le=bound, **labels): steady(0) for bound in bounds[:-1]}


WARM, COLD = (series("fusion_warm_requests_total", result=result) for result in ("hit", "miss"))
DEPTH = series("fusion_compile_queue_depth")
FREE = series("fusion_store_free_bytes")
EXPIRES = series("fusion_tls_certificate_expiry_seconds")
RESTARTS = series("fusion_worker_restarts_total")
REPORTS = series("fusion_measurements_ingested_total", result="ok")
RATIO = series("fusion_measured_over_expected", isa="avx2", target="toy", threads="1")
DRIFTS = series("fusion_drift_alarms_total")
COMPILE_BOUNDS = ("1", "10", "30", "100")


def compiles(result):
    return series("fusion_compiles_total", result=result)


def stage_slow(stage):
    return above("fusion_stage_seconds", STAGES[stage], stage=stage)


HEALTHY = {
    series("up"): steady(1),
    series("fusion_ready"): steady(1),
    RATIO: steady(1.2),
    DRIFTS: steady(0),
    series("grpc_server_started_total", grpc_method="PlanFusion"): grows(600),
    series("grpc_server_handled_total", grpc_code="OK"): grows(590),
    series("grpc_server_handled_total", grpc_code="INVALID_ARGUMENT"): grows(10),
    series("grpc_server_handled_total", grpc_code="INTERNAL"): steady(0),
    series("fusion_admission_rejected_total", reason="calls"): steady(0),
    series("fusion_admission_rejected_total", reason="rate"): grows(6),
    **{key: value for stage, bounds in STAGES.items() for key, value in times("fusion_stage_seconds", bounds, 600, stage=stage).items()},
    WARM: grows(540), COLD: grows(60),
    EXPIRES: steady(100 * 86400),  # the clock of promtool begins at 0
    REPORTS: grows(10),
    series("fusion_plans_total", cache="memory"): grows(600),
    series("fusion_store_writable", tier="memory"): steady(1),
    series("fusion_store_writable", tier="disk"): steady(1),
    FREE: steady(10**11),
    series("fusion_store_min_free_bytes"): steady(2**28),
    series("fusion_store_started_empty"): steady(0),
    series("fusion_cache_dropped_total", tier="disk"): steady(0),
    DEPTH: steady(40),
    series("fusion_compile_queue_limit"): steady(4096),
    compiles("ok"): grows(30), compiles("error"): grows(1), compiles("cancelled"): grows(2),
    **{compiles(result): steady(0) for result in ("crash", "oom", "timeout", "rejected")},
    **times("fusion_compile_seconds", COMPILE_BOUNDS, 30, stage="compile"),
    series("fusion_quarantined_kernels"): steady(0),
    RESTARTS: grows(2),
}


@dataclasses.dataclass
class Case:
    name: str
    changed: dict
    alert: str = ""  # empty: none fires
    fires_at: int = 0  # minutes
    quiet_at: int = 0  # minutes; before its `for:` has passed


BROKEN = [
    Case("a process that is gone", {series("up"): steady(0)}, "FusionDown", 4, 1),
    Case("a server that does not become ready", {series("fusion_ready"): steady(0)}, "FusionNotReady", 4, 1),
    Case("2 % of the calls end INTERNAL", {series("grpc_server_handled_total", grpc_code="INTERNAL"): grows(12)},
         "FusionServerFaults", 12, 3),
    Case("a tenth of the calls finds the queue full", {series("fusion_admission_rejected_total", reason="calls"): grows(60)},
         "FusionCallsRejected", 12, 3),
    Case("a tenant's quota refuses a tenth of the calls", {series("fusion_admission_rejected_total", reason="rate"): grows(60)},
         "FusionCallsRejected", 12, 3),
    Case("imports take longer than 0.3 s", stage_slow("import"), "FusionStageSlow", 20, 8),
    Case("plannings take longer than 5 s", stage_slow("plan"), "FusionStageSlow", 20, 8),
    Case("writes take longer than 1 s", stage_slow("publish"), "FusionStageSlow", 20, 8),
    Case("warm requests fall from 90 % to 30 %", {WARM: "0+540x100 54000+180x100", COLD: "0+60x100 6000+420x100"},
         "FusionWarmShareFell", 130, 95),
    Case("a certificate for 13 days", {EXPIRES: steady(13 * 86400)}, "FusionCertificateExpires", 65, 55),
    Case("reports that are all refused", {REPORTS: steady(0)}, "FusionNoMeasurements", 70, 55),
    Case("a full disk", {series("fusion_store_writable", tier="disk"): steady(0)}, "FusionStoreNotWritable", 3, 0),
    Case("a disk that loses 1 GB a minute", {FREE: "120000000000-1000000000x100"}, "FusionStoreFillsUp", 45, 20),
    Case("a store that was put aside", {series("fusion_store_started_empty"): steady(1)}, "FusionStoreSetAside", 3, 0),
    Case("one damaged entry", {series("fusion_cache_dropped_total", tier="disk"): f"0x10 1x{MINUTES}"}, "FusionStoreDamaged", 15, 9),
    Case("a compile queue at 85 %", {DEPTH: steady(3500)}, "FusionCompileQueueFull", 4, 1),
    Case("a tenth of the compiles crash", {compiles("crash"): grows(4)}, "FusionCompilesDie", 15, 3),
    Case("a tenth of the compiles run out of memory", {compiles("oom"): grows(4)}, "FusionCompilesDie", 15, 3),
    Case("compiles take longer than 30 s", above("fusion_compile_seconds", COMPILE_BOUNDS, stage="compile"),
         "FusionCompileSlow", 25, 8),
    Case("a device that is slower than expected", {RATIO: steady(1.7)}, "FusionEstimatesOff", 75, 50),
    Case("a device that is faster than expected", {RATIO: steady(0.5)}, "FusionEstimatesOff", 75, 50),
    Case("a drift", {DRIFTS: "0x20 1x" + str(MINUTES - 21)}, "FusionDrift", 40, 22),
    Case("a kernel in quarantine", {series("fusion_quarantined_kernels"): steady(1)}, "FusionKernelsQuarantined", 8, 3),
    Case("a worker that dies each minute", {RESTARTS: grows(3)}, "FusionWorkersRestart", 25, 4),
]

QUIET = [
    Case("a healthy server", {}, quiet_at=130),
    Case("a server without traffic", {key: None if "grpc_server" in key else steady(0) for key, value in HEALTHY.items()
                                      if value.startswith("0+")}, quiet_at=130),
    Case("a server without store, TLS and calls so far",
         {key: None for key in HEALTHY if key.startswith(("fusion_store_", "fusion_tls_", "grpc_")) and "memory" not in key}, quiet_at=70),
    Case("a drain of a minute", {series("fusion_ready"): f"1x10 0 1x{MINUTES}"}, quiet_at=13),
    Case("a full disk for half a minute", {series("fusion_store_writable", tier="disk"): f"1x10 0 1x{MINUTES}"}, quiet_at=12),
    Case("a compile queue at 78 %", {DEPTH: steady(3200)}, quiet_at=30),
    Case("a certificate for 15 days", {EXPIRES: steady(15 * 86400)}, quiet_at=70),
    Case("a disk that will be full in 30 hours", {FREE: "180000000000-100000000x150"}, quiet_at=70),
    Case("two crashes among four compiles", {compiles("ok"): f"0x10 2x{MINUTES}", compiles("crash"): f"0x10 2x{MINUTES}"}, quiet_at=20),
    Case("workers that end with cancelled jobs", {RESTARTS: grows(20), compiles("cancelled"): grows(20)}, quiet_at=40),
    Case("a slow import among few requests",
         {**stage_slow("import"), **{series(f"fusion_stage_seconds_{part}", stage="import", **more): f"0+1x{MINUTES}" for part, more in
                                     (("count", {}), ("bucket", {"le": "1"}), ("bucket", {"le": "+Inf"}))}}, quiet_at=60),
    Case("fewer warm requests, but hardly any requests", {WARM: "0+540x100 54000+0x100", COLD: "0+60x100 6000+1x100"}, quiet_at=140),
]
