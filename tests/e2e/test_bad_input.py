"""An error is reported where the user looks, names its cause, and harms no other user."""
import gzip
import json
import pathlib
import subprocess

import pytest

import airways
from airways import flight, instance
from cluster import ROOT, ApiError, condition, eventually, is_ready

GROUP = "e2e.hangar.dev"
AIRWAY = ("yoke.cd/v1alpha1", "Airway")


def airway_error(cluster, name, seconds=60):
    return eventually(lambda: (lambda ready: ready.get("message") if ready.get("status") == "False" and ready.get("reason") in ("Error", "Unsupported") else None)(
        condition(cluster.get(*AIRWAY, name))), f"airway {name} reports an error", seconds)


def events_of(cluster, kind, name, namespace="default"):
    return [event for event in cluster.list("v1", "Event", namespace)
            if event["involvedObject"]["kind"] == kind and event["involvedObject"]["name"] == name]


def told(cluster, kind, name, namespace, fault, airway_name):
    """An Event about the object names the fault and the Airway."""
    def names_both(event):
        return event["type"] == "Warning" and fault in event["message"] and (kind == "Airway" or f"airway {airway_name}: " in event["message"])
    try:
        eventually(lambda: any(map(names_both, events_of(cluster, kind, name, namespace))), f"an Event of {kind} {name} says: {fault}", 120)
    except AssertionError as error:
        raise AssertionError(f"{error}; the Events are {[event['message'] for event in events_of(cluster, kind, name, namespace)]}") from None


# Airways ------------------------------------------------------------------------------------------


def test_an_unknown_mode_is_refused_by_the_api_server(cluster, unique):
    with pytest.raises(ApiError) as refused:
        cluster.create(airways.airway(f"{unique}s", unique.capitalize(), "/nowhere.wasm", mode="sometimes"))

    assert refused.value.status == 422 and "spec.mode" in str(refused.value)


def no_versions(manifest):
    manifest["spec"]["template"]["versions"] = []


def no_storage_version(manifest):
    manifest["spec"]["template"]["versions"][0]["storage"] = False


def other_name(manifest):
    manifest["metadata"]["name"] = "x" + manifest["metadata"]["name"]


def bad_matcher(manifest):
    manifest["spec"]["resourceAccessMatchers"] = ["Conf*"]


def static_mode(manifest):
    manifest["spec"]["mode"] = "static"


def converter(manifest):
    manifest["spec"]["wasmUrls"]["converter"] = "https://example.com/converter.wasm"


def unreachable(manifest):
    manifest["spec"]["wasmUrls"]["flight"] = "http://127.0.0.1:9/flight.wasm"


def wrong_digest(manifest):
    manifest["spec"]["wasmUrls"]["flightChecksum"] = "0" * 64


def missing_file(manifest):
    manifest["spec"]["wasmUrls"]["flight"] = "/no/such/flight.wasm"


def bad_url(manifest):
    manifest["spec"]["wasmUrls"]["flight"] = "ftp://example.com/flight.wasm"


@pytest.mark.parametrize("fault, says", [
    (no_versions, "versions"), (no_storage_version, "storage"), (other_name, "name"), (bad_matcher, "Conf*"),
    (static_mode, "static"), (converter, "converter"), (unreachable, "127.0.0.1:9"),
    (wrong_digest, 'cannot verify module against expected checksum: wanted "' + "0" * 64), (missing_file, "/no/such/flight.wasm"),
    (bad_url, "ftp")], ids=lambda value: getattr(value, "__name__", None))
def test_a_wrong_airway_says_what_is_wrong(cluster, host, airway, unique, fault, says):
    manifest = airways.airway(f"{unique}s", unique.capitalize(), flight("basic"))
    fault(manifest)
    name = manifest["metadata"]["name"]

    airway(manifest, ready=False)

    assert says in airway_error(cluster, name)
    told(cluster, "Airway", name, "default", says, name)


def test_a_mended_airway_goes_on_by_itself(cluster, host, airway, unique):
    manifest = airways.airway(f"{unique}s", unique.capitalize(), flight("basic"), mode="static")
    airway(manifest, ready=False)
    airway_error(cluster, manifest["metadata"]["name"])

    manifest["spec"]["mode"] = "standard"
    airway(manifest)


def test_a_crd_of_somebody_else_is_left_alone(cluster, host, airway, unique):
    manifest = airways.airway(f"{unique}s", unique.capitalize(), flight("basic"))
    name = manifest["metadata"]["name"]
    first = {"apiVersion": "yoke.cd/v1alpha1", "kind": "Airway", "name": "another", "uid": "0", "blockOwnerDeletion": True}
    cluster.create({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                    "metadata": {"name": name, "annotations": {"instance.atc.yoke.cd/release": "other", "instance.atc.yoke.cd/namespace": "default"}},
                    "spec": manifest["spec"]["template"]})

    airway(manifest, ready=False)

    assert 'already owned by "default/other"' in airway_error(cluster, name)
    cluster.delete(*AIRWAY, name)
    eventually(lambda: cluster.get(*AIRWAY, name) is None, "the Airway is gone")
    assert cluster.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", name), f"{first}: the CRD went with it"
    cluster.delete("apiextensions.k8s.io/v1", "CustomResourceDefinition", name)


# Modules ------------------------------------------------------------------------------------------


def not_wasm(path):
    path.write_text("<html>moved</html>")


def empty(path):
    path.write_bytes(b"")


def truncated_gzip(path):
    path.write_bytes(gzip.compress(pathlib.Path(flight("basic")).read_bytes())[:-1000])


def truncated_wasm(path):
    path.write_bytes(pathlib.Path(flight("basic")).read_bytes()[:100000])


def too_large(path):
    with open(path, "wb") as file:
        file.write(b"\0asm\1\0\0\0")
        file.truncate(300 << 20)


def gzip_bomb(path):
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(b"\0asm\1\0\0\0")
        for _ in range(300):
            file.write(bytes(1 << 20))


@pytest.mark.parametrize("guest, says", [
    ("kube_runtime_journal", "it seems to be a long-running controller: name it in an Operator"), ("machine_packed", "it seems to be a state machine")])
def test_a_module_of_another_contract_is_called_what_it_seems_to_be(cluster, host, airway, unique, wat, guest, says):
    manifest = airways.airway(f"{unique}s", unique.capitalize(), wat(guest))

    airway(manifest, ready=False)

    assert says in airway_error(cluster, manifest["metadata"]["name"], 120)
    told(cluster, "Airway", manifest["metadata"]["name"], "default", says, manifest["metadata"]["name"])


@pytest.mark.parametrize("fault", [not_wasm, empty, truncated_gzip, truncated_wasm, too_large, gzip_bomb], ids=lambda f: f.__name__)
def test_what_is_no_module_is_refused(cluster, host, airway, unique, tmp_path, fault):
    path = tmp_path / "flight.wasm"
    fault(path)
    manifest = airways.airway(f"{unique}s", unique.capitalize(), str(path))

    airway(manifest, ready=False)

    message = airway_error(cluster, manifest["metadata"]["name"], 120)
    assert message and "flight.wasm" in message
    told(cluster, "Airway", manifest["metadata"]["name"], "default", "flight.wasm", manifest["metadata"]["name"])


# Output -------------------------------------------------------------------------------------------

CONFIG_MAP = '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "%s"}}'


@pytest.fixture
def behave(cluster, host, airway, unique):
    """The kind of an Airway with the flight `behave`."""
    manifest = airways.airway(f"{unique}s", unique.capitalize(), flight("behave"), timeout="2s", maxMemoryMib=128)
    airway(manifest)
    return unique.capitalize()


def error_of(cluster, kind, name, namespace, seconds=60):
    return eventually(lambda: (lambda ready: ready["message"] if ready.get("reason") == "Error" else None)(
        condition(cluster.get(f"{GROUP}/v1", kind, name, namespace))), f"{kind} {name} reports an error", seconds)


