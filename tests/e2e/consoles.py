"""`hangar console`, and the browser in which its page is shown."""
import http.client
import json
import os
import re
import shutil
import subprocess

from cluster import ROOT
from host import BINARY
from shown import SYSTEM

NO_BROWSER = "run dev/setup.sh --tests, which installs Debian's chromium and fetches the packages that drive it"
PINS = ROOT / "dev/npm-packages.txt"
KEY_HEADER = "Hangar-Console-Key"


class Console:
    """One process of the command. `address` is what it has printed."""

    def __init__(self, kubeconfig, directory, *flags, env=None, opens=False):
        self.log = directory / "console.log"
        command = [str(BINARY), "console", f"--kubeconfig={kubeconfig}", f"--host-namespace={SYSTEM}", *([] if opens else ["--no-open"]), *flags]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, stdin=subprocess.DEVNULL, text=True, env={**os.environ, **(env or {})})
        self.first = self.process.stdout.readline()
        found = re.search(r"http://127\.0\.0\.1:(\d+)/#key=([0-9a-f]{64})", self.first)
        assert found, self.first + self.log.read_text()
        self.address, self.port, self.key = found[0], int(found[1]), found[2]

    def ask(self, path, key=True, method="GET", body=None, **headers):
        """Status, headers and body; headers are given with underscores."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if key:
            sent[KEY_HEADER] = self.key if key is True else key
        try:
            connection.request(method, path, body, sent)
            answer = connection.getresponse()
            return answer.status, answer.headers, answer.read()
        finally:
            connection.close()

    def status(self, path, **options):
        return self.ask(path, **options)[0]

    def json(self, path, **options):
        status, _, body = self.ask(path, **options)
        assert status == 200, body
        return json.loads(body)

    def end(self):
        if self.process.poll() is None:
            self.process.terminate()
        self.process.stdout.read()
        return self.process.wait(30)


def oldest_chromium():
    """The major version that is named beside the pin of playwright-core."""
    return int(re.search(r"^playwright-core .* Chromium, (\d+) or newer", PINS.read_text(), re.MULTILINE)[1])


def chromium():
    """Chromium's path, and the environment of the program that drives it. Missing and old ones are a failure, not a skip."""
    program = shutil.which("chromium")
    assert program, f"there is no chromium on this machine: {NO_BROWSER}"
    said = subprocess.run([program, "--version"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
    installed = re.search(r"\bChromium (\d+)\.", said.stdout)
    assert installed, f"{program} does not say its version: {said.stdout}{said.stderr}"
    assert int(installed[1]) >= oldest_chromium(), (
        f"{program} is Chromium {installed[1]}, but the tests need {oldest_chromium()} or newer, as playwright-core does: upgrade Debian's chromium")
    packages = []
    for package in ("playwright-core", "axe-core"):
        version = re.search(rf"^{package} (\S+)", PINS.read_text(), re.MULTILINE)[1]
        done = subprocess.run([ROOT / "dev/npm-package.sh", f"{package}@{version}"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        assert done.returncode == 0, f"{package} is not there: {NO_BROWSER}\n{done.stderr}"
        packages.append(done.stdout.strip())
    return program, {**os.environ, "NODE_PATH": ":".join(packages)}


def browse(browser, console, kind, screenshots, **more):
    """The report of a scenario of console/browser.mjs. `browser` is what chromium() returns."""
    program, env = browser
    scenario = {"address": console.address, "kind": kind, "chromium": program, "screenshots": str(screenshots), **more}
    done = subprocess.run(["node", ROOT / "tests/e2e/console/browser.mjs", json.dumps(scenario)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=600, env=env)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
