"""A headless Chromium under the DevTools protocol, over its debugging pipe: no driver, no port, standard library only.

The pipe carries JSON messages, each ended by a NUL byte: commands go in on descriptor 3, answers and events come out on 4.
"""

import json
import os
import select
import shutil
import subprocess
import time

NAMES = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--remote-debugging-pipe",
)


def find_chromium():
    """Path of a Chromium, or ``None``."""
    return next((path for path in map(shutil.which, NAMES) if path), None)


class Browser:
    """One browser with one page. Collects console messages, exceptions and requests; ``with`` ends it."""

    def __init__(self, executable, profile, timeout_s=60.0):
        self.timeout_s = timeout_s
        self.messages, self.requests = [], []
        self._buffer, self._next_id = b"", 0
        command_read, self._write = os.pipe()
        self._read, answer_write = os.pipe()

        def pass_pipes():
            # Copies first: either pipe may already lie on descriptor 3 or 4.
            commands, answers = os.dup(command_read), os.dup(answer_write)
            os.dup2(commands, 3)
            os.dup2(answers, 4)

        self._process = subprocess.Popen(
            [executable, *_FLAGS, f"--user-data-dir={profile}", "about:blank"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            preexec_fn=pass_pipes,
            pass_fds=(command_read, answer_write, 3, 4),
        )
        os.close(command_read)
        os.close(answer_write)
        target = self.call("Target.getTargets")["targetInfos"]
        page = next(info["targetId"] for info in target if info["type"] == "page")
        self._session = None
        self._session = self.call("Target.attachToTarget", targetId=page, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._process.kill()
        self._process.wait()
        os.close(self._write)
        os.close(self._read)

    def call(self, method, **params):
        """Sends a command and returns its result."""
        self._next_id += 1
        message = {"id": self._next_id, "method": method, "params": params}
        if getattr(self, "_session", None):
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == message["id"]:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self._on_event(answer)

    def open(self, path, width=1280, height=900, dark=False):
        """Opens a file and waits until the page says that it is ready."""
        self.resize(width, height)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url=path.resolve().as_uri())
        self.wait_for("document.documentElement?.dataset.ready === 'true'")

    def resize(self, width, height):
        """Sets the size of the window, CSS pixels."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def evaluate(self, expression):
        """Value of a JavaScript expression."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def wait_for(self, condition):
        """Returns once the JavaScript ``condition`` holds; fails with what the console said when it never does."""
        deadline = time.monotonic() + self.timeout_s
        while not self.evaluate(condition):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{condition} did not become true; the console said {self.messages}")
            time.sleep(0.05)

    def mouse(self, kind, x, y, clicks=1):
        """A mouse event of ``kind`` (``mousePressed``, ``mouseMoved``, ``mouseReleased``) at page coordinates."""
        button = "none" if kind == "mouseMoved" else "left"
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button, buttons=1, clickCount=clicks)

    def _receive(self):
        deadline = time.monotonic() + self.timeout_s
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._read], [], [], max(0.0, deadline - time.monotonic()))
            chunk = os.read(self._read, 1 << 20) if ready else b""
            if not chunk:
                raise TimeoutError(f"Chromium did not answer (exit status {self._process.poll()})")
            self._buffer += chunk
        message, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(message)

    def _on_event(self, event):
        params = event.get("params", {})
        match event.get("method"):
            case "Runtime.consoleAPICalled":
                self.messages.append((params["type"], [arg.get("value") for arg in params["args"]]))
            case "Runtime.exceptionThrown":
                self.messages.append(("exception", params["exceptionDetails"]))
            case "Log.entryAdded":
                self.messages.append((params["entry"]["level"], params["entry"]["text"]))
            case "Network.requestWillBeSent":
                self.requests.append(params["request"]["url"])
            case "Page.javascriptDialogOpening":
                self.messages.append(("dialog", params["message"]))
                self.call("Page.handleJavaScriptDialog", accept=True)
