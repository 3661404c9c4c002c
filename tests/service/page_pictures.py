#!/usr/bin/env python3
"""Pictures of every page of the admin port in headless Chromium, at 1280 and 390 px, light and dark.

    tests/service/page_pictures.py build/release/bin --out DIR

It starts a fusiond, plans models and reports their latencies, and writes DIR/PAGE-WIDTH-SCHEME.png for people to look at. It also
measures what only a browser knows: that no page is wider than the screen, that text has contrast (WCAG 2.2 AA, from the colours
that are really used), that what can be clicked is at least 24 px high (inline links in text aside), and that nothing is reported
to the console. Prints one line a page and exits with 1 if a page fails; with 77 if Chromium is not installed.
"""
import argparse
import base64
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

MODELS = [["bert_layer"], ["mlp"], ["mha"]]
WIDTHS = (1280, 390)
SCHEMES = ("light", "dark")
NO_BROWSER = 77

# In the page: what is wrong with it, as a list of sentences.
CHECK = r"""
(() => {
  const wrong = [];
  const width = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth > width + 1)
    wrong.push(`wider than the screen: ${document.documentElement.scrollWidth} px of ${width}`);
  const parse = (text) => (text.match(/[\d.]+/g) || []).map(Number);
  const luminance = ([r, g, b]) => [r, g, b].map((c) => c / 255)
      .map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
      .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const backOf = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = parse(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] > 0) return colour;
    }
    return [255, 255, 255];
  };
  const seen = new Set();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || element.closest('.skip')) continue;
    const front = parse(getComputedStyle(element).color), back = backOf(element);
    const [a, b] = [luminance(front), luminance(back)];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    const key = front + '/' + back;
    if (contrast < 4.5 && !seen.has(key)) {
      seen.add(key);
      wrong.push(`contrast ${contrast.toFixed(2)} of "${walker.currentNode.data.trim().slice(0, 30)}"`);
    }
  }
  for (const link of document.querySelectorAll('nav a')) {
    const box = link.getBoundingClientRect();
    if (box.height < 24) wrong.push(`a link of ${box.height} px: ${link.textContent}`);
  }
  for (const image of document.images)
    if (!image.complete || image.naturalWidth === 0) wrong.push(`a picture that is not there: ${image.src}`);
  return wrong;
})()
"""


