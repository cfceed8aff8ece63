"""A Prometheus of Debian's package: it scrapes a host, and its promtool checks rules."""
import json
import shutil
import signal
import subprocess
import urllib.error
import urllib.parse
import urllib.request

import yaml

from cluster import eventually
from host import free_port


class Prometheus:
    """Scrapes one host each second. `rules`: groups of rules."""

    def __init__(self, directory, host, rules):
        directory.mkdir(parents=True, exist_ok=True)
        self.url = f"http://127.0.0.1:{free_port()}"
        (directory / "rules.yaml").write_text(yaml.safe_dump(rules))
        config = {"global": {"scrape_interval": "1s", "evaluation_interval": "1s"}, "rule_files": ["rules.yaml"],
                  "scrape_configs": [{"job_name": "hangar", "honor_labels": True, "static_configs": [{"targets": [host.url.removeprefix("http://")]}]}]}
        (directory / "prometheus.yaml").write_text(yaml.safe_dump(config))
        self._log = open(directory / "prometheus.log", "wb")
        self._process = subprocess.Popen(
            [shutil.which("prometheus"), f"--config.file={directory / 'prometheus.yaml'}", f"--storage.tsdb.path={directory / 'data'}",
             f"--web.listen-address={self.url.removeprefix('http://')}"], stdout=self._log, stderr=self._log)
        eventually(self._is_ready, "Prometheus is ready", 60)

    def _is_ready(self):
        assert self._process.poll() is None, f"Prometheus ended with {self._process.returncode}"
        try:
            with urllib.request.urlopen(f"{self.url}/-/ready", timeout=10) as answer:
                return answer.status == 200
        except OSError:
            return False

    def _get(self, path, **parameters):
        try:
            with urllib.request.urlopen(f"{self.url}/api/v1/{path}?{urllib.parse.urlencode(parameters)}", timeout=30) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{parameters}: {error.read().decode()}") from None

    def query(self, expression):
        """The samples of an instant query, as Prometheus gives them."""
        return self._get("query", query=expression)["result"]

    def query_range(self, expression, began, ended, step):
        """The samples of each series from `began` to `ended` (both in seconds of the epoch), `step` seconds apart."""
        return self._get("query_range", query=expression, start=began, end=ended, step=step)["result"]

    def rules(self):
        return [rule for group in self._get("rules")["groups"] for rule in group["rules"]]

    def close(self):
        self._process.send_signal(signal.SIGTERM)
        self._process.wait(60)
        self._log.close()


def promtool(*arguments):
    done = subprocess.run([shutil.which("promtool"), *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout
