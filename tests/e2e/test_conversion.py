"""Converters: clients read and write instances in every version of their kind, whichever is stored."""
import base64
import contextlib
import json
import subprocess
import threading

import pytest

import airways
from airways import OPEN_SCHEMA, flight
from cluster import ApiError, condition, eventually, is_ready, try_to
from conftest import COMPILED
from host import BINARY, Host, free_port
from users import openssl
from webhooks import CONVERSIONS, ask, authorities_of, bundle_of, configurations, is_trusted, standby, wait_registered, webhook_flags

GROUP = "conversion.hangar.dev"
CRD = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
AIRWAY = ("yoke.cd/v1alpha1", "Airway")
CONFIG_MAP = ("v1", "ConfigMap")
SECRET = ("v1", "Secret", "hangar-webhook")


@pytest.fixture(scope="module")
def rig(own_cluster):
    own_cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "webhooks"}})
    return own_cluster


@pytest.fixture(scope="module")
def webhook_host(rig, tmp_path_factory):
    port = free_port()
    host = Host(rig.kubeconfig, tmp_path_factory.mktemp("host"), *webhook_flags(port, "webhooks"))
    host.webhook_port, host.namespace = port, "webhooks"
    wait_registered(rig, "webhooks")
    yield host
    host.stop()


@pytest.fixture
def namespace(rig, unique):
    name = f"ns-{unique}"
    rig.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    return name


def versions(*names, stored):
    return [{"name": name, "served": True, "storage": name == stored, "schema": {"openAPIV3Schema": OPEN_SCHEMA}} for name in names]


class Backends:
    """A kind of its own, with the versions v1 {image, replicas, labels} and v2 {img, replicas, meta: {labels}}."""

    def __init__(self, cluster, unique):
        self.cluster, self.kind, self.plural = cluster, f"Backend{unique}", f"backend{unique}s"
        self.name = f"{self.plural}.{GROUP}"
        for version in ("v1", "v2"):
            cluster.learn(f"{GROUP}/{version}", self.kind, self.plural)

    def manifest(self, *names, stored, converter="converter", **spec):
        made = airways.airway(self.plural, self.kind, flight("basic"), group=GROUP, **spec)
        made["spec"]["template"]["versions"] = versions(*names, stored=stored)
        if converter:
            made["spec"]["wasmUrls"]["converter"] = flight(converter)
        return made

    def apply(self, *names, stored, **options):
        """Waits until the API server acts on it."""
        manifest = self.manifest(*names, stored=stored, **options)
        # The review waits for the module for 30 s only.
        applied = eventually(lambda: try_to(self.cluster.apply, manifest), "the Airway is accepted", COMPILED)
        generation = applied["metadata"]["generation"]

        def is_current():
            airway = self.cluster.get(*AIRWAY, self.name)
            return is_ready(airway) and condition(airway).get("observedGeneration") == generation and airway
        return eventually(is_current, "the Airway is Ready as it is now", COMPILED)

    def crd(self):
        return self.cluster.get(*CRD, self.name)

    def create(self, version, name, namespace, spec, **labels):
        self.served(version)
        return self.cluster.create({"apiVersion": f"{GROUP}/{version}", "kind": self.kind, "spec": spec,
                                    "metadata": {"name": name, "namespace": namespace, "labels": labels}})

    def get(self, version, name, namespace):
        return self.cluster.get(f"{GROUP}/{version}", self.kind, name, namespace)

    def served(self, version):
        """A version is served a moment after its CRD says so."""
        path = f"/apis/{GROUP}/{version}/{self.plural}?limit=1"
        eventually(lambda: try_to(self.cluster.request, "GET", path), f"{version} is served", 60)


@pytest.fixture
def backends(rig, webhook_host, unique):
    made = Backends(rig, unique)
    yield made
    if webhook_host.process.poll() is None and rig.get(*AIRWAY, made.name):
        rig.delete(*AIRWAY, made.name)
        eventually(lambda: made.crd() is None, "the kind is gone", 60)


def is_converted(backends, name, namespace):
    read = try_to(backends.get, "v1", name, namespace)
    return read and read["spec"].get("image") == "x"