class Browser:
    """Chromium, spoken to over a pipe (the DevTools protocol)."""

    def __init__(self, program, profile):
        to_browser, self.out = os.pipe()
        self.inp, from_browser = os.pipe()

        def descriptors():  # the protocol wants 3 and 4
            os.dup2(to_browser, 100), os.dup2(from_browser, 101)
            os.dup2(100, 3), os.dup2(101, 4)

        self.process = subprocess.Popen(
            [program, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe",
             "--no-first-run", "--disable-dev-shm-usage", f"--user-data-dir={profile}", "about:blank"],
            preexec_fn=descriptors, close_fds=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        os.close(to_browser), os.close(from_browser)
        self.rest, self.number, self.events = b"", 0, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Log", "Runtime"):
            self.page(f"{domain}.enable")

    def read(self):
        while b"\0" not in self.rest:
            part = os.read(self.inp, 1 << 20)
            if not part:
                raise RuntimeError("Chromium has ended")
            self.rest += part
        message, self.rest = self.rest.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, session=None, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if session:
            message["sessionId"] = session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.read()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def page(self, method, **params):
        return self.call(method, self.session, **params)

    def open(self, url, width, scheme):
        self.page("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600)
        self.page("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.events.clear()
        self.page("Page.navigate", url=url)
        end = time.time() + 30
        while time.time() < end:
            ready = self.evaluate("document.readyState === 'complete' && location.href !== 'about:blank'")
            if ready:
                break
            time.sleep(0.05)
        # Pictures that are loaded when they come into view.
        self.evaluate("for (const image of document.images) image.loading = 'eager'")
        while time.time() < end and not self.evaluate("[...document.images].every((image) => image.complete)"):
            time.sleep(0.1)

    def evaluate(self, expression):
        return self.page("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")

    def picture(self, path, most):
        data = self.page("Page.captureScreenshot", format="png", captureBeyondViewport=True,
                         clip={"x": 0, "y": 0, "scale": 1, "width": self.evaluate("document.documentElement.clientWidth"),
                               "height": min(self.evaluate("document.documentElement.scrollHeight"), most)})["data"]
        path.write_bytes(base64.b64decode(data))

    def complaints(self):
        entries = [event["params"]["entry"] for event in self.events if event.get("method") == "Log.entryAdded"]
        return [f"{entry['text']} {entry.get('url', '')}" for entry in entries]

    def end(self):
        self.process.kill()
        self.process.wait()


def start_server(bin_dir, work):
    server = subprocess.Popen([bin_dir / "fusiond", "--listen", f"unix:{work}/socket", "--admin", "127.0.0.1:0", "--store",
                               work / "store"], stderr=subprocess.PIPE, text=True)
    for line in server.stderr:
        entry = json.loads(line)
        if entry.get("event") == "listening":
            return server, f"http://{entry['admin']}"
    raise SystemExit(f"fusiond ended with {server.wait()}")


def fill(bin_dir, work):
    """Plans with latencies, a call that fails."""
    for words in MODELS:
        model = work / f"{words[0]}.onnx"
        made = subprocess.run([bin_dir / "fusion-modelgen", *words, "--out", model], capture_output=True, text=True)
        if made.returncode != 0:
            raise SystemExit(made.stderr)
        for more in ([], ["--fusion", "op-by-op"]):
            subprocess.run([bin_dir / "fusionctl", "bench", model, "--pairs", "5", "--kernels", "--threads", "1", *more, "--server",
                            f"unix:{work}/socket"], check=True, capture_output=True)
    (work / "broken.onnx").write_bytes(b"\x08\x01")
    subprocess.run([bin_dir / "fusionctl", "plan", work / "broken.onnx", "--server", f"unix:{work}/socket"], capture_output=True)


def paths_of(site):
    plans = urllib.request.urlopen(f"{site}/plans").read().decode()
    kernels = urllib.request.urlopen(f"{site}/kernels").read().decode()
    largest = max({part[:64] for part in plans.split('href="/plans/')[1:]},
                  key=lambda key: len(urllib.request.urlopen(f"{site}/plans/{key}").read()))
    kernel = kernels.split('href="/kernels/')[1][:64]
    measured = urllib.request.urlopen(site).read().decode()
    fused = next(key for key in (part[:64] for part in measured.split('href="/plans/')[1:]) if key != largest)
    return {"overview": "/", "plans": "/plans", "plan": f"/plans/{largest}", "fused": f"/plans/{fused}", "kernels": "/kernels", "kernel": f"/kernels/{kernel}",
            "accuracy": "/accuracy", "epochs": "/epochs", "queue": "/queue", "workers": "/workers", "missing": f"/plans/{'0' * 64}"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path, help="directory of the pictures; default: none are kept")
    parser.add_argument("--height", type=int, default=6000, help="most pixels of a picture's height; default: 6000")
    arguments = parser.parse_args()
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        print("chromium is not installed")
        return NO_BROWSER
    bin_dir = arguments.bin.resolve()
    bad = 0
    with tempfile.TemporaryDirectory() as scratch:
        work = pathlib.Path(scratch)
        out = arguments.out or work / "pictures"
        out.mkdir(parents=True, exist_ok=True)
        server, site = start_server(bin_dir, work)
        browser = None
        try:
            fill(bin_dir, work)
            browser = Browser(program, work / "profile")
            for name, path in paths_of(site).items():
                for width in WIDTHS:
                    for scheme in SCHEMES:
                        browser.open(site + path, width, scheme)
                        wrong = browser.evaluate(CHECK)
                        wrong += [text for text in browser.complaints() if not (name == "missing" and "404" in text)
                                  and "favicon" not in text]
                        browser.picture(out / f"{name}-{width}-{scheme}.png", arguments.height)
                        print(f"{'ok ' if not wrong else 'bad'} {name} {width} {scheme}", *wrong, sep="  ")
                        bad += 1 if wrong else 0
        finally:
            if browser is not None:
                browser.end()
            server.terminate()
            server.wait()
    print(f"{bad} bad")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