@pytest.mark.parametrize("stdout, says", [
    ("", "failed to takeoff: resource provided is either empty or invalid"),
    ("hello", "input must be resource, list of resources, or list of list of resources"),
    ("{}", "input must be resource, list of resources, or list of list of resources"),
    ('{"apiVersion": "v1", "metadata": {"name": "x"}}', "kind"),
    ("[null, " + CONFIG_MAP % "x" + "]", "null"),
    (CONFIG_MAP % "x" + "\n" + CONFIG_MAP % "y", ""),
    ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n---\n: : bad\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: y}\n", ""),
    ('[{"apiVersion": "nowhere.example/v1", "kind": "Nothing", "metadata": {"name": "x"}}]', "no matches for kind"),
    ('[' + CONFIG_MAP % "x" + ', ' + CONFIG_MAP % "x" + ']', ""),
    ('[{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "Not A Name"}}]', "Not A Name"),
])
def test_output_that_is_wrong_changes_nothing(cluster, behave, namespace, stdout, says):
    cluster.create(instance(behave, "it", {"behaviour": "basic", "data": {"a": "b"}}, namespace))
    eventually(lambda: is_ready(cluster.get(f"{GROUP}/v1", behave, "it", namespace)), "the instance is Ready")

    cluster.patch(f"{GROUP}/v1", behave, "it", {"spec": {"behaviour": "raw", "stdout": stdout}}, namespace)

    assert says in error_of(cluster, behave, "it", namespace)
    assert cluster.get("v1", "ConfigMap", "it", namespace)["data"] == {"a": "b"}
    assert cluster.get("v1", "ConfigMap", "x", namespace) is None
    told(cluster, behave, "it", namespace, says, f"{behave.lower()}s.{GROUP}")


def test_what_is_wrong_is_said_once_the_status_can_be_written(cluster, behave, namespace):
    """The host does not retry wrong output by itself, so only the first attempt can report it."""
    cluster.create(instance(behave, "it", {"behaviour": "basic"}, namespace))
    eventually(lambda: is_ready(cluster.get(f"{GROUP}/v1", behave, "it", namespace)), "the instance is Ready")

    admission = "admissionregistration.k8s.io/v1"
    name = f"{behave.lower()}-no-status"
    cluster.create({"apiVersion": admission, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": name}, "spec": {
        "matchConstraints": {"resourceRules": [{"apiGroups": [GROUP], "apiVersions": ["*"], "operations": ["UPDATE"],
                                                "resources": [f"{behave.lower()}s/status"]}]},
        "validations": [{"expression": "false", "message": "not now", "reason": "Forbidden"}]}})
    cluster.create({"apiVersion": admission, "kind": "ValidatingAdmissionPolicyBinding", "metadata": {"name": name},
                    "spec": {"policyName": name, "validationActions": ["Deny"]}})

    def is_refused():
        try:
            cluster.patch(f"{GROUP}/v1", behave, "it", {"status": {"looked": True}}, namespace, subresource="status")
        except ApiError as error:
            return "not now" in str(error)
        return False
    try:
        eventually(is_refused, "no status can be written")
        cluster.patch(f"{GROUP}/v1", behave, "it", {"spec": {"behaviour": "raw", "stdout": "hello"}}, namespace)
        told(cluster, behave, "it", namespace, "input must be resource", f"{behave.lower()}s.{GROUP}")
        assert is_ready(cluster.get(f"{GROUP}/v1", behave, "it", namespace))
    finally:
        for kind in ("ValidatingAdmissionPolicyBinding", "ValidatingAdmissionPolicy"):
            cluster.delete(admission, kind, name, None)
    assert "input must be resource" in error_of(cluster, behave, "it", namespace)


def test_an_override_annotation_is_ignored_and_said_to_be(cluster, behave, namespace):
    cluster.create(instance(behave, "it", {"behaviour": "basic"}, namespace, annotations={"overrides.yoke.cd/mode": "dynamic"}))

    eventually(lambda: [event for event in events_of(cluster, behave, "it", namespace) if "overrides.yoke.cd/mode" in event["message"]],
               "an Event says that the annotation is ignored")
    eventually(lambda: is_ready(cluster.get(f"{GROUP}/v1", behave, "it", namespace)), "the instance is Ready")