@pytest.mark.parametrize("method, path, body, status, words", [
    ("GET", "/crdconvert/x", None, 405, "POST"),
    ("POST", "/crdconvert/x", "{", 400, ""),
    ("POST", "/crdconvert/x", "{}", 400, "ConversionReview"),
    ("POST", "/crdconvert/x", json.dumps({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview"}), 400, "request.uid"),
    ("POST", "/crdconvert/x", json.dumps({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": {
        "uid": "u", "desiredAPIVersion": "g/v2", "objects": []}}), 200, "there is no Airway x"),
    ("POST", "/crdconvert/", "{}", 404, "no webhook"),
])
def test_a_request_that_is_no_conversion_is_refused_with_words(webhook_host, method, path, body, status, words):
    answer = ask(webhook_host, path, body, method)
    assert answer[0] == status and words in answer[1], answer


def test_what_was_made_before_is_read_in_the_new_version(rig, webhook_host, backends, namespace):
    backends.apply("v1", stored="v1", converter=None)
    made = backends.create("v1", "one", namespace, {"image": "c4ts", "replicas": 1, "labels": {"a": "b"}})
    eventually(lambda: is_ready(backends.get("v1", "one", namespace)), "the instance is Ready", 60)
    assert backends.crd()["spec"]["conversion"]["strategy"] == "None"

    airway = backends.apply("v1", "v2", stored="v2")
    assert airway["status"]["converter"]["sha256"] and airway["status"]["converter"]["sha256"] != airway["status"]["flight"]["sha256"]
    # By digest, so that neither is fetched again for each review.
    index = json.loads((webhook_host.directory / "cache/flights.json").read_text())
    assert {airway["status"][module]["sha256"] for module in ("flight", "converter")} <= set(index)
    backends.served("v2")
    read = backends.get("v2", "one", namespace)
    assert read["spec"] == {"img": "c4ts", "replicas": 1, "meta": {"labels": {"a": "b"}}}
    assert read["metadata"]["uid"] == made["metadata"]["uid"]
    assert read["metadata"]["managedFields"], "the API server keeps them, although the converter does not see them"
    # Its types have no status: whose conversion it is does not matter to it.
    assert is_ready(read) and is_ready(backends.get("v1", "one", namespace))

    # The flight receives the version that is stored.
    eventually(lambda: rig.get(*CONFIG_MAP, "one", namespace)["data"].get("img") == "c4ts", "the flight has read v2", 60)
    backends.create("v1", "two", namespace, {"image": "other", "replicas": 2})
    eventually(lambda: is_ready(backends.get("v2", "two", namespace)), "an instance that is written as v1 is Ready", 60)
    assert rig.get(*CONFIG_MAP, "two", namespace)["data"] == {"img": "other", "replicas": "2", "meta": "map[]"}
    listed = rig.request("GET", f"/apis/{GROUP}/v1/namespaces/{namespace}/{backends.plural}")["items"]
    assert {one["metadata"]["name"]: one["spec"]["image"] for one in listed} == {"one": "c4ts", "two": "other"}


def test_who_has_applied_one_version_may_apply_the_other(rig, backends, namespace):
    """Of what is merged then, the API server has a part converted that has no metadata."""
    backends.apply("v1", "v2", stored="v2")
    backends.served("v1")
    backends.served("v2")

    def applied(version, **spec):
        return rig.apply({"apiVersion": f"{GROUP}/{version}", "kind": backends.kind, "metadata": {"name": "one", "namespace": namespace,
                          "annotations": {"applied": version}}, "spec": spec})
    applied("v1", image="x", replicas=1, labels={"a": "b"})
    eventually(lambda: is_ready(backends.get("v2", "one", namespace)), "the instance is Ready", 60)
    again = applied("v2", img="x", replicas=2)

    assert again["spec"]["replicas"] == 2 and again["metadata"]["annotations"]["applied"] == "v2"


def test_instances_move_to_the_version_that_is_stored_now_and_the_old_one_can_go(rig, backends, namespace):
    backends.apply("v1", stored="v1", converter=None)
    for index in range(30):
        backends.create("v1", f"b-{index}", namespace, {"image": f"i{index}", "replicas": index})
    backends.apply("v1", "v2", stored="v2")

    def migrated():
        found = condition(rig.get(*AIRWAY, backends.name), "StorageMigrated")
        return found.get("status") == "True" and found
    assert eventually(migrated, "all instances are rewritten", 120)["message"] == "all instances are stored in version v2"
    assert backends.crd()["status"]["storedVersions"] == ["v2"]
    # Values that the API server refuses, although they may be stored.
    backends.apply("v2", stored="v2")

    def images():
        try:
            return {one["spec"]["img"] for one in rig.list(f"{GROUP}/v2", backends.kind, namespace)}
        except ApiError as error:
            assert error.status == 429, error
            return None
    assert eventually(images, "the API server has taken the definition in", 60) == {f"i{index}" for index in range(30)}


def test_a_host_that_is_killed_while_instances_move_begins_again(rig, webhook_host, backends, namespace):
    backends.apply("v2", stored="v2")
    for index in range(30):
        # Each slow one takes two seconds to be converted: there is time to kill the host.
        backends.create("v2", f"b-{index:02}", namespace, {"img": "x", "replicas": index}, **({"converter": "slow"} if index >= 25 else {}))

    def instances(version):
        return [try_to(backends.get, version, f"b-{index:02}", namespace) for index in range(30)]
    eventually(lambda: all(is_ready(one) for one in instances("v2")), "all instances are Ready", 120)
    before = backends.get("v2", "b-00", namespace)["metadata"]["resourceVersion"]
    manifest = backends.manifest("v1", "v2", stored="v1")
    eventually(lambda: try_to(rig.apply, manifest), "the Airway is accepted", COMPILED)
    eventually(lambda: backends.get("v2", "b-00", namespace)["metadata"]["resourceVersion"] != before, "the first one is rewritten", 120)
    webhook_host.kill()
    try:
        # Without a host only what is stored in v1 is read in v1.
        moved = [bool(one) for one in instances("v1")]
        assert any(moved) and not all(moved), moved
        assert backends.crd()["status"]["storedVersions"] == ["v2", "v1"]
    finally:
        webhook_host.start()

    eventually(lambda: backends.crd()["status"]["storedVersions"] == ["v1"], "the migration ends", 180)
    webhook_host.stop()
    try:
        assert [one["spec"] for one in instances("v1")] == [{"image": "x", "replicas": index} for index in range(30)]
    finally:
        webhook_host.start()
    eventually(lambda: condition(rig.get(*AIRWAY, backends.name), "StorageMigrated").get("status") == "True", "the condition says so", 60)


def test_a_host_that_ends_before_it_has_told_of_the_last_instance_tells_later(rig, webhook_host, backends, namespace):
    backends.apply("v2", stored="v2")
    backends.create("v2", "one", namespace, {"img": "x", "replicas": 1})
    backends.apply("v1", "v2", stored="v1")

    def told():
        return condition(rig.get(*AIRWAY, backends.name), "StorageMigrated")
    done = eventually(lambda: told().get("status") == "True" and told(), "the migration ends", 120)
    webhook_host.kill()
    # As the host leaves it that ends between its last two writes.
    conditions = rig.get(*AIRWAY, backends.name)["status"]["conditions"]
    unfinished = {**done, "status": "False", "reason": "InProgress", "message": "0 of 1 instances were rewritten in version v1"}
    rig.patch(*AIRWAY, backends.name, {"status": {"conditions": [unfinished if one == done else one for one in conditions]}}, subresource="status")
    webhook_host.start()

    eventually(lambda: told().get("status") == "True", "the new host says so", 120)


def test_an_instance_that_cannot_be_converted_is_named_and_tried_again(rig, backends, namespace):
    backends.apply("v2", stored="v2")
    backends.create("v2", "good", namespace, {"img": "x", "replicas": 1})
    backends.create("v2", "slow", namespace, {"img": "x", "replicas": 1}, converter="slow")
    backends.apply("v1", "v2", stored="v1", timeout="500ms")

    def complaint():
        found = condition(rig.get(*AIRWAY, backends.name), "StorageMigrated")
        return found.get("reason") == "Error" and found["message"]
    words = eventually(complaint, "the condition says which instance", 60)
    assert words.startswith("1 of 2 instances were rewritten in version v1: ") and f"{namespace}/slow" in words and "execution timeout" in words
    assert backends.crd()["status"]["storedVersions"] == ["v2", "v1"]
    backends.apply("v1", "v2", stored="v1", timeout="15s")
    eventually(lambda: backends.crd()["status"]["storedVersions"] == ["v1"], "it is rewritten", 120)


@pytest.mark.parametrize("how, words", [
    ("loop", "execution timeout (500ms)"),
    ("exit", "the converter exited with code 3: the converter is out of order"),
    ("garbage", "the converter printed no ConversionReview"),
    ("lie", "conversion webhook"),
    ("fewer", "0 objects"),
    ("metadata", "must have the same name"),
    ("refuse", "backends of this kind cannot be converted"),
])
def test_a_converter_that_fails_costs_that_read_alone(rig, backends, namespace, how, words):
    backends.apply("v1", "v2", stored="v2", timeout="500ms")
    backends.create("v2", "bad", namespace, {"img": "x", "replicas": 1}, converter=how)
    backends.create("v2", "good", namespace, {"img": "x", "replicas": 1})

    with pytest.raises(ApiError) as refusal:
        backends.get("v1", "bad", namespace)
    assert words in str(refusal.value)
    assert backends.get("v1", "good", namespace)["spec"]["image"] == "x"
    eventually(lambda: is_ready(backends.get("v2", "bad", namespace)), "the instance is carried out", 60)


def conversions_of(host, airway):
    """The recorded turns of an Airway that an event caused, with that event; runs for its instances have other causes."""
    command = [str(BINARY), "timeline", f"airways.yoke.cd/{airway}", f"--module-cache-dir={host.directory / 'cache'}", "--turns=1000", "-o", "json"]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=30)
    turns = json.loads(done.stdout)["turns"] if done.returncode == 0 else []
    return [(turn, cause["event"]) for turn in turns for cause in turn["causes"] if "event" in cause]


def test_each_run_of_a_converter_is_recorded_as_a_turn_of_its_airway_without_objects(rig, webhook_host, backends, namespace):
    airway = backends.apply("v1", "v2", stored="v2")
    backends.create("v2", "good", namespace, {"img": "of-no-record", "replicas": 1})
    backends.create("v2", "bad", namespace, {"img": "x", "replicas": 1}, converter="exit")
    backends.get("v1", "good", namespace)
    with pytest.raises(ApiError):
        backends.get("v1", "bad", namespace)

    def seen():
        found = [turn for turn, event in conversions_of(webhook_host, backends.name) if event == f"conversion of {backends.kind} to {GROUP}/v1, objects: 1"]
        return {"completed", "failed"} <= {turn["outcome"] for turn in found} and found
    for turn in eventually(seen, "both runs are recorded", 60):
        assert (turn["contract"], turn["module"], turn["requests"]) == ("airway", airway["status"]["converter"]["sha256"], [])
        assert turn["cpuMicroseconds"] > 0 and turn["memoryBytes"] > 0 and turn["ranMicroseconds"] > 0
    assert all(b"of-no-record" not in file.read_bytes() for file in (webhook_host.directory / "cache/recorder").glob("turns-*.rec"))


def test_a_long_list_is_converted_in_order_and_as_a_whole(rig, webhook_host, backends):
    """The converter may get it in parts."""
    backends.apply("v1", "v2", stored="v2")
    count = 300
    objects = [{"apiVersion": f"{GROUP}/v2", "kind": backends.kind, "metadata": {"name": f"b-{index:03}", "namespace": "default", "uid": f"u-{index}"},
                "spec": {"img": "x" * 2000, "replicas": index}, "status": {"index": index}} for index in range(count)]

    def response():
        body = json.dumps({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": {
            "uid": "asked", "desiredAPIVersion": f"{GROUP}/v1", "objects": objects}})
        status, text = ask(webhook_host, f"{CONVERSIONS}{backends.name}", body)
        assert status == 200, text
        return json.loads(text)["response"]

    assert response() == {"uid": "asked", "result": {"status": "Success"}, "convertedObjects": [
        {**one, "apiVersion": f"{GROUP}/v1", "spec": {"image": "x" * 2000, "replicas": one["spec"]["replicas"]}} for one in objects]}
    for how, words in (("refuse", "backends of this kind cannot be converted"), ("exit", "the converter is out of order")):
        objects[-1]["metadata"]["labels"] = {"converter": how}
        refused = response()
        assert refused["result"]["status"] == "Failure" and words in refused["result"]["message"]
    objects[-1]["metadata"]["labels"] = {"converter": "fewer"}
    # The API server refuses either of them.
    short = response()
    assert short["result"]["status"] == "Failure" or not short["convertedObjects"]


