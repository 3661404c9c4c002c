#!/usr/bin/env python3
"""Small requests for large work: each is answered or refused in time, in bounded memory, and nobody else notices.

    tests/acceptance/bombs.py BIN_DIR [--count 200] [--deadline 5] [--at-once 4] [--only KIND] [--keep DIR]

Makes models of a few hundred bytes of every operator that can grow, at sizes 2^10 to 2^30, and has `fusionctl kernels` ask one fusiond
for them, some at a time, each with a deadline. Beside them a neighbour plans a small model again and again. Prints rows; exit code 1 if
one fails:
- each bomb is answered or refused within its deadline + 1 s (the server's clock: when the call is over);
- the server's resident memory stays within its idle level + --max-inflight-bytes;
- two seconds after the last deadline it takes no CPU any more, workers included;
- each of the neighbour's calls succeeds.
"""
import argparse, collections, json, os, pathlib, subprocess, sys, tempfile, threading, time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from onnx_bytes import BOOL, FLOAT, INT64, Graph, Tensor, function, node, tensor  # noqa: E402

INFLIGHT = 256 << 20
FINE = {"", "RESOURCE_EXHAUSTED", "DEADLINE_EXCEEDED", "UNIMPLEMENTED", "INVALID_ARGUMENT", "FAILED_PRECONDITION"}
# Kinds that are refused at size 2^10 already.
SMALL_REFUSED = set()
KINDS = {}


def kind(make):
    KINDS[make.__name__] = make
    return make


def root(n, power=2):
    return max(1, round(n ** (1 / power)))


def filled(g, *dims, value=0.5):
    """A tensor of these extents that takes no bytes."""
    return g.op("ConstantOfShape", g.const(list(dims)), value=Tensor(tensor("", [value], [1], FLOAT)))


def unary(op, **attributes):
    def build(g, n):
        g.output(g.op(op, g.input([n]), **attributes))
    return build


@kind
def cumsum(g, n):
    g.output(g.op("CumSum", g.input([n]), g.const(0, ())))