# Guests -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("spec, says", [
    ({"behaviour": "endless"}, "module closed with context deadline exceeded: execution timeout (2s) exceeded"),
    ({"behaviour": "sleep", "milliseconds": 60000}, "execution timeout (2s) exceeded"),
    ({"behaviour": "memory", "mib": 512}, "out of memory"),
    ({"behaviour": "hugeStdout", "mib": 64}, "stdout"),
    ({"behaviour": "panic"}, "panic"),
    ({"behaviour": "basic", "exitCode": 3, "stderr": "this is why"}, "this is why"),
    ({"behaviour": "basic", "exitCode": 3}, "(no output captured on stderr)"),
], ids=lambda value: value.get("behaviour") if isinstance(value, dict) else None)
def test_a_guest_that_misbehaves_is_ended_and_named(cluster, host, behave, namespace, spec, says):
    cluster.create(instance(behave, "it", spec, namespace))

    assert says in error_of(cluster, behave, "it", namespace)
    told(cluster, behave, "it", namespace, says, f"{behave.lower()}s.{GROUP}")
    cluster.create(instance(behave, "good", {"behaviour": "basic", "data": {"a": "b"}}, namespace))
    eventually(lambda: is_ready(cluster.get(f"{GROUP}/v1", behave, "good", namespace)), "the next one works")
    assert host.rss_bytes() < 512 << 20


def hostile_guests():
    """Guests that are or could be flights; long-running guests have a contract and tests of their own."""
    return sorted(path.stem for path in (ROOT / "tests/guests").glob("*.wat") if not path.stem.startswith(("kube_runtime_", "machine_")))


# The fault in the words of condition and Event. The other guests try forbidden things, and then exit well or silently.
OUTSIDE = "do not lie in the guest's"
FAULTS = {
    "endless_loop": "execution timeout (1s) exceeded", "endless_loop_in_start": "execution timeout (1s) exceeded", "endless_stdout": "stdout is larger than",
    "out_of_bounds": "out of bounds memory access", "trap_in_start": "unreachable executed", "unreachable": "unreachable executed",
    "stack_overflow": "call stack exhausted", "large_table": "table limits", "missing_memory": "exports no memory",
    "missing_start": "exports no function _start", "wrong_imports": "imports env.foo(i32) -> (i32), which a flight does not get",
    "wrong_import_type": "imports wasi_snapshot_preview1.fd_write(i32) -> (i32), which a flight does not get",
    "lookup_bad_name": OUTSIDE, "lookup_bad_namespace": OUTSIDE, "lookup_bad_kind": "a name of 4294967295 bytes", "lookup_bad_api_version": OUTSIDE,
    "lookup_bad_state": OUTSIDE, "rest_mapping_bad_group": OUTSIDE, "rest_mapping_bad_kind": OUTSIDE, "rest_mapping_bad_state": OUTSIDE,
    "malloc_returns_garbage": OUTSIDE, "malloc_traps": "malloc: unreachable executed", "malloc_loops": "execution timeout (1s) exceeded"}


def test_hostile_guests_end_in_a_condition_and_an_event_and_the_host_goes_on(cluster, host, airway, namespace, wat, unique):
    kinds = []
    for index, name in enumerate(hostile_guests()):
        kind = f"{unique.capitalize()}h{index}"
        manifest = airways.airway(f"{kind.lower()}s", kind, wat(name), timeout="1s", maxMemoryMib=64, clusterAccess=True)
        airway(manifest, ready=False)
        kinds.append((name, kind, manifest["metadata"]["name"]))

    def verdict(kind, airway_name):
        """The object that reports the result, and its message."""
        ready = condition(cluster.get(*AIRWAY, airway_name))
        if ready.get("status") == "False" and ready.get("reason") == "Error":
            return "Airway", airway_name, ready["message"]
        if ready.get("status") != "True":
            return None
        if not cluster.get(f"{GROUP}/v1", kind, "it", namespace):
            cluster.create(instance(kind, "it", {}, namespace))
        found = condition(cluster.get(f"{GROUP}/v1", kind, "it", namespace))
        return (kind, "it", found["message"]) if found.get("reason") in ("Error", "Ready") else None

    for name, kind, airway_name in kinds:
        subject, subject_name, message = eventually(lambda: verdict(kind, airway_name), f"the guest {name} has a verdict", 60)
        if name in FAULTS:
            assert FAULTS[name] in message, name
            told(cluster, subject, subject_name, namespace if subject != "Airway" else "default", FAULTS[name], airway_name)
    assert host.process.poll() is None