def test_what_has_one_version_depends_on_no_host(rig, backends):
    airway = backends.apply("v2", stored="v2")

    assert backends.crd()["spec"]["conversion"]["strategy"] == "None"
    assert "converter" not in airway["status"]


def test_the_converter_goes_with_the_last_other_version(rig, backends):
    backends.apply("v1", "v2", stored="v2")
    assert backends.crd()["spec"]["conversion"]["strategy"] == "Webhook"

    airway = backends.apply("v2", stored="v2")
    assert backends.crd()["spec"]["conversion"] == {"strategy": "None"}
    assert "converter" not in airway["status"]
    assert not [one for one in airway["status"]["conditions"] if one["type"] == "ConverterUpToDate"]


def test_a_certificate_that_is_made_anew_reaches_the_kind(rig, webhook_host, backends, namespace):
    backends.apply("v1", "v2", stored="v2")
    backends.create("v2", "one", namespace, {"img": "x", "replicas": 1})
    trusted = backends.crd()["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"]
    rig.delete("v1", "Secret", "hangar-webhook", webhook_host.namespace)

    def trusts_another():
        return backends.crd()["spec"]["conversion"]["webhook"]["clientConfig"]["caBundle"] != trusted
    eventually(trusts_another, "the API server is told of the new authority", 60)

    eventually(lambda: is_converted(backends, "one", namespace), "conversions go on", 60)


