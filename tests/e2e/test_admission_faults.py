"""Webhooks while something breaks: hosts that are killed, certificates that expire, Airways that go."""
import base64
import concurrent.futures
import contextlib
import http.client
import json
import os
import pathlib
import signal
import ssl
import subprocess

import pytest

import airways
from airways import flight, instance
from cluster import ApiError, eventually, is_ready, try_to
from conftest import COMPILED
from host import Host, free_port
from processes import children
from test_conversion import Backends, is_converted
from webhooks import (BINDING, CONFIGURATION, GROUP, POLICY, Authority, ask, authorities_of, bundle_of, configurations, create, is_trusted, kept_by,
                      refused, remove_configurations, review, wait_registered, webhook_flags)

AIRWAY = ("yoke.cd/v1alpha1", "Airway")
CRD = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
SECRET = ("v1", "Secret", "hangar-webhook")


@pytest.fixture(scope="module")
def rig(own_cluster):
    return own_cluster


@pytest.fixture
def home(rig, unique):
    """The namespace of a test's hosts, and of its instances: those of another test keep their resources."""
    rig.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": f"home-{unique}"}})
    return f"home-{unique}"


@pytest.fixture
def hosts(rig, home, tmp_path):
    """Starts hosts that the API server reaches by the first one's port."""
    made = []

    def start(*flags, wait=True, **options):
        port = free_port()
        reached = made[0].webhook_port if made else port
        host = Host(rig.kubeconfig, tmp_path / f"host-{len(made)}", *webhook_flags(port, home, *flags, reached=reached, **options), wait=False)
        host.webhook_port, host.namespace = port, home
        made.append(host)
        if wait:
            host.wait_ready()
            wait_registered(rig, home)
        return host
    yield start
    for host in made:
        host.stop()
    remove_configurations(rig, home)


@pytest.fixture
def kind(rig, unique, home):
    """Makes an Airway with the flight `behave`, whose webhook is in force."""
    def make():
        name = f"F{unique}"
        plural = f"{name.lower()}s"
        rig.apply(airways.airway(plural, name, flight("behave"), group=GROUP))
        rig.learn(f"{GROUP}/v1", name, plural)
        eventually(lambda: is_ready(rig.get(*AIRWAY, f"{plural}.{GROUP}")), "the Airway is Ready", COMPILED)
        wait_registered(rig, home, f"{plural}.{GROUP}")
        refused(rig, name, "probe", "basic", "default", exitCode=1)
        return name
    return make


def cpu_seconds(host):
    """Process -> seconds, of the host and all below it. A compiler that ends takes its time along."""
    seconds, pids = {}, [host.process.pid]
    for pid in pids:
        pids += children(pid)
        with contextlib.suppress(OSError):  # It has just ended.
            fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
            seconds[pid] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return seconds


def test_a_host_that_is_killed_in_the_middle_of_a_review_lets_nothing_through(rig, hosts, home, kind):
    host = hosts()
    name = kind()
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        before = cpu_seconds(host)
        creation = pool.submit(create, rig, name, "one", "endless", home)
        eventually(lambda: any(now > before.get(pid, 0) + 0.5 for pid, now in cpu_seconds(host).items()), "the flight runs")
        host.kill()
        with pytest.raises(ApiError, match="failed calling webhook"):
            creation.result()
    assert rig.get(f"{GROUP}/v1", name, "one", home) is None

    host.start()
    eventually(lambda: try_to(create, rig, name, "one", "basic", home, data={"a": "b"}), "the host is asked again", 60)
    eventually(lambda: is_ready(rig.get(f"{GROUP}/v1", name, "one", home)), "the instance is carried out", 60)


