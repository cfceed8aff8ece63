"""`hangar top --cost`: what each namespace and module has cost, and the host itself; together what the processes have used."""
import csv
import hashlib
import io
import json
import os
import pathlib
import time

import pytest

import operators
import users
from airways import flight
from cluster import eventually
from conftest import COMPILED
from host import to_its_end
from operators import EVERYTHING, OPERATOR, allow, lines
from shown import SYSTEM, published, showing_host
from processes import children
from test_seeing import find_host, run

HEAP_BYTES = 64 << 20


@pytest.fixture(scope="module", params=["none", "namespace"])
def host(request, own_cluster, tmp_path_factory):
    """A host that shows what its guests cost: in one process, and with processes for them."""
    if not own_cluster.get("v1", "Namespace", SYSTEM):
        own_cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM}})
    if published(own_cluster):
        own_cluster.delete("v1", "ConfigMap", "hangar-records", SYSTEM)
    yield from to_its_end(showing_host(own_cluster, tmp_path_factory.mktemp("host"), "--features=operators", f"--guest-isolation={request.param}"))


@pytest.fixture
def tenants(own_cluster, host, unique):
    """A namespace with an operator that computes and holds memory, and one with an operator that waits."""
    busy, quiet = f"{unique}-busy", f"{unique}-quiet"
    for name in (busy, quiet):
        own_cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        allow(own_cluster, name, *EVERYTHING)
    own_cluster.create(operators.manifest("burner", busy, f"heap={HEAP_BYTES >> 10}", "burn=20", sleep={"policy": "Never"}, limits={"memory": "128Mi"}))
    body = json.dumps({"metadata": {"name": "made"}, "data": {"key": "x" * 500}})
    own_cluster.create(operators.manifest("writer", quiet, f"request=POST,/api/v1/namespaces/{quiet}/configmaps,{body}", "wait", "--", "tick=3600000"))
    eventually(lambda: any(line.startswith("burned") for line in lines(host, "burner", busy)), "it computes", COMPILED)
    yield busy, quiet
    for name, namespace in (("burner", busy), ("writer", quiet)):
        own_cluster.delete(*OPERATOR, name, namespace)
        eventually(lambda: own_cluster.get(*OPERATOR, name, namespace) is None, "it is gone", 60)
        own_cluster.delete("v1", "Namespace", namespace)


def cost(kubeconfig, *flags):
    done = run("top", kubeconfig, "--cost", "-o", "json", *flags)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def row(found, namespace, module=None):
    rows = [one for one in found["rows"] if one["namespace"] == namespace and one.get("module") == module]
    return rows[0] if rows else {}


def has_cost(kubeconfig, namespace):
    return any(one["namespace"] == namespace and one["cpuMicroseconds"] > 0 for one in cost(kubeconfig)["rows"])


def total(found, member):
    return sum(one[member] for one in found["rows"])


def tree(pid):
    """Of a process and all that come from it."""
    found = [pid]
    for one in found:
        found += children(one)
    return found


def used_seconds(host):
    """By the kernel's own counts, with processes that have ended."""
    ticks = 0
    for pid in tree(host.process.pid):
        try:
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        ticks += sum(int(field) for field in fields[11:15])
    return ticks / os.sysconf("SC_CLK_TCK")


def resident_bytes(host):
    """All of the host, and of its guest processes what they share with nobody."""
    pages = 0
    for pid in tree(host.process.pid):
        try:
            _, resident, shared, *_ = (int(field) for field in pathlib.Path(f"/proc/{pid}/statm").read_text().split())
        except OSError:
            continue
        pages += resident if pid == host.process.pid else resident - shared
    return pages * os.sysconf("SC_PAGE_SIZE")


def cost_between(cluster, host):
    """The cost, and the kernel's counts just before and after the host was asked: the command itself takes long on a busy machine."""
    before = used_seconds(host)
    found = cost(cluster.kubeconfig)
    return before, found, used_seconds(host)


