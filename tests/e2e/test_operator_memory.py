"""Memory of all guests together: a host whose limit is small, on a control plane that no other host works on."""
import subprocess

import pytest

import operators
from cluster import eventually
from host import Host
from operators import OPERATOR


@pytest.fixture(scope="module")
def cluster(own_cluster):
    return own_cluster


def test_guests_that_do_not_fit_together_wait(cluster, tmp_path, namespace):
    """Each has 9.25 MiB in memory and keeps them; one namespace may have 24 MiB, half of all."""
    source = tmp_path / "large.wat"
    source.write_text("""(module
      (import "delay-abi" "delay" (func $delay (param i64) (result i64)))
      (memory (export "memory") 128)
      (func (export "_start") (drop (call $delay (i64.const -1))))
      (func (export "allocate") (param i32) (result i32) (i32.const 1024))
      (func (export "wakeup") (param i64 i32 i32 i32)))""")
    subprocess.run(["wat2wasm", source, "-o", tmp_path / "large.wasm"], check=True)
    limit = 24 * 1024 * 1024
    names = [f"large-{index}" for index in range(4)]
    host = Host(cluster.kubeconfig, tmp_path / "host", "--allow-file-modules", "--guest-memory=48Mi")

    def status(name):
        return (cluster.get(*OPERATOR, name, namespace) or {}).get("status", {})

    def waits(name):
        return [one for one in status(name).get("conditions", []) if one["type"] == "WaitingForMemory" and one["status"] == "True"]

    def reserved():
        return sum(value for name, value in host.metrics().items() if name.startswith("hangar_guest_memory_reserved_bytes"))

    try:
        for name in names:
            cluster.create(operators.manifest(name, namespace, module={"url": str(tmp_path / "large.wasm")}, sleep={"policy": "Never"}))
        eventually(lambda: len([name for name in names if waits(name)]) == 2, "two wait", 60)
        running = [name for name in names if not waits(name)]
        eventually(lambda: all(status(name).get("phase") == "Running" for name in running), "two are in memory", 60)
        condition = next(waits(name)[0] for name in names if waits(name))
        assert condition["reason"] == "NamespaceMemory" and "9 MiB are needed" in condition["message"], condition
        assert 18 * 1024 * 1024 < reserved() <= limit
        # One that waits is gone as soon as it is deleted; one that has memory makes room for the last.
        removed = next(name for name in names if waits(name))
        last = next(name for name in names if waits(name) and name != removed)
        cluster.delete(*OPERATOR, removed, namespace)
        eventually(lambda: host.metrics()["hangar_operators"] == 3, "it is gone")
        assert waits(last)
        cluster.delete(*OPERATOR, running[0], namespace)
        eventually(lambda: status(last).get("phase") == "Running" and not waits(last), "the last has memory", 60)
        assert 18 * 1024 * 1024 < reserved() <= limit
    finally:
        for name in names:
            cluster.delete(*OPERATOR, name, namespace)
        host.stop()