class Load:
    """Writes instances in v2, which is reviewed, and reads them in v1, which is converted, one after the other."""

    def __init__(self, backends, namespace):
        self.rounds, self.errors = 0, []  # Rounds without an error.
        self._backends, self._namespace, self._ended = backends, namespace, threading.Event()

    def run(self):
        number = 0
        while not self._ended.wait(0.05):
            number += 1
            name = f"load-{number}"
            try:
                self._backends.cluster.create({"apiVersion": f"{GROUP}/v2", "kind": self._backends.kind, "spec": {"img": "x", "replicas": 1},
                                               "metadata": {"name": name, "namespace": self._namespace}})
                assert self._backends.get("v1", name, self._namespace)["spec"]["image"] == "x"
                self.rounds += 1
            except ApiError as error:
                self.errors.append(str(error))
            try_to(self._backends.cluster.delete, f"{GROUP}/v2", self._backends.kind, name, self._namespace)

    def goes_on(self, rounds=10):
        enough = self.rounds + rounds
        eventually(lambda: self.rounds >= enough, f"{rounds} more rounds succeed", 60)

    def end(self):
        self._ended.set()


@contextlib.contextmanager
def under_load(backends, namespace):
    load = Load(backends, namespace)
    thread = threading.Thread(target=load.run)
    thread.start()
    try:
        load.goes_on()
        load.errors.clear()  # The review of a new kind is in force a moment later.
        yield load
    finally:
        load.end()
        thread.join()


