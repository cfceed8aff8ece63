"""/metrics has series for each operator, and drops them with it."""
import airways
from airways import flight, instance
from cluster import eventually, is_ready
from conftest import COMPILED
from host import Host
from operators import EVERYTHING, OPERATOR, allow, create_config_map, lines


def series(host, controller):
    """name -> value for series with the operator's name; the sum for a name with further labels."""
    found = {}
    for key, value in host.metrics().items():
        if f'controller="{controller}"' in key:
            name = key.split("{")[0]
            found[name] = found.get(name, 0) + value
    return found


def test_no_more_reconciles_run_at_once_than_the_host_may(own_cluster, own_namespace, unique, tmp_path):
    """With flights that sleep: with one slot they end one after the other, however many wait."""
    host = Host(own_cluster.kubeconfig, tmp_path / "host", "--features=airways", "--max-concurrent-reconciles=1")
    plural, kind = f"{unique}ones", f"{unique.capitalize()}one"
    controller = f"{plural}.e2e.hangar.dev"
    try:
        own_cluster.apply(airways.airway(plural, kind, flight("behave")))
        own_cluster.learn("e2e.hangar.dev/v1", kind, plural)
        eventually(lambda: is_ready(own_cluster.get("yoke.cd/v1alpha1", "Airway", controller)), "the Airway is ready", COMPILED)
        for number in range(6):
            own_cluster.create(instance(kind, f"it{number}", {"behaviour": "sleep", "milliseconds": 2000}, own_namespace))
        most = 0

        def all_are_ready():
            nonlocal most
            most = max(most, series(host, controller).get("controller_runtime_active_workers", 0))
            return all(is_ready(own_cluster.get("e2e.hangar.dev/v1", kind, f"it{number}", own_namespace)) for number in range(6))
        eventually(all_are_ready, "all are ready", 120)
        assert most == 1 and series(host, controller)["controller_runtime_max_concurrent_reconciles"] == 1
        for number in range(6):
            own_cluster.delete("e2e.hangar.dev/v1", kind, f"it{number}", own_namespace)
        own_cluster.delete("yoke.cd/v1alpha1", "Airway", controller)
        eventually(lambda: own_cluster.get("yoke.cd/v1alpha1", "Airway", controller) is None, "the Airway is gone", 60)
    finally:
        assert host.stop() == 0


def test_an_operator_has_the_metrics_of_a_controller_until_it_is_gone(cluster, host, namespace, operator):
    allow(cluster, namespace, *EVERYTHING)
    operator("watcher", f"watch={namespace}", sleep={"after": "0s"})
    operator("trapping", "trap")
    watcher, trapping = f"{namespace}/watcher", f"{namespace}/trapping"
    eventually(lambda: any(line.startswith("listed") for line in lines(host, "watcher", namespace)), "it listed", 60)
    create_config_map(cluster, "one", namespace)
    eventually(lambda: "changed one" in lines(host, "watcher", namespace), "the guest heard of it")

    seen = eventually(lambda: (lambda now: now if now["hangar_controller_resumes_total"] >= 1
                               and now["hangar_controller_resident_bytes"] == 0 else None)(series(host, watcher)), "it was woken")
    assert seen["controller_runtime_reconcile_total"] >= 3  # The first turn, the list, the event.
    assert seen["controller_runtime_reconcile_errors_total"] == seen["controller_runtime_reconcile_panics_total"] == 0
    assert seen["controller_runtime_reconcile_time_seconds_count"] == seen["controller_runtime_reconcile_total"]
    assert seen["workqueue_adds_total"] >= 3 and seen["workqueue_depth"] == 0
    assert seen["hangar_controller_wakes_total"] == seen["workqueue_queue_duration_seconds_count"] >= 2
    assert seen["hangar_controller_disk_bytes"] > 0
    requests = {key: value for key, value in host.metrics().items()
                if key.startswith("rest_client_requests_total{") and f'controller="{watcher}"' in key}
    assert requests == {f'rest_client_requests_total{{code="200",controller="{watcher}",host="gateway",method="GET"}}': 2}

    failed = eventually(lambda: (lambda now: now if now.get("workqueue_retries_total") else None)(series(host, trapping)), "it is tried again")
    assert failed["controller_runtime_reconcile_errors_total"] >= 1
    assert failed["controller_runtime_reconcile_panics_total"] == failed["controller_runtime_reconcile_errors_total"]

    for name in ("watcher", "trapping"):
        cluster.delete(*OPERATOR, name, namespace)
    eventually(lambda: not series(host, watcher) and not series(host, trapping), "their series are gone")
