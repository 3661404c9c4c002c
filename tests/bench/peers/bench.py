"""A case of cases.py beside its peers, in turn, in one run. Standard library only."""

import dataclasses
import pathlib

import beside
import cases
import contender

SMALL_US = 5000  # a peer that takes less is timed without what a call of it costs by itself
# f32 summed in another order is within 1e-5 of the largest value; products rounded to bf16 or tf32 are not.
AGREES = 1e-4


@dataclasses.dataclass
class Result:
    """`sides`: "ours" and each side of a peer -> median_us, p10_us, p90_us, runs; of a peer also taken_off_us, and how many
    times faster ours is, without that: ratio with its 95 % interval low .. high."""

    case: str
    threads: int
    sides: dict
    failed: dict  # side -> reason
    best: str  # side of a peer
    roof_us: float  # what this machine needs at least; 0 where nobody has said what the case needs

    ours_us = property(lambda self: self.sides["ours"]["median_us"])
    peer_us = property(lambda self: self.sides[self.best]["median_us"])
    speed = property(lambda self: self.sides[self.best]["ratio"])
    low = property(lambda self: self.sides[self.best]["low"])
    high = property(lambda self: self.sides[self.best]["high"])


class Agreement:
    """Whether a side computes what onnxruntime does of the same file, whose outputs are kept in `work`."""

    def __init__(self, work, files):
        self.work, self.files, self.outputs = work, files, {}

    def check(self, name, side):
        """RuntimeError where it does not: what computes something else is no peer. Ours is checked beside the evaluator."""
        if name == "ours":
            return
        path = self.files[name]
        if name.startswith("onnxruntime"):
            if path not in self.outputs:
                self.outputs[path] = self.work / f"outputs-{len(self.outputs)}.npz"
                side.ask(f"outputs {self.outputs[path]}")
            return
        if path not in self.outputs:
            raise RuntimeError(f"{name}: onnxruntime has no outputs to compare with")
        distance = side.ask(f"compare {self.outputs[path]}")
        if not distance <= AGREES:
            raise RuntimeError(f"{name}: outputs are {distance:.1e} from those of onnxruntime")


class Bench:
    """`others`: those of contender.OTHERS that take part. `prepare_s`: seconds that a side has to load and compile a model."""

    def __init__(self, work, server, python, seconds, others, prepare_s=contender.LIMIT_S):
        self.work, self.server, self.python, self.seconds = pathlib.Path(work), server, python, seconds
        self.others, self.prepare_s = others, prepare_s
        self.limits, self.overhead_us = {}, {}

    def limits_of(self, threads):
        if threads not in self.limits:
            self.limits[threads] = cases.Limits(threads)
        return self.limits[threads]

    def call_overhead_us(self, side, threads):
        """What a call of a peer costs by itself; `side`: "onnxruntime SETTING" or another peer."""
        peer = side.split()[0]
        if (peer, threads) not in self.overhead_us:
            make = ((lambda model: contender.onnxruntime(self.python, model, threads)) if peer == "onnxruntime" else
                    (lambda model: contender.other(peer, model, threads)))
            self.overhead_us[peer, threads] = beside.call_overhead_us(self.work, make)
        return self.overhead_us[peer, threads]

    def sides(self, case, model, files, threads, arguments):
        """({side: what makes its Contender}, {side of a peer: the file that it runs})"""
        make, ran = {"ours": lambda: contender.ours(self.server, model, threads, *arguments)}, {}

        def add(side, path, maker, *words):
            ran[side] = path
            make[side] = lambda: maker(*words)

        for side, (path, setting) in files.items():
            add(side, path, contender.onnxruntime, self.python, path, threads, setting)
        for name in self.others if case.others else []:
            add(name, model, contender.other, name, model, threads)
            for form in case.forms:
                if form in cases.OPSET_23 and contender.OTHERS[name].reads_forms:
                    path = files[f"onnxruntime {form}"][0]
                    add(f"{name} {form}", path, contender.other, name, path, threads)
        return make, ran

    def measure(self, case, threads, *arguments):
        """A Result; RuntimeError says why there is none. `arguments`: further words of our side's run_bursts."""
        model, files = case.files(self.work, self.python)
        make, ran = self.sides(case, model, files, threads, arguments)
        agreement = Agreement(self.work, ran)
        bursts, failed = beside.bursts_in_turn(make, self.seconds, self.prepare_s, agreement.check)
        for path in {model, *ran.values(), *agreement.outputs.values()}:
            path.unlink(missing_ok=True)
        if "ours" in failed:
            raise RuntimeError(failed["ours"])
        sides = {"ours": beside.summary(bursts["ours"])}
        for name in [name for name in bursts if name != "ours"]:
            side = beside.summary(bursts[name])
            try:
                off_us = self.call_overhead_us(name, threads) if side["median_us"] < SMALL_US else 0.0
            except RuntimeError as error:
                failed[name] = str(error)
                continue
            ratio, low, high = beside.ratio(bursts[name], bursts["ours"], off_us)
            sides[name] = {**side, "taken_off_us": off_us, "ratio": ratio, "low": low, "high": high}
        best = min((name for name in sides if name != "ours"), key=lambda name: sides[name]["ratio"], default=None)
        if best is None:
            raise RuntimeError("no peer runs it: " + "; ".join(failed.values())[-200:])
        roof_us = 1e6 * case.roof_s(self.limits_of(threads)) if case.flops or case.reads else 0.0
        return Result(case.name, threads, sides, failed, best, roof_us)