def trusted(rig, backends):
    """What the API server trusts for the kind's conversions and for all reviews."""
    webhooks = [one["webhooks"][0] for one in configurations(rig, "webhooks").values()]
    return {bundle_of(webhook) for webhook in [backends.crd()["spec"]["conversion"]["webhook"], *webhooks]}


def test_a_ca_that_is_made_anew_costs_only_what_is_asked_meanwhile(rig, webhook_host, backends, namespace):
    backends.apply("v1", "v2", stored="v2")
    for version in ("v1", "v2"):
        backends.served(version)
    with under_load(backends, namespace) as load:
        for _ in range(2):
            before = authorities_of(rig, "webhooks")
            rig.delete(*SECRET, "webhooks")
            eventually(lambda: rig.get(*SECRET, "webhooks"), "there is another CA", 60)
            eventually(lambda: trusted(rig, backends) == {authorities_of(rig, "webhooks")}, "the API server is told of it", 60)
            assert authorities_of(rig, "webhooks") != before
            load.goes_on()
            meanwhile = len(load.errors)
            load.goes_on(30)
            assert len(load.errors) == meanwhile, load.errors[meanwhile:]
    assert all("x509: certificate signed by unknown authority" in error for error in load.errors), load.errors


def older_authority(directory):
    """The files of a CA that was made long ago, and of its key."""
    (directory / "index.txt").touch()
    (directory / "ca.cnf").write_text(f"""
        [ca]
        default_ca = own
        [own]
        database = {directory}/index.txt
        new_certs_dir = {directory}
        rand_serial = yes
        default_md = sha256
        policy = any
        x509_extensions = authority
        [any]
        commonName = supplied
        [authority]
        basicConstraints = critical,CA:TRUE
        subjectKeyIdentifier = hash
        """)
    key, request, certificate = (directory / f"next.{end}" for end in ("key", "csr", "crt"))
    openssl("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=next", "-keyout", str(key), "-out", str(request))
    openssl("ca", "-batch", "-selfsign", "-notext", "-config", str(directory / "ca.cnf"), "-keyfile", str(key), "-in", str(request), "-out", str(certificate),
            "-startdate", "20200101000000Z", "-enddate", "20450101000000Z")
    return certificate, key


