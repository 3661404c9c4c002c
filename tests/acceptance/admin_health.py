#!/usr/bin/env python3
"""How fast the admin port answers /healthz beside slow connections.

    tests/acceptance/admin_health.py BIN_DIR [--slow 300] [--calls 1000] [--from-others]

Starts a fusiond and a process that holds `--slow` connections to its admin port: a third says nothing, a third sends a byte of a
request now and then, a third asks for /metrics and reads nothing; one that the server closes is opened again. Beside it /healthz is
asked for `--calls` times, one connection each, as probes do. `--from-others`: the slow ones come from 127.0.0.2 and on, one address for
each 32 of them. Prints JSON: p50_ms, p99_ms, max_ms, failed, and what the server counted.
"""
import argparse, json, pathlib, selectors, socket, subprocess, sys, tempfile, time


def hold(host, port, count, from_others):
    """Never returns."""
    selector = selectors.DefaultSelector()
    kinds = {}

    def open_one(number):
        slow = socket.socket()
        slow.setblocking(False)
        if from_others:
            slow.bind((f"127.0.0.{2 + number // 32}", 0))
        slow.connect_ex((host, port))
        kinds[slow] = number
        selector.register(slow, selectors.EVENT_READ)
        return slow

    for number in range(count):
        open_one(number)
    print("holding", flush=True)
    asked = set()
    while True:
        for key, _ in selector.select(timeout=0.05):
            slow = key.fileobj
            if kinds[slow] % 3 == 2 and slow in asked:
                selector.unregister(slow)  # there is an answer, and nobody reads it
                continue
            try:
                gone = slow.recv(1) == b""
            except OSError:
                gone = True
            if gone:
                selector.unregister(slow)
                slow.close()
                asked.discard(slow)
                open_one(kinds.pop(slow))
        for slow, number in list(kinds.items()):
            try:
                if number % 3 == 1:
                    slow.send(b"G" if slow not in asked else b"E")
                    asked.add(slow)
                elif number % 3 == 2 and slow not in asked:
                    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
                    slow.send(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    asked.add(slow)
                elif number % 3 == 2:
                    # Whether the server has given up on it.
                    slow.send(b"x")
            except BlockingIOError:
                pass
            except OSError:
                if slow in selector.get_map():
                    selector.unregister(slow)
                slow.close()
                asked.discard(slow)
                open_one(kinds.pop(slow))


def get(host, port, path):
    with socket.create_connection((host, port), timeout=30) as caller:
        caller.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        answer = b""
        while part := caller.recv(65536):
            answer += part
    return answer


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin_dir", type=pathlib.Path)
    parser.add_argument("--slow", type=int, default=300)
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--from-others", action="store_true")
    parser.add_argument("--hold", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.hold:
        host, port = args.hold.rsplit(":", 1)
        hold(host, int(port), args.slow, args.from_others)
    with tempfile.TemporaryDirectory(prefix="fusion-admin.") as work:
        log = f"{work}/log"
        daemon = subprocess.Popen(
            [args.bin_dir / "fusiond", "--listen", f"unix:{work}/s", "--admin", "127.0.0.1:0", "--drain-seconds", "0", "--exit-with-parent"],
            stderr=open(log, "w"))
        holder = None
        try:
            listening = None
            while listening is None:
                time.sleep(0.05)
                if daemon.poll() is not None:
                    sys.exit(f"fusiond did not start: {open(log).read()}")
                lines = [line for line in open(log) if '"event":"listening"' in line]
                listening = json.loads(lines[0]) if lines else None
            host, port = listening["admin"].rsplit(":", 1)
            port = int(port)
            words = [sys.executable, __file__, str(args.bin_dir), "--hold", f"{host}:{port}", "--slow", str(args.slow)]
            holder = subprocess.Popen(words + (["--from-others"] if args.from_others else []), stdout=subprocess.PIPE)
            holder.stdout.readline()
            time.sleep(1)
            took, failed, errors = [], 0, []
            for _ in range(args.calls):
                begin = time.perf_counter()
                try:
                    good = get(host, port, "/healthz").startswith(b"HTTP/1.1 200")
                except OSError as error:
                    good = False
                    errors.append(str(error))
                took.append(1e3 * (time.perf_counter() - begin))
                failed += not good
                time.sleep(0.002)
            took.sort()
            counted = {}
            holder.kill()
            for line in get(host, port, "/metrics").decode().splitlines():
                if line.startswith("fusion_admin_connections"):
                    name, value = line.rsplit(" ", 1)
                    counted[name] = int(float(value))
            print(json.dumps({
                "slow": args.slow, "calls": args.calls, "failed": failed, "errors": errors[:3], "p50_ms": round(took[len(took) // 2], 3),
                "p99_ms": round(took[int(len(took) * 0.99)], 3), "max_ms": round(took[-1], 3), "server": counted}))
        finally:
            if holder is not None:
                holder.kill()
            daemon.terminate()
            daemon.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())
