"""The two examples of the article, on real controllers."""
import json
import pathlib

import pytest

from airways import GUESTS, flight
from cluster import ROOT, condition, eventually, is_ready, never


@pytest.fixture
def example(cluster, host, airway):
    """Applies examples/NAME/airway.yaml with the flight that was built here."""
    def apply(name):
        text = (ROOT / f"examples/{name}/airway.yaml").read_text()
        manifest = json.loads(cluster.kubectl("create", "--dry-run=client", "-o", "json", "-f", "-", stdin=text))
        manifest["spec"]["wasmUrls"]["flight"] = flight(name)
        return airway(manifest)
    return apply


def pipeline(cluster, name, namespace, failing=None):
    steps = {step: {"command": ["true"]} for step in ("one", "two", "three")}
    spec = {"image": "busybox:stable", **steps}
    if failing:
        spec[failing]["nodeSelector"] = {"nobody": "has-this"}
        spec[failing]["activeDeadlineSeconds"] = 1
    cluster.create({"apiVersion": "examples.com/v1", "kind": "Pipeline",
                    "metadata": {"name": name, "namespace": namespace}, "spec": spec})


def message(cluster, kind, name, namespace):
    return ((cluster.get("examples.com/v1", kind, name, namespace) or {}).get("status") or {}).get("msg")


def test_pipeline_runs_three_jobs_one_after_the_other(cluster, example, namespace):
    example("pipeline")

    pipeline(cluster, "nightly", namespace)
    eventually(lambda: message(cluster, "Pipeline", "nightly", namespace) == "all jobs have completed", "the pipeline completes", 60)

    jobs = {job["metadata"]["name"]: job for job in cluster.list("batch/v1", "Job", namespace)}
    assert sorted(jobs) == ["nightly-one", "nightly-three", "nightly-two"]
    ends = [jobs[f"nightly-{step}"]["status"]["completionTime"] for step in ("one", "two", "three")]
    starts = [jobs[f"nightly-{step}"]["status"]["startTime"] for step in ("one", "two", "three")]
    assert ends[0] <= starts[1] and ends[1] <= starts[2]
    eventually(lambda: is_ready(cluster.get("examples.com/v1", "Pipeline", "nightly", namespace)), "the pipeline is Ready")


def test_pipeline_stops_at_a_failed_job_and_says_which(cluster, example, namespace):
    example("pipeline")

    pipeline(cluster, "broken", namespace, failing="two")
    eventually(lambda: message(cluster, "Pipeline", "broken", namespace) == "job broken-two failed", "the message names the job", 60)

    never(lambda: cluster.get("batch/v1", "Job", "broken-three", namespace), "the third job was started", 1)
    assert not is_ready(cluster.get("examples.com/v1", "Pipeline", "broken", namespace))


def test_app_waits_for_the_secret_of_somebody_else(cluster, example, namespace):
    cluster.kubectl("apply", "--server-side", "-f", str(ROOT / "examples/app/cloudsqlinstances.yaml"))
    example("app")

    cluster.create({"apiVersion": "examples.com/v1", "kind": "App", "metadata": {"name": "shop", "namespace": namespace},
                    "spec": {"image": "nginx:stable"}})
    eventually(lambda: message(cluster, "App", "shop", namespace) == "Waiting for connection secret to be created", "the app waits")
    assert cluster.get("apps/v1", "Deployment", "shop", namespace) is None

    cluster.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "shop", "namespace": namespace},
                    "stringData": {"endpoint": "db.example"}})
    eventually(lambda: message(cluster, "App", "shop", namespace) == "application deployed and ready", "the app is deployed", 60)
    assert cluster.get("apps/v1", "Deployment", "shop", namespace)["spec"]["template"]["spec"]["containers"][0]["envFrom"] == [
        {"secretRef": {"name": "shop"}}]
    eventually(lambda: condition(cluster.get("examples.com/v1", "App", "shop", namespace)).get("status") == "True", "the app is Ready")


def test_every_example_has_a_flight_that_was_built():
    built = {path.stem for path in pathlib.Path(GUESTS).glob("*.wasm")}

    assert {path.parent.name for path in (ROOT / "examples").glob("*/airway.yaml")} <= built