def test_nobody_notices_that_the_ca_is_renewed(rig, webhook_host, backends, namespace, tmp_path):
    """The next CA is published first; it signs when the certificate of the server is about to expire."""
    def put(**files):
        rig.patch(*SECRET, {"data": {key.replace("_", "."): base64.b64encode(data).decode() for key, data in files.items()}}, "webhooks")
    backends.apply("v1", "v2", stored="v2")
    for version in ("v1", "v2"):
        backends.served(version)
    for key, value in rig.get(*SECRET, "webhooks")["data"].items():
        (tmp_path / key).write_bytes(base64.b64decode(value))
    next_certificate, next_key = older_authority(tmp_path)
    (tmp_path / "names").write_text("subjectAltName=IP:127.0.0.1")
    openssl("req", "-new", "-key", str(tmp_path / "tls.key"), "-subj", "/CN=hangar", "-out", str(tmp_path / "tls.csr"))
    openssl("x509", "-req", "-CA", str(tmp_path / "ca.crt"), "-CAkey", str(tmp_path / "ca.key"), "-days", "2", "-set_serial", "7",
            "-extfile", str(tmp_path / "names"), "-in", str(tmp_path / "tls.csr"), "-out", str(tmp_path / "expires.crt"))

    with under_load(backends, namespace) as load:
        both = next_certificate.read_bytes() + (tmp_path / "ca.crt").read_bytes()
        put(ca_crt=both, ca_key=next_key.read_bytes())
        eventually(lambda: trusted(rig, backends) == {both.decode()}, "the API server is told of both", 60)
        assert not is_trusted(webhook_host, next_certificate.read_text())
        load.goes_on()
        put(tls_crt=(tmp_path / "expires.crt").read_bytes())
        eventually(lambda: is_trusted(webhook_host, next_certificate.read_text()), "the next CA has signed", 60)
        load.goes_on(30)
    assert not load.errors


