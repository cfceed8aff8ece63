"""A ring of N namespaces, whose operators copy a larger nonce to the next one's, for benchmarks of operators that work."""
import contextlib
import http.client
import json
import os
import pathlib
import threading
import time

from cluster import ApiError, eventually
from hangar_run import directory_of_operators
from harness import ROOT

GROUP, KIND, NAME = "amurant.io/v1", "TestResource", "run"
GUEST = pathlib.Path(os.environ.get("HANGAR_GUESTS_DIR", ROOT / "build/guests")) / "ring.wasm"
WARM_ROUNDS = 2


class Ring:
    """N namespaces with one object each, and the client that sends nonces around."""

    def __init__(self, cluster, count):
        self.cluster, self.count = cluster, count
        self.namespaces = [f"ring{index}" for index in range(count)]
        self.nonce = 0
        self._seen, self._changed, self._closed = 0, threading.Condition(), False
        for crd in ("examples/ring/testresources.yaml", "deploy/crds"):
            cluster.apply_crds(ROOT / crd)
        cluster.learn(GROUP, KIND, "testresources")
        eventually(self._is_served, "the kind is served")
        for namespace in self.namespaces:
            cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
            cluster.create({"apiVersion": GROUP, "kind": KIND, "metadata": {"name": NAME, "namespace": namespace},
                            "spec": {"nonce": 0}})
        threading.Thread(target=self._watch_last, daemon=True).start()

    def _is_served(self):
        try:
            return self.cluster.request("GET", f"/apis/{GROUP}/testresources")
        except (ApiError, OSError):
            return None

    def _watch_last(self):
        path = self.cluster.path(GROUP, KIND, self.namespaces[-1])
        while not self._closed:
            # The API server ends a watch now and then, is restarted for each variant, and is gone at the end.
            with contextlib.suppress(OSError, http.client.HTTPException):
                self._read_watch(path + "?watch=true")
            time.sleep(0.05)

    def _read_watch(self, path):
        address = self.cluster._address
        connection = http.client.HTTPSConnection(address.hostname, address.port, context=self.cluster._context)
        connection.request("GET", path)
        answer = connection.getresponse()
        while answer.status == 200 and (line := answer.readline()):
            nonce = json.loads(line)["object"].get("spec", {}).get("nonce", 0)
            with self._changed:
                self._seen = max(self._seen, nonce)
                self._changed.notify_all()

    def close(self):
        self._closed = True

    def round(self, seconds=120.0):
        """Sends the next nonce; returns the seconds until the last namespace has it."""
        self.nonce += 1
        began = time.monotonic()
        self.cluster.patch(GROUP, KIND, NAME, {"spec": {"nonce": self.nonce}}, self.namespaces[0])
        with self._changed:
            if not self._changed.wait_for(lambda: self._seen >= self.nonce, seconds):
                raise AssertionError(f"nonce {self.nonce} did not arrive within {seconds:.0f} s")
        return time.monotonic() - began

    def warm_up(self):
        """For controllers that have just started."""
        self.round(300)  # Waits until all of them have listed.
        for _ in range(WARM_ROUNDS):
            self.round()

    def bare_round(self):
        """The same reads and writes as N hops, one after the other, by a client that need not wait for a watch."""
        self.nonce += 1
        began = time.monotonic()
        for namespace in self.namespaces:
            path = self.cluster.path(GROUP, KIND, namespace, NAME)
            seen = self.cluster.request("GET", path)
            seen["spec"]["nonce"] = self.nonce
            self.cluster.request("PUT", path, seen)
        return time.monotonic() - began


def ring_directory(ring, directory, count, distinct):
    directory_of_operators(directory, GUEST, count, distinct, environment=lambda index: {
        "IN_NAMESPACE": ring.namespaces[index], "OUT_NAMESPACE": ring.namespaces[(index + 1) % ring.count]})
