"""Hosts that show their records, and the ConfigMap in which they say where."""
from cluster import eventually
from conftest import control_plane
from host import Host, free_port

SYSTEM = "system-of-hangar"


def records_cluster():
    """A cluster with the namespace of such a host, until closed."""
    made = control_plane("--with-kcm")
    made.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM}})
    return made


def published(cluster):
    return (cluster.get("v1", "ConfigMap", "hangar-records", SYSTEM) or {}).get("data")


def showing_host(cluster, directory, *flags, **options):
    port = free_port()
    host = Host(cluster.kubeconfig, directory, f"--records-bind-address=127.0.0.1:{port}", f"--records-url=https://127.0.0.1:{port}",
                f"--namespace={SYSTEM}", *flags, **options)
    host.records_port = port
    try:
        eventually(lambda: published(cluster), "it says where it is", 60)
    except AssertionError:
        host.stop()
        raise
    return host