def test_all_rows_together_are_what_the_processes_have_used(own_cluster, host, tenants):
    busy, _ = tenants
    module = hashlib.sha256(pathlib.Path(flight(operators.BEHAVE).removeprefix("file://")).read_bytes()).hexdigest()
    first_least, before, first_most = cost_between(own_cluster, host)
    held, began = 0, time.monotonic()
    at = began
    while at - began < 40:
        time.sleep(0.25)
        now = time.monotonic()
        held += resident_bytes(host) * (now - at)
        at = now
    last_least, after, last_most = cost_between(own_cluster, host)

    grown = {member: total(after, member) - total(before, member) for member in
             ("cpuMicroseconds", "memoryByteSeconds", "cacheByteSeconds")}
    # The kernel counts in ticks, for each process.
    ticks = 0.5
    assert last_least - first_most - ticks <= grown["cpuMicroseconds"] / 1e6 <= last_most - first_least + ticks
    assert last_least - ticks <= total(after, "cpuMicroseconds") / 1e6 <= last_most + ticks
    # The window of the answers is a little longer than that of the samples.
    window = (after["microseconds"] - before["microseconds"]) / 1e6
    resident = (grown["memoryByteSeconds"] + grown["cacheByteSeconds"]) / window
    assert resident == pytest.approx(held / (at - began), rel=0.05)

    # The namespace that computes has what it used, and by the module that did it.
    mine = {member: row(after, busy, module)[member] - row(before, busy, module).get(member, 0) for member in ("cpuMicroseconds", "memoryByteSeconds")}
    assert mine["cpuMicroseconds"] > grown["cpuMicroseconds"] / 2
    assert HEAP_BYTES * 0.9 < mine["memoryByteSeconds"] / window < HEAP_BYTES * 1.5
    host_itself = row(after, "(host)")["cpuMicroseconds"] - row(before, "(host)")["cpuMicroseconds"]
    assert 0 < host_itself < grown["cpuMicroseconds"] / 2
    assert total(after, "cpuMicroseconds") == pytest.approx(after["processes"]["cpuMicroseconds"], rel=0.001)

    # Metrics have the same by namespace.
    name = f'hangar_cost_cpu_seconds_total{{namespace="{busy}"}}'
    eventually(lambda: host.metrics().get(name, 0) >= row(after, busy, module)["cpuMicroseconds"] / 1e6, "the metric is there", 60)
    assert host.metrics()['hangar_cost_memory_byte_seconds_total{namespace="(host)"}'] > 0


def test_requests_and_bytes_are_their_namespaces(own_cluster, host, tenants):
    _, quiet = tenants

    def counted():
        rows = [one for one in cost(own_cluster.kubeconfig, "-n", quiet)["rows"]]
        assert {one["namespace"] for one in rows} <= {quiet}
        return sum(one["writtenBytes"] for one in rows) > 500 and sum(one["requests"] for one in rows) >= 1 and sum(one["turns"] for one in rows) >= 1
    eventually(counted, "what it wrote is counted", COMPILED)


def test_the_cost_is_a_table_and_a_csv(own_cluster, host, tenants):
    busy, _ = tenants
    eventually(lambda: has_cost(own_cluster.kubeconfig, busy), "its first turn has ended", 60)
    done = run("top", own_cluster.kubeconfig, "--cost")
    assert done.returncode == 0 and "\x1b" not in done.stdout, done.stderr
    head, *rows = [line.split() for line in done.stdout.splitlines()]
    assert head[:3] == ["NAMESPACE", "MODULE", "CPU-S"]
    assert {one[0] for one in rows} >= {busy, "(host)", "(sum)"}

    done = run("top", own_cluster.kubeconfig, "--cost", "-o", "csv")
    assert done.returncode == 0, done.stderr
    table = list(csv.DictReader(io.StringIO(done.stdout)))
    assert sum(int(one["cpu_microseconds"]) for one in table if one["namespace"] == busy) > 0
    assert {one["namespace"] for one in table} >= {busy, "(host)"}
    wrong = run("top", own_cluster.kubeconfig, "-o", "csv")
    assert wrong.returncode == 2 and "--cost" in wrong.stderr


def test_a_user_sees_the_cost_of_namespaces_that_he_may_list(own_cluster, host, tenants, tmp_path, unique):
    busy, quiet = tenants
    kubeconfig = users.with_certificate(own_cluster, tmp_path, f"{unique}-jane")
    find_host(own_cluster, f"{unique}-jane")
    none = run("top", kubeconfig, "--cost")
    assert none.returncode == 1 and "may not list operators.hangar.dev" in none.stderr

    users.let(own_cluster, f"{unique}-jane", busy, ["list"], ["operators"])
    eventually(lambda: run("top", kubeconfig, "--cost").returncode == 0, "now there is one", 60)
    eventually(lambda: has_cost(kubeconfig, busy), "its first turn has ended", 60)
    for flags in ((), ("-n", busy)):
        found = cost(kubeconfig, *flags)
        assert {one["namespace"] for one in found["rows"]} == {busy}
        assert "processes" not in found, "what the others use together is not hers to see"
    refused = run("top", kubeconfig, "--cost", "-n", quiet)
    assert refused.returncode == 1 and f'may not list operators.hangar.dev in namespace "{quiet}"' in refused.stderr