def test_a_host_that_does_not_lead_converts_too(rig, webhook_host, backends, namespace, tmp_path):
    backends.apply("v1", "v2", stored="v2")
    stored = {"apiVersion": f"{GROUP}/v2", "kind": backends.kind, "metadata": {"name": "one", "namespace": namespace, "uid": "u"},
              "spec": {"img": "x", "replicas": 1}}
    body = json.dumps({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": {
        "uid": "asked", "desiredAPIVersion": f"{GROUP}/v1", "objects": [stored]}})

    with standby(rig, namespace, tmp_path) as other:
        def answered():
            """While it compiles the converter, it says that it could not convert."""
            status, text = ask(other, f"{CONVERSIONS}{backends.name}", body)
            response = json.loads(text)["response"] if status == 200 else {}
            return response.get("result", {}).get("status") == "Success" and response
        response = eventually(answered, "it converts", COMPILED)

    assert response["uid"] == "asked"
    assert response["convertedObjects"] == [{**stored, "apiVersion": f"{GROUP}/v1", "spec": {"image": "x", "replicas": 1}}]


@pytest.mark.parametrize("stored, spec", [("v2", {"img": "x", "replicas": 1}), ("v1", {"image": "x", "replicas": 1})])
def test_without_a_host_an_instance_its_resources_and_its_namespace_can_go(rig, webhook_host, backends, namespace, stored, spec):
    """Apart from the finalizer, which waits for a host. The cluster itself asks for the newest version."""
    backends.apply("v1", "v2", stored=stored)
    for name in ("one", "two"):
        backends.create(stored, name, namespace, spec)
        eventually(lambda name=name: rig.get(*CONFIG_MAP, name, namespace), f"{name} is carried out", 60)

    def is_being_deleted(name):
        return "deletionTimestamp" in backends.get(stored, name, namespace)["metadata"]

    def release(name):
        eventually(lambda: is_being_deleted(name), f"{name} is being deleted", 60)
        rig.patch(f"{GROUP}/{stored}", backends.kind, name, {"metadata": {"finalizers": None}}, namespace)
    webhook_host.stop()
    try:
        assert backends.crd()["spec"]["conversion"]["strategy"] == "Webhook"
        rig.delete(f"{GROUP}/{stored}", backends.kind, "one", namespace)
        release("one")
        if stored == "v2":
            eventually(lambda: rig.get(*CONFIG_MAP, "one", namespace) is None, "what the instance owned is gone", 90)
        rig.delete("v1", "Namespace", namespace)
        if stored == "v1":
            def complaint():
                return condition(rig.get("v1", "Namespace", namespace, None), "NamespaceDeletionContentFailure").get("message", "")
            eventually(lambda: "conversion webhook" in complaint(), "the namespace says what it waits for", 60)
            # As docs/operating/lifecycle.md describes it.
            rig.patch(*CRD, backends.name, {"spec": {"conversion": {"strategy": "None", "webhook": None}}})
        release("two")
        eventually(lambda: rig.get("v1", "Namespace", namespace, None) is None, "the namespace is gone", 90)
    finally:
        webhook_host.start()


def test_without_a_host_what_is_stored_can_still_be_read_and_collected(rig, webhook_host, backends, namespace):
    backends.apply("v1", "v2", stored="v2")
    backends.create("v2", "one", namespace, {"img": "x", "replicas": 1})
    webhook_host.stop()
    try:
        assert backends.get("v2", "one", namespace)["spec"]["img"] == "x"
        assert rig.kubectl("get", f"{backends.plural}.v2.{GROUP}", "-n", namespace, "-o", "jsonpath={.items[*].metadata.name}") == "one"
        with pytest.raises(ApiError, match="conversion webhook"):
            backends.get("v1", "one", namespace)
        # As docs/operating/lifecycle.md describes it for a host that will not come back.
        rig.patch(*CRD, backends.name, {"spec": {"conversion": {"strategy": "None", "webhook": None}}})
        eventually(lambda: try_to(backends.get, "v1", "one", namespace), "nobody is asked any more", 60)
    finally:
        webhook_host.start()
    eventually(lambda: backends.crd()["spec"]["conversion"]["strategy"] == "Webhook", "the host puts it back", 60)
    eventually(lambda: is_converted(backends, "one", namespace), "conversions work again", 60)
