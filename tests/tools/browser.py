"""Headless Chromium through its DevTools protocol, over pipes: what the test of the report page needs of it."""

import base64
import json
import os
import pathlib
import select
import shutil
import subprocess
import tempfile
import time

BINARY = shutil.which("chromium")
PATIENCE_SECONDS = 60


class Browser:
    """One page. `errors` are what its console says of errors, and exceptions that nobody caught."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="chromium.")
        read_by_browser, self.to_browser = os.pipe()
        self.from_browser, written_by_browser = os.pipe()

        def use_pipes():
            # The protocol's descriptors are 3 and 4. The copies are beyond those that are copied next.
            reading, writing = os.dup(read_by_browser), os.dup(written_by_browser)
            os.dup2(reading, 3)
            os.dup2(writing, 4)

        words = [BINARY, "--headless=new", "--remote-debugging-pipe", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        words += ["--no-first-run", "--hide-scrollbars", "--force-device-scale-factor=1", f"--user-data-dir={self.folder.name}/profile"]
        # No word to the network: the page needs none.
        words += ["--disable-background-networking", "--host-resolver-rules=MAP * ~NOTFOUND"]
        environment = {**os.environ, "HOME": self.folder.name}
        self.process = subprocess.Popen(
            words, pass_fds=(3, 4), preexec_fn=use_pipes, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment
        )
        os.close(read_by_browser)
        os.close(written_by_browser)
        self.rest = b""
        self.number = 0
        self.session = None
        self.errors = []
        self.loaded = False
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.to_browser)
        os.close(self.from_browser)
        shutil.rmtree(self.folder.name, ignore_errors=True)

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.to_browser, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def receive(self):
        while b"\0" not in self.rest:
            if not select.select([self.from_browser], [], [], PATIENCE_SECONDS)[0]:
                raise TimeoutError("chromium is silent")
            more = os.read(self.from_browser, 1 << 20)
            if not more:
                raise RuntimeError("chromium ended")
            self.rest += more
        line, _, self.rest = self.rest.partition(b"\0")
        message = json.loads(line)
        self.note(message)
        return message

    def note(self, event):
        method, parameters = event.get("method"), event.get("params", {})
        if method == "Page.loadEventFired":
            self.loaded = True
        if method == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.errors.append(details.get("exception", {}).get("description") or details["text"])
        if method == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.errors.append(parameters["entry"]["text"])
        if method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "assert"):
            self.errors.append(str(parameters["args"]))

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def open(self, path):
        """Seconds until the page is loaded and painted."""
        self.loaded = False
        start = time.monotonic()
        self.call("Page.navigate", url=pathlib.Path(path).resolve().as_uri())
        while not self.loaded:
            self.receive()
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        return time.monotonic() - start

    def evaluate(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails'].get('exception', {}).get('description')}")
        return answer["result"].get("value")

    def click(self, element):
        """A real click into the middle of the element that an expression gives."""
        x, y = self.evaluate(
            f"(() => {{ const e = {element}; e.scrollIntoView({{block: 'center', behavior: 'instant'}});"
            " const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key):
        text = {"Enter": "\r", " ": " "}.get(key, key if len(key) == 1 else "")
        code = {"Enter": 13, "Tab": 9, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Escape": 27}.get(key, 0)
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, text=text, windowsVirtualKeyCode=code)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def type(self, text):
        self.call("Input.insertText", text=text)

    def screenshot(self, path):
        pathlib.Path(path).write_bytes(base64.b64decode(self.call("Page.captureScreenshot")["data"]))
