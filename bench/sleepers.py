"""Many operators that watch ConfigMaps of their namespaces, and sleep: what several benchmarks have in common."""
import concurrent.futures

import harness
import operators
from cluster import eventually

CLIENTS = 4


def for_each(values, act):
    """From a few clients at a time."""
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as clients:
        list(clients.map(act, values))


class Sleepers:
    """`count` operators, spread over the namespaces, on a cluster without a host."""

    def __init__(self, cluster, count, namespaces):
        self.cluster, self.count = cluster, count
        self.namespaces = [f"sleepers-{index:04}" for index in range(namespaces)]
        cluster.apply_crds(harness.ROOT / "deploy/crds")
        for name in self.namespaces:
            cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
            operators.allow(cluster, name, "get", "list", "watch")

    def create(self):
        for_each(range(self.count), self._create_one)

    def _create_one(self, index):
        namespace = self.namespaces[index % len(self.namespaces)]
        self.cluster.create(operators.manifest(f"sleeper-{index:05}", namespace, f"watch={namespace}", sleep={"after": "0s"}))

    def wait_until_asleep(self, metrics, seconds):
        """`metrics` are the host's, or nothing while it does not answer."""
        def all_sleep():
            figures = metrics()
            return figures.get("hangar_operators") == self.count and figures.get("hangar_operators_resident") == 0
        eventually(all_sleep, "all operators sleep", seconds)