def test_a_module_that_takes_longer_than_a_review_is_made_ready_all_the_same(hosts, tmp_path):
    authority = Authority(tmp_path, "clients")
    host = hosts(f"--webhook-client-ca-file={authority.certificate}")
    shown = authority.sign("kube-apiserver")
    # One that nobody has compiled: with a custom section of its own.
    name = os.urandom(8).hex().encode()
    module = tmp_path / "new.wasm"
    module.write_bytes(pathlib.Path(flight("basic")).read_bytes() + bytes([0, len(name) + 2, len(name)]) + name + b"\0")
    manifest = airways.airway("slows", "Slow", str(module), group=GROUP)
    manifest["metadata"]["uid"] = "u"
    body = review(kind={"group": "yoke.cd", "version": "v1alpha1", "kind": "Airway"}, name="slows", object=manifest)

    def answer(timeout):
        return json.loads(ask(host, f"/validations/airways.yoke.cd?timeout={timeout}", body, shown=shown)[1])["response"]

    def compiled():
        return set((host.directory / "cache/code").glob("*.cwasm"))
    before = compiled()
    assert "still being fetched and compiled; try again" in answer("200ms")["status"]["message"]
    eventually(lambda: compiled() > before, "it is compiled while nobody asks", COMPILED)
    later = answer("30s")
    assert later["allowed"], later


def test_an_airway_that_is_deleted_while_a_review_runs_goes_with_everything(rig, hosts, home, kind):
    """Two run: of an instance that its flight accepts, and of one that is refused when its time is over."""
    host = hosts()
    name = kind()
    plural = f"{name.lower()}s"
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        before = cpu_seconds(host)
        accepted = pool.submit(try_to, create, rig, name, "one", "sleep", home, milliseconds=4000)
        endless = pool.submit(try_to, create, rig, name, "two", "endless", home)
        eventually(lambda: any(now > before.get(pid, 0) + 0.5 for pid, now in cpu_seconds(host).items()), "the reviews run")
        assert not endless.done()
        rig.delete(*AIRWAY, f"{plural}.{GROUP}")
        accepted.result()
        assert not endless.result(), "it is refused"
    eventually(lambda: rig.get(*AIRWAY, f"{plural}.{GROUP}") is None, "the Airway is gone", 90)
    assert rig.get(*CRD, f"{plural}.{GROUP}") is None and rig.get("v1", "ConfigMap", "one", home) is None
    eventually(lambda: f"{plural}.{GROUP}" not in configurations(rig, host.namespace), "its configuration is gone", 60)
    assert host.process.poll() is None


def test_what_a_feature_has_registered_goes_once_the_feature_is_off(rig, hosts, home):
    def is_kept(*names):
        return all(kept_by(rig, home, kind) == {f"hangar-{name}-children" for name in names} for kind in (POLICY, BINDING))
    both = hosts(features="airways,flights")
    wait_registered(rig, home, "hangar-flights")
    eventually(lambda: is_kept("airway", "flight", "clusterflight"), "the policies of both features are there", 60)
    both.stop()

    hosts(features="airways")

    eventually(lambda: is_kept("airway"), "the policies of Flights are gone", 60)
    eventually(lambda: "hangar-flights" not in configurations(rig, home), "the configuration of Flights is gone", 60)


@pytest.mark.parametrize("flags", [("--leader-elect",), ()], ids=["one leads", "each takes itself for the leader"])
def test_two_hosts_that_begin_at_once_register_the_same(rig, hosts, home, kind, flags):
    both = [hosts(*flags, wait=False) for _ in range(2)]
    for host in both:
        host.wait_ready()
    authorities = authorities_of(rig, home)

    for host in both:
        eventually(lambda host=host: is_trusted(host, authorities), "each shows a certificate of the same authority", 60)
    wait_registered(rig, home)
    plural = f"{kind().lower()}s.{GROUP}"
    assert {"hangar-airways", plural} <= set(configurations(rig, home))
    eventually(lambda: {bundle_of(one["webhooks"][0]) for one in configurations(rig, home).values()} == {authorities}, "the API server trusts that one", 60)
    assert kept_by(rig, home, POLICY) == kept_by(rig, home, BINDING) == {"hangar-airway-children"}
    assert len(rig.list("v1", "Secret", home)) == 1
    # Nothing is written again and again.
    versions = {name: one["metadata"]["resourceVersion"] for name, one in configurations(rig, home).items()}
    create(rig, plural.partition(".")[0][:-1].capitalize(), "one", "basic", home)
    eventually(lambda: rig.get("v1", "ConfigMap", "one", home), "an instance is carried out", 60)
    assert {name: one["metadata"]["resourceVersion"] for name, one in configurations(rig, home).items()} == versions