@kind
def cumsums(g, n):
    x = g.input([max(1, n // 8)])
    for _ in range(8):
        x = g.op("CumSum", x, g.const(0, ()))
    g.output(x)


@kind
def cumsums_along_both(g, n):
    x = g.input([root(n), root(n)])
    g.output(g.op("CumSum", g.op("CumSum", x, g.const(0, ())), g.const(1, ())))


@kind
def constant_scan(g, n):
    g.output(g.op("CumSum", filled(g, n), g.const(0, ())))


@kind
def non_max_suppression(g, n):
    boxes, scores = g.input([1, n, 4]), g.input([1, 4, n])
    g.output(g.op("NonMaxSuppression", boxes, scores, g.const(n), g.const([0.5], kind=FLOAT), g.const([0.0], kind=FLOAT)), kind=INT64)


def loop_body(depth, trips):
    body = Graph()
    i, go = body.input([], INT64), body.input([], BOOL)
    x = body.input([1])
    kept = body.op("Identity", go)
    y = body.op("Sin", x)
    if depth:
        y = body.op("Loop", body.const(trips, ()), kept, y, body=loop_body(depth - 1, trips))
    body.output(kept, [], BOOL)
    body.output(y, [1])
    del i
    return body


@kind
def loop(g, n):
    x = g.input([1])
    g.output(g.op("Loop", g.const(n, ()), g.const(True, (), BOOL), x, body=loop_body(0, n)))


@kind
def nested_loops(g, n):
    trips = root(n, 3)
    x = g.input([1])
    g.output(g.op("Loop", g.const(trips, ()), g.const(True, (), BOOL), x, body=loop_body(2, trips)))


@kind
def loop_of_constants(g, n):
    g.output(g.op("Loop", g.const(n, ()), g.const(True, (), BOOL), g.const([1.0], kind=FLOAT), body=loop_body(0, n)))


@kind
def tile(g, n):
    g.output(g.op("Tile", g.input([1]), g.const([n])))


@kind
def tile_of_tiles(g, n):
    x = g.input([1])
    for _ in range(max(1, n.bit_length() - 1)):
        x = g.op("Tile", x, g.const([2]))
    g.output(x)


@kind
def range_(g, n):
    r = g.op("Range", g.const(0, ()), g.const(n, ()), g.const(1, ()))
    g.output(g.op("Add", g.op("Cast", r, to=FLOAT), g.input([1])))


@kind
def range_alone(g, n):
    g.output(g.op("Range", g.const(0, ()), g.const(n, ()), g.const(1, ())), kind=INT64)


@kind
def constant_of_shape(g, n):
    g.output(g.op("Sin", filled(g, n)))


@kind
def top_k(g, n):
    values, places = g.op("TopK", g.input([n]), g.const([max(1, n // 2)]), outputs=2)
    g.output(values)
    g.output(places, kind=INT64)


@kind
def top_k_of_constants(g, n):
    values, _ = g.op("TopK", filled(g, n), g.const([n]), outputs=2)
    g.output(values)


@kind
def einsum(g, n):
    s = root(n, 2)
    xs = [g.input([s, s]) for _ in range(4)]
    g.output(g.op("Einsum", *xs, equation="ab,bc,cd,de->ae"), ["?", "?"])


@kind
def einsum_of_many_axes(g, n):
    letters = "abcdefghijklmnopqrstuvwxyz"[: max(2, n.bit_length() - 1)]
    x = g.input([2] * len(letters))
    g.output(g.op("Einsum", x, x, equation=f"{letters},{letters[::-1]}->"), [])


@kind
def einsum_of_many_operands(g, n):
    letters = "abcdefghijklmnopqrst"
    g.output(g.op("Einsum", *[g.input([n]) for _ in letters], equation=",".join(letters) + "->"), [])


@kind
def unique(g, n):
    y, first, inverse, counts = g.op("Unique", g.input([n]), outputs=4, sorted=1)
    g.output(y)
    for name in (first, inverse, counts):
        g.output(name, kind=INT64)


@kind
def roi_align(g, n):
    s = root(n)
    x, rois, which = g.input([1, 1, 16, 16]), g.input([1, 4]), g.input([1], INT64)
    g.output(g.op("RoiAlign", x, rois, which, output_height=s, output_width=s, sampling_ratio=max(1, root(n, 4))), ["?"] * 4)


@kind
def nested_ifs(g, n):
    def branch(depth):
        inner = Graph()
        y = inner.op("Sin", "x")
        if depth:
            y = inner.op("If", "c", then_branch=branch(depth - 1), else_branch=branch(0))
        inner.output(y, [4])
        return inner
    g.input([4], name="x")
    g.input([], BOOL, name="c")
    g.output(g.op("If", "c", then_branch=branch(min(n.bit_length(), 40)), else_branch=branch(0)))


@kind
def ifs_that_double(g, n):
    def branch(depth):
        inner = Graph()
        y = inner.op("Sin", "x")
        if depth:
            y = inner.op("If", "c", then_branch=branch(depth - 1), else_branch=branch(depth - 1))
        inner.output(y, [4])
        return inner
    g.input([4], name="x")
    g.input([], BOOL, name="c")
    g.output(g.op("If", "c", then_branch=branch(min(n.bit_length() - 1, 10)), else_branch=branch(0)))


def functions_that_double(levels):
    own = [function("f0", ["a"], ["b"], [node("Sin", ["a"], ["b"])])]
    for level in range(1, levels + 1):
        own.append(function(f"f{level}", ["a"], ["b"], [node(f"f{level - 1}", ["a"], ["m"], "own"), node(f"f{level - 1}", ["m"], ["b"], "own")]))
    return own


@kind
def deep_bodies_of_many_names(g, n):
    names = [f"a_name_that_is_rather_long_{i}" for i in range(min(n, 20000))]

    def branch(depth):
        inner = Graph()
        y = inner.op("Sin", "x")
        if depth:
            y = inner.op("If", "c", then_branch=branch(depth - 1), else_branch=branch(0))
        inner.output(y, [4])
        if depth == 15:
            for name in names:
                inner.constants.append(tensor(name, [1]))
        return inner
    g.input([4], name="x")
    g.input([], BOOL, name="c")
    g.output(g.op("If", "c", then_branch=branch(15), else_branch=branch(0)))


@kind
def functions(g, n):
    levels = n.bit_length() - 1
    g.output(g.op(f"f{levels}", g.input([4]), domain="own"))
    return functions_that_double(levels)


@kind
def wide_concat(g, n):
    x = g.input([4])
    g.output(g.op("Concat", *[x] * min(n, 1 << 16), axis=0))


@kind
def concat_of_concats(g, n):
    x = g.input([4])
    for _ in range(n.bit_length() - 1):
        x = g.op("Concat", x, x, axis=0)
    g.output(x)


@kind
def sums_that_double(g, n):
    x = g.input([4])
    for _ in range(min(n.bit_length() * 20, 600)):
        x = g.op("Mul", g.op("Add", x, x), x)
    g.output(x)


@kind
def expand(g, n):
    g.output(g.op("Expand", g.input([1]), g.const([n])))


@kind
def expand_and_reduce(g, n):
    s = root(n)
    big = g.op("Expand", g.input([1, 1]), g.const([s, s]))
    g.output(g.op("MatMul", big, big), ["?", "?"])


@kind
def resize(g, n):
    g.output(g.op("Resize", g.input([1, 1, 4]), "", "", g.const([1, 1, n]), mode="linear"), ["?"] * 3)


@kind
def resize_cubic(g, n):
    s = root(n)
    g.output(g.op("Resize", g.input([1, 1, 4, 4]), "", "", g.const([1, 1, s, s]), mode="cubic", antialias=1), ["?"] * 4)


@kind
def resize_down(g, n):
    """Each element of the result is a sum of all elements: a table of as many weights."""
    g.output(g.op("Resize", g.input([1, 1, n]), "", "", g.const([1, 1, 1]), mode="linear", antialias=1), ["?"] * 3)


@kind
def resize_down_cubic(g, n):
    g.output(g.op("Resize", g.input([1, 1, n]), "", "", g.const([1, 1, 2]), mode="cubic", antialias=1), ["?"] * 3)


@kind
def upsample(g, n):
    g.opset = 9
    s = float(root(n))
    g.output(g.op("Upsample", g.input([1, 1, 4, 4]), g.const([1.0, 1.0, s, s], kind=FLOAT), mode="linear"), ["?"] * 4)


@kind
def attention(g, n):
    g.opset = 23
    g.output(g.op("Attention", *[g.input([1, 1, n, 8]) for _ in range(3)], is_causal=1), ["?"] * 4)


@kind
def attention_of_constants(g, n):
    g.opset = 23
    g.output(g.op("Attention", *[filled(g, 1, 1, n, 8) for _ in range(3)]), ["?"] * 4)


@kind
def col2im(g, n):
    s = root(n)
    g.output(g.op("Col2Im", g.input([1, s * s, 1]), g.const([s, s]), g.const([s, s])), ["?"] * 4)


@kind
def term_counts(g, n):
    g.output(g.op("TfIdfVectorizer", g.input([8], INT64), max_gram_length=1, min_gram_length=1, max_skip_count=0, mode="TF",
                  ngram_counts=[0], ngram_indexes=[n, 0], pool_int64s=[0, 1]), ["?"])


@kind
def pad(g, n):
    g.output(g.op("Pad", g.input([4]), g.const([n, n]), mode="reflect" if n < 8 else "constant"))


@kind
def conv_of_a_long_kernel(g, n):
    g.output(g.op("Conv", g.input([1, 1, 16]), filled(g, 1, 1, n), pads=[n, n]), ["?"] * 3)


@kind
def conv_of_many_dims(g, n):
    dims = max(1, min(20, n.bit_length() - 4))
    g.output(g.op("Conv", g.input([1, 1] + [2] * dims), filled(g, 1, 1, *[2] * dims)), ["?"] * (dims + 2))


@kind
def conv_transpose(g, n):
    g.output(g.op("ConvTranspose", g.input([1, 1, 4]), g.input([1, 1, 3]), strides=[n]), ["?"] * 3)


@kind
def max_pool(g, n):
    g.output(g.op("MaxPool", g.input([1, 1, 2 * n]), kernel_shape=[n]), ["?"] * 3)


@kind
def dft(g, n):
    g.output(g.op("DFT", g.input([1, n, 1])), ["?"] * 3)


@kind
def stft(g, n):
    frame = max(4, root(n))
    g.output(g.op("STFT", g.input([1, n, 1]), g.const(max(1, frame // 4), ()), g.op("HannWindow", g.const(frame, ()))), ["?"] * 4)


@kind
def window(g, n):
    g.output(g.op("BlackmanWindow", g.const(n, ())))


@kind
def mel_weights(g, n):
    g.output(g.op("MelWeightMatrix", g.const(root(n), ()), g.const(n, ()), g.const(8000, ()), g.const([0.0], (), FLOAT),
                  g.const([4000.0], (), FLOAT)), ["?"] * 2)


@kind
def folded_products(g, n):
    s = root(n)
    x = filled(g, s, s)
    for _ in range(4):
        x = g.op("MatMul", x, x)
    g.output(x, ["?", "?"])


@kind
def scan_of_steps(g, n):
    body = Graph()
    state, element = body.input([1]), body.input([1])
    total = body.op("Add", state, element)
    body.output(body.op("Identity", total), [1])
    body.output(total, [1])
    last, steps = g.op("Scan", g.input([1]), g.input([n, 1]), outputs=2, body=body, num_scan_inputs=1)
    g.output(last)
    g.output(steps, ["?", "?"])


@kind
def lstm(g, n):
    h = 4
    y, last, cell = g.op("LSTM", g.input([n, 1, 2]), filled(g, 1, 4 * h, 2), filled(g, 1, 4 * h, h), outputs=3, hidden_size=h)
    for name, rank in ((y, 4), (last, 3), (cell, 3)):
        g.output(name, ["?"] * rank)


@kind
def one_hot(g, n):
    g.output(g.op("OneHot", g.input([4], INT64), g.const(n, ()), g.const([0.0, 1.0], kind=FLOAT)), ["?"] * 2)


@kind
def eye_like(g, n):
    g.output(g.op("EyeLike", filled(g, root(n), root(n))), ["?"] * 2)


@kind
def determinant(g, n):
    g.output(g.op("Det", g.input([root(n), root(n)])), [])


@kind
def split(g, n):
    parts = min(n, 1 << 13)
    for name in g.op("Split", g.input([parts]), outputs=parts, num_outputs=parts, axis=0):
        g.output(name)


@kind
def chain(g, n):
    x = g.input([4])
    for _ in range(min(n, 1 << 13)):
        x = g.op("Sin", x)
    g.output(x)


@kind
def tree(g, n):
    xs = [g.input([4]) for _ in range(8)]
    for i in range(min(n, 1 << 12)):
        xs.append(g.op("Add", xs[-1], xs[-1 - (i * 7) % 8]))
    g.output(xs[-1])


@kind
def grid_sample(g, n):
    s = root(n)
    g.output(g.op("GridSample", g.input([1, 1, 4, 4]), g.input([1, s, s, 2])), ["?"] * 4)


@kind
def chosen_elements(g, n):
    g.output(g.op("NonZero", g.op("Greater", g.op("Range", g.const(0, ()), g.const(n, ()), g.const(1, ())), g.input([1], INT64))),
             ["?"] * 2, INT64)


@kind
def gather_of_constants(g, n):
    table = g.op("Range", g.const(0, ()), g.const(n, ()), g.const(1, ()))
    g.output(g.op("Gather", table, g.input([4], INT64)), kind=INT64)


@kind
def scatter(g, n):
    g.output(g.op("ScatterElements", filled(g, n), g.input([4], INT64), g.input([4]), reduction="add"))


@kind
def reshapes(g, n):
    x = filled(g, n)
    for _ in range(20):
        x = g.op("Reshape", g.op("Transpose", g.op("Reshape", x, g.const([2, -1])), perm=[1, 0]), g.const([-1]))
    g.output(x)


@kind
def trilu(g, n):
    g.output(g.op("Trilu", filled(g, root(n), root(n)), upper=0), ["?"] * 2)


@kind
def many_axes(g, n):
    axes = max(1, n.bit_length() - 1)
    x = g.input([2] * axes)
    g.output(g.op("Transpose", g.op("Softmax", x, axis=0), perm=list(range(axes))[::-1]), ["?"] * axes)


def models(count):
    """(name, bytes): every kind at every size, sizes in turn."""
    sizes = [10, 15, 20, 25, 30]
    cases = [(name, size) for size in sizes for name in KINDS]
    if count < len(cases):
        step = len(cases) / count
        cases = [cases[int(i * step)] for i in range(count)]
    extra = 0
    while len(cases) < count:  # sizes between
        name = list(KINDS)[extra % len(KINDS)]
        cases.append((name, 11 + (extra * 7) % 19))
        extra += 1
    for name, size in cases:
        g = Graph(name)
        own = KINDS[name](g, 1 << size) or ()
        yield f"{name}_2^{size}", g.model(own, opset=g.opset)


class Server:
    def __init__(self, bin_dir, work):
        self.address = f"unix:{work}/s"
        self.process = subprocess.Popen([bin_dir / "fusiond", "--listen", self.address, "--admin", "127.0.0.1:0",
                                         "--max-inflight-bytes", str(INFLIGHT), "--drain-seconds", "0", "--log-usual", "0"],
                                        stdout=open(work / "out", "w"), stderr=open(work / "log", "w"))
        self.most = 0
        self.stop = False

    def resident(self):
        for line in pathlib.Path(f"/proc/{self.process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS"):
                return int(line.split()[1]) * 1024
        return 0

    def watch(self):
        while not self.stop and self.process.poll() is None:
            try:
                self.most = max(self.most, self.resident())
            except OSError:
                return
            time.sleep(0.02)

    def cpu(self):
        """Seconds of the server and of all that it started and that lives."""
        ticks, children = {}, collections.defaultdict(list)
        for entry in pathlib.Path("/proc").iterdir():
            if not entry.name.isdigit():
                continue
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except OSError:
                continue
            ticks[int(entry.name)] = sum(int(f) for f in fields[11:15])
            children[int(fields[1])].append(int(entry.name))
        total, pids = 0, [self.process.pid]
        while pids:
            pid = pids.pop()
            total += ticks.get(pid, 0)
            pids += children[pid]
        return total / os.sysconf("SC_CLK_TCK")


def ask(bin_dir, server, model, deadline):
    begin = time.monotonic()
    try:
        done = subprocess.run([bin_dir / "fusionctl", "kernels", model, "--server", server, "--json", "--quiet", "--deadline", str(deadline)],
                              capture_output=True, text=True, timeout=deadline + 30)
        code, error = done.returncode, done.stderr.strip().splitlines()
        status = "" if code == 0 else json.loads(done.stdout)["error"]["code"] if done.stdout.strip() else "no answer"
    except subprocess.TimeoutExpired:
        code, status, error = -1, "no answer", ["no answer 30 s after the deadline"]
    return {"seconds": time.monotonic() - begin, "code": code, "status": status, "error": error[-1] if error else ""}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("bin_dir", type=pathlib.Path)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--deadline", type=float, default=5)
    parser.add_argument("--at-once", type=int, default=4)
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", type=pathlib.Path)
    parser.add_argument("--verbose", action="store_true")
    a = parser.parse_args()
    scratch = tempfile.TemporaryDirectory(prefix="fusion-bombs.")
    work = pathlib.Path(scratch.name)
    folder = a.keep or work
    folder.mkdir(exist_ok=True)
    waiting = []
    for number, (name, data) in enumerate(models(a.count)):
        if a.only and not name.startswith(a.only):
            continue
        path = folder / f"{number:03}_{name.replace('^', '')}.onnx"
        path.write_bytes(data)
        waiting.append((name, path))
    small = Graph("neighbour")
    small.output(small.op("Sin", small.input([64])))
    neighbour_model = folder / "neighbour.onnx"
    neighbour_model.write_bytes(small.model())
    server = Server(a.bin_dir, work)
    bad = False

    def row(name, ok, figure, bar):
        nonlocal bad
        bad |= not ok
        print(f"{'PASS' if ok else 'FAIL':<10} {name:<58} {figure:<66} {bar}", flush=True)

    try:
        first = ask(a.bin_dir, server.address, neighbour_model, 30)
        for _ in range(100):
            if first["code"] == 0:
                break
            time.sleep(0.1)
            first = ask(a.bin_dir, server.address, neighbour_model, 30)
        time.sleep(1)
        idle = server.resident()
        threading.Thread(target=server.watch, daemon=True).start()
        results, lock, over = [], threading.Lock(), threading.Event()
        neighbours = []

        def neighbour():
            while not over.is_set():
                neighbours.append(ask(a.bin_dir, server.address, neighbour_model, 10))
                time.sleep(0.2)

        def worker():
            while True:
                with lock:
                    if not waiting:
                        return
                    name, path = waiting.pop(0)
                result = ask(a.bin_dir, server.address, path, a.deadline)
                result["name"], result["bytes"] = name, path.stat().st_size
                with lock:
                    results.append(result)
                    if a.verbose:
                        print(f"  {result['seconds']:6.2f} s  {result['code']}  {name:32} {server.most >> 20} MiB  {result['error'][:200]}", flush=True)

        beside = threading.Thread(target=neighbour)
        beside.start()
        workers = [threading.Thread(target=worker) for _ in range(a.at_once)]
        for w in workers:
            w.start()
        for w in workers:
            w.join()
        over.set()
        beside.join()
        alive = server.process.poll() is None
        time.sleep(2)
        before = server.cpu()
        time.sleep(1)
        busy = server.cpu() - before
        server.stop = True
        late = [r for r in results if r["seconds"] > a.deadline + 1 or r["code"] < 0]
        codes = collections.Counter("answered" if r["code"] == 0 else "refused" for r in results)
        unknown = [r for r in results if r["status"] not in FINE]
        # The small ones are ordinary models: all but these are planned, if the machine has the time.
        small = [r for r in results if r["name"].endswith("2^10")]
        refused = [r for r in small if r["status"] not in ("", "DEADLINE_EXCEEDED") and r["name"].split("_2^")[0] not in SMALL_REFUSED]
        slowest = max(results, key=lambda r: r["seconds"])
        row("bombs: the server is still there", alive, f"{len(results)} bombs, {dict(codes)}", "lives")
        row("bombs: answered or refused in time", not late, f"{len(late)} late; slowest {slowest['seconds']:.1f} s ({slowest['name']})"
            + "".join(f" {r['name']}" for r in late[:3]), f"<= {a.deadline:g} + 1 s")
        row("bombs: what they are told", not unknown, f"{len(unknown)} others" + "".join(f" {r['name']}: {r['status']} {r['error'][:160]}" for r in unknown[:3]),
            "answered, or a limit is named")
        row("bombs: those of size 2^10 are planned", not refused, f"{len(refused)} of {len(small)} refused"
            + "".join(f" {r['name']}: {r['error'][:60]}" for r in refused[:3]), "none is refused")
        row("bombs: resident memory", server.most - idle <= INFLIGHT, f"{server.most - idle >> 20} MiB above {idle >> 20} MiB",
            f"<= {INFLIGHT >> 20} MiB above idle")
        row("bombs: CPU 2 s after the last", busy <= 0.05, f"{busy:.2f} s a second", "<= 0.05")
        failed = [r for r in neighbours if r["code"] != 0]
        row("bombs: a neighbour's calls", not failed and neighbours, f"{len(failed)} of {len(neighbours)} failed" + (f": {failed[0]['error'][:80]}" if failed else ""), "none fails")
    finally:
        server.stop = True
        server.process.terminate()
        try:
            server.process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            server.process.kill()
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
