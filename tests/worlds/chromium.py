"""A real Chromium without a window, spoken to over its DevTools protocol: just what the tests of a page need."""

import base64
import json
import shutil
import subprocess
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
PATIENCE = 60.0
FLAGS = [
    *("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--hide-scrollbars"),
    "--remote-debugging-port=0",
]  # no sandbox, because root, as in a container, may not have one


def program():
    """The browser that is installed, if any."""
    return next((found for name in PROGRAMS if (found := shutil.which(name))), None)


class Chromium:
    """One browser; `page` opens a file in a tab of its own."""

    def __init__(self, command):
        self.folder = Path(tempfile.mkdtemp(prefix="prade-chromium-"))
        given = [command, *FLAGS, f"--user-data-dir={self.folder}", "about:blank"]
        self.process = subprocess.Popen(given, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.pages = []
        try:
            self.address = self._address()
        except BaseException:
            self.close()
            raise

    def _address(self):
        """Where it listens: it writes port and path into a file once it does."""
        known = self.folder / "DevToolsActivePort"
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if self.process.poll() is not None:
                raise RuntimeError(f"Chromium ended with {self.process.returncode} while it was starting")
            lines = known.read_text().splitlines() if known.exists() else []
            if len(lines) == 2:
                return f"ws://127.0.0.1:{lines[0]}{lines[1]}"
            time.sleep(0.05)
        raise RuntimeError(f"Chromium did not listen within {PATIENCE:g} seconds")

    def page(self, path, width=1200, height=900, fragment=""):
        self.pages.append(Page(self.address, path, width, height, fragment))
        return self.pages[-1]

    def close(self):
        for page in self.pages:
            page.connected.close()
        self.process.terminate()
        try:
            self.process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(timeout=20)
        shutil.rmtree(self.folder, ignore_errors=True)


class Page:
    """A file in a tab: `run` evaluates JavaScript, `press` and `click` are real input; what went wrong is kept."""

    def __init__(self, address, path, width, height, fragment):
        from websockets.sync.client import connect

        self.connected = ExitStack()
        # Without its pings, whose thread draws from Python's global generator while other tests hold that fixed.
        settings = {"max_size": None, "open_timeout": PATIENCE, "ping_interval": None}
        self.socket = self.connected.enter_context(connect(address, **settings))
        self.number = 0
        self.session = None
        self.complaints = []
        self.requests = []
        self.events = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.send(f"{domain}.enable")
        self.resize(width, height)
        self.url = path.resolve().as_uri()
        self.events.clear()
        self.send("Page.navigate", url=self.url + fragment)
        end = time.monotonic() + PATIENCE
        while "Page.loadEventFired" not in self.events:
            assert time.monotonic() < end, "the page was not loaded in time"
            self.receive()

    def send(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        self.socket.send(json.dumps(message))
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']['message']}")
                return answer["result"]

    def receive(self):
        message = json.loads(self.socket.recv(timeout=PATIENCE))
        method, found = message.get("method"), message.get("params", {})
        if method:
            self.events.append(method)
        if method == "Runtime.exceptionThrown":
            details = found["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled" and found["type"] in ("error", "warning", "assert"):
            self.complaints.append(str([each.get("value") for each in found["args"]]))
        elif method == "Log.entryAdded" and found["entry"]["level"] in ("error", "warning"):
            self.complaints.append(found["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(found["request"]["url"])
        return message

    def run(self, script):
        """The value of a JavaScript expression."""
        found = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise RuntimeError(found["exceptionDetails"]["exception"]["description"])
        return found["result"].get("value")

    def texts(self, selector):
        """The texts of all elements."""
        return self.run(f"[...document.querySelectorAll({json.dumps(selector)})].map(e => e.textContent.trim())")

    def choose(self, selector, value):
        """Take an option of a select box, as a person would: it must be there."""
        self.run(
            f"(() => {{ const box = document.querySelector({json.dumps(selector)});"
            f" const there = [...box.options].some(o => o.value === {json.dumps(value)} && !o.disabled);"
            " if (!there) throw Error('no option');"
            f" box.value = {json.dumps(value)}; box.dispatchEvent(new Event('change', {{bubbles: true}})); }})()"
        )

    def click(self, selector, place=0):
        """Click in the middle of an element, where it can be seen; something else lying there is an error."""
        x, y = self.run(
            f"(() => {{ const e = document.querySelectorAll({json.dumps(selector)})[{place}];"
            " e.scrollIntoView({block: 'center', inline: 'center', behavior: 'instant'});"
            " const b = e.getBoundingClientRect();"
            " const x = b.x + b.width / 2, y = b.y + b.height / 2, top = document.elementFromPoint(x, y);"
            " if (top !== e && !e.contains(top)) throw Error('covered by ' + (top && top.outerHTML.slice(0, 200)));"
            " return [x, y]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key):
        """Press a key: Tab, Enter, ArrowRight and the like."""
        codes = {"Tab": 9, "Enter": 13, " ": 32, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
        what = {"key": key, "code": "Space" if key == " " else key, "windowsVirtualKeyCode": codes[key]}
        text = {"Enter": {"text": "\r"}, " ": {"text": " "}}.get(key, {})
        self.send("Input.dispatchKeyEvent", type="keyDown", **what, **text)
        self.send("Input.dispatchKeyEvent", type="keyUp", **what)

    def write(self, selector, text):
        """Write into a field."""
        self.run(f"document.querySelector({json.dumps(selector)}).focus()")
        self.send("Input.insertText", text=text)

    def resize(self, width, height):
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500
        )

    def settle(self):
        """Wait until what was asked for is drawn, which a tab behind another is not."""
        self.send("Page.bringToFront")
        self.run("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 30))))")

    def pdf(self):
        """The page on paper."""
        return base64.b64decode(self.send("Page.printToPDF", printBackground=True)["data"])