def openssl(*arguments, stdin=None):
    return subprocess.run(["openssl", *arguments], input=stdin, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout


def test_a_certificate_that_has_expired_is_made_anew(rig, hosts, tmp_path):
    host = hosts()
    data = {key: base64.b64decode(value) for key, value in rig.get(*SECRET, host.namespace)["data"].items()}
    for key, value in data.items():
        (tmp_path / key).write_bytes(value)
    request = openssl("req", "-new", "-key", str(tmp_path / "tls.key"), "-subj", "/CN=127.0.0.1")
    expired = openssl("x509", "-req", "-CA", str(tmp_path / "ca.crt"), "-CAkey", str(tmp_path / "ca.key"), "-days", "-1", "-set_serial", "7", stdin=request)
    rig.patch(*SECRET, {"data": {"tls.crt": base64.b64encode(expired).decode()}}, host.namespace)

    def renewed():
        now = rig.get(*SECRET, host.namespace)["data"]["tls.crt"]
        return base64.b64decode(now) not in (expired, data["tls.crt"])
    eventually(renewed, "the Secret has another certificate", 90)
    eventually(lambda: is_trusted(host, authorities_of(rig, host.namespace)), "the host shows one that is valid", 60)


def test_certificate_files_that_are_replaced_are_used_without_a_restart(rig, hosts, home, unique, tmp_path):
    first, second = (Authority(tmp_path, name) for name in ("first", "second"))
    mounted = tmp_path / "mounted"
    mounted.symlink_to(first.serve(tmp_path / "before"))
    host = hosts(f"--webhook-certificate-dir={mounted}")

    def trusted():
        return bundle_of(configurations(rig, home)["hangar-airways"]["webhooks"][0])
    assert is_trusted(host, first.certificate.read_text()) and trusted() == first.certificate.read_text()
    assert rig.get(*SECRET, home) is None

    # All files at once, as the kubelet does it.
    (tmp_path / "next").symlink_to(second.serve(tmp_path / "after"))
    (tmp_path / "next").rename(mounted)

    eventually(lambda: is_trusted(host, second.certificate.read_text()), "the host shows the new certificate", 60)
    eventually(lambda: trusted() == second.certificate.read_text(), "the API server is told of the new authority", 60)
    assert not is_trusted(host, first.certificate.read_text())
    invalid = airways.airway(f"{unique}s", f"Invalid{unique}", flight("basic"), group=GROUP)
    invalid["spec"]["template"]["versions"][0]["storage"] = False

    def is_reviewed():
        try:
            rig.create(invalid)
        except ApiError as error:
            return "denied the request" in str(error)
    eventually(is_reviewed, "the API server reaches the host again", 60)


def test_a_secret_of_somebody_else_is_used_and_never_written(rig, hosts, home, tmp_path):
    first, second = (Authority(tmp_path, name) for name in ("first", "second"))

    def data(authority):
        directory = authority.serve(tmp_path / f"of-{authority.certificate.stem}")
        return {one.name: base64.b64encode(one.read_bytes()).decode() for one in directory.iterdir()}
    rig.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": SECRET[2], "namespace": home}, "data": data(first)})
    host = hosts()
    assert is_trusted(host, first.certificate.read_text()) and bundle_of(configurations(rig, home)["hangar-airways"]["webhooks"][0]) == first.certificate.read_text()

    renewed = data(second)
    rig.patch(*SECRET, {"data": renewed}, home)

    eventually(lambda: is_trusted(host, second.certificate.read_text()), "the host shows the new certificate", 60)
    eventually(lambda: bundle_of(configurations(rig, home)["hangar-airways"]["webhooks"][0]) == second.certificate.read_text(), "the API server is told", 60)
    assert rig.get(*SECRET, home)["data"] == renewed


INJECTED = "cert-manager.io/inject-ca-from"


def test_what_the_injector_of_cert_manager_writes_stays(rig, hosts, home, unique):
    hosts("--webhook-ca-from=certs/webhooks")
    trusted = base64.b64encode(authorities_of(rig, home).encode()).decode()

    def inject(kind, name, where):
        """As the injector does it, into an object that asks for it."""
        found = rig.get(*kind, name, None)
        assert found["metadata"]["annotations"][INJECTED] == "certs/webhooks"
        rig.request("PATCH", rig.path(*kind, None, name), [{"op": "add", "path": f"{where}/clientConfig/caBundle", "value": trusted}],
                    "application/json-patch+json")

    def is_put_back(kind, name):
        rig.patch(*kind, name, {"metadata": {"annotations": {INJECTED: None}}}, None)
        return eventually(lambda: (lambda one: INJECTED in one["metadata"].get("annotations", {}) and one)(rig.get(*kind, name, None)),
                          f"the annotation of {name} is there again", 60)
    webhook, = rig.get(*CONFIGURATION, "hangar-airways", None)["webhooks"]
    assert not bundle_of(webhook)
    inject(CONFIGURATION, "hangar-airways", "/webhooks/0")

    backends = Backends(rig, unique)
    backends.apply("v1", "v2", stored="v2")
    inject(CRD, backends.name, "/spec/conversion/webhook")
    wait_registered(rig, home, backends.name)
    inject(CONFIGURATION, backends.name, "/webhooks/0")
    eventually(lambda: try_to(backends.create, "v2", "one", home, {"img": "x", "replicas": 1}), "instances are reviewed", COMPILED)
    eventually(lambda: is_converted(backends, "one", home), "instances are converted", 60)

    # What the host applies again leaves the bundle alone.
    for name in ("hangar-airways", backends.name):
        assert bundle_of(is_put_back(CONFIGURATION, name)["webhooks"][0]) == authorities_of(rig, home)
    assert bundle_of(is_put_back(CRD, backends.name)["spec"]["conversion"]["webhook"]) == authorities_of(rig, home)
    rig.delete(*AIRWAY, backends.name)
    eventually(lambda: rig.get(*AIRWAY, backends.name) is None, "the Airway is gone", 90)


def test_a_host_that_ends_answers_reviews_until_its_drain_is_over(hosts, kind):
    host = hosts(drain="5s")
    name = kind()
    connection = http.client.HTTPSConnection("127.0.0.1", host.webhook_port, context=ssl._create_unverified_context(), timeout=30)
    slow = instance(name, "slow", {"behaviour": "sleep", "milliseconds": 1500, "exitCode": 1, "stderr": "at its end"}, "default", group=GROUP, uid="u")
    connection.request("POST", f"/validations/{name.lower()}s.{GROUP}?timeout=10s",
                       review(kind={"group": GROUP, "version": "v1", "kind": name}, namespace="default", name="slow", object=slow))

    host.process.send_signal(signal.SIGTERM)

    eventually(lambda: ask(host, "/ready", None, "GET")[0] == 503, "it leaves the Service")
    status, text = host.get("/readyz")
    assert status == 500 and "webhooks failed: this host is ending" in text, text
    status, text = ask(host, "/validations/airways.yoke.cd", review())
    assert status == 200 and json.loads(text)["response"]["uid"] == "u", text
    response = json.loads(connection.getresponse().read())["response"]
    assert "at its end" in response["status"]["message"], response
    connection.close()
    assert host.process.wait(60) == 0
