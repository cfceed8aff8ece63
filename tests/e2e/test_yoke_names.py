"""The program under the names `yoke` and `atc`: for scripts, and for the Deployment of yoke's Air Traffic Controller."""
import base64
import json
import os
import pathlib
import signal
import ssl
import subprocess
import urllib.error
import urllib.request

import pytest

import airways
from airways import flight, instance
from cluster import condition, eventually, is_ready, when_compiled
from conftest import COMPILED, control_plane
from host import BINARY, free_port
from registry import Registry
from users import openssl
from webhooks import CONFIGURATION

GROUP = "atc.hangar.dev"
CRD = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")


def named(directory, name):
    link = directory / name
    if not link.exists():
        link.symlink_to(BINARY)
    return str(link)


@pytest.fixture
def yoke(cluster, tmp_path):
    def run(*arguments, stdin="", environment=None):
        return subprocess.run([named(tmp_path, "yoke"), *arguments], input=stdin, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env={**os.environ, "KUBECONFIG": cluster.kubeconfig, **(environment or {})})
    return run


# yoke ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments, code, words", [
    ([], 1, "no command provided"),
    (["fly"], 1, "unknown command: fly"),
    (["atc"], 1, "hangar top"),
    (["-nothing", "takeoff"], 2, "flag provided but not defined: -nothing"),
    (["takeoff", "--nothing", "web"], 2, "flag provided but not defined: -nothing"),
    (["takeoff", "-wait"], 2, "flag needs an argument: -wait"),
    (["takeoff"], 1, "release is required as first positional arg"),
    (["descent", "web"], 1, "revision is required as second positional arg"),
    (["descent", "web", "one"], 1, 'revision must be an integer ID: strconv.Atoi: parsing "one": invalid syntax'),
    (["mayday", "-namespace", "default"], 1, "release is required"),
    (["sign", "-f"], 1, "wasm file must be specified as first argument"),
    (["host"], 1, "unknown command: host"),
    (["takeoff", "-h"], 0, "--history-cap"),
], ids=lambda value: " ".join(value) if isinstance(value, list) else "")
def test_what_is_wrong_is_said_in_yokes_words_with_its_exit_code(yoke, arguments, code, words):
    done = yoke(*arguments)

    assert (done.returncode, done.stdout) == (code, "") and words in done.stderr, done.stderr


def test_flags_end_at_the_first_name_as_in_go(cluster, yoke, namespace):
    made = json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "it"}, "data": {"a": "1"}})

    done = yoke("-kubeconfig", cluster.kubeconfig, "takeoff", "-namespace", "nowhere", "-namespace", namespace, "web", stdin=made)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "successful takeoff of web\n")
    again = yoke("up", f"--namespace={namespace}", "web", "-", "-force-ownership", stdin=made)
    assert again.returncode == 1 and "left out, as flags stand before names: -force-ownership" in again.stderr, again.stderr
    listed = yoke("inspect", "-namespace", namespace, "web")
    assert listed.returncode == 0 and "│" in listed.stdout, listed.stdout

    gone = yoke("delete", "-namespace", namespace, "web", "-remove-all")
    assert gone.returncode == 0 and "left out, as flags stand before names: -remove-all" in gone.stderr
    assert cluster.get("v1", "ConfigMap", "it", namespace) is None


def test_arguments_behind_two_dashes_are_the_flights(cluster, yoke, namespace, tmp_path):
    done = yoke("takeoff", "-stdout", "-compilation-cache", str(tmp_path / "cache"), "web", flight("behave"), "--", "-env", "prod",
                stdin=json.dumps({"metadata": {"name": "it"}, "spec": {"behaviour": "dump"}}))

    assert done.returncode == 0, done.stderr
    assert json.loads(json.loads(done.stdout)[0]["data"]["argv"]) == ["web", "-env", "prod"]


def test_version_is_a_table(yoke):
    done = yoke("version")
    assert done.returncode == 0 and "│ yoke" in done.stdout and "hangar " in done.stdout


# atc -----------------------------------------------------------------------------------------------


def certificate(directory):
    """Of a server at 127.0.0.1, signed by itself, by the names of yoke's installer."""
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=atc",
            "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(directory / "server.key"), "-out", str(directory / "server.crt"))
    (directory / "ca.crt").write_text((directory / "server.crt").read_text())


class Atc:
    """Its process, with the environment of yoke's Deployment."""

    def __init__(self, cluster, directory, **more):
        certificate(directory)
        self.directory, self.port, self.log = directory, free_port(), directory / "atc.log"
        self.environment = {
            "PORT": str(self.port), "KUBE": cluster.kubeconfig, "CACHE_FS": str(directory), "LOG_FORMAT": "json", "VERBOSE": "true",
            "CONCURRENCY": "4", "DISABLE_CUSTOM_READINESS": "false", "SVC_NAME": "atc-atc", "SVC_NAMESPACE": "default", "SVC_PORT": "80",
            "TLS_CA_CERT": str(directory / "ca.crt"), "TLS_SERVER_CERT": str(directory / "server.crt"), "TLS_SERVER_KEY": str(directory / "server.key"),
            # No Service leads here, and modules are files.
            "HANGAR_WEBHOOK_URL": f"https://127.0.0.1:{self.port}", "HANGAR_WEBHOOK_DRAIN": "0s", "HANGAR_ALLOW_FILE_MODULES": "true",
            "HANGAR_BIND_ADDRESS": f"127.0.0.1:{free_port()}", **more}

    def start(self):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([named(self.directory, "atc")], stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                                            env={"PATH": os.environ["PATH"], **self.environment})
        eventually(self.is_ready, "it answers its probes", 60)

    def is_ready(self):
        assert self.process.poll() is None, self.log.read_text()[-4000:]
        context = ssl.create_default_context(cafile=self.environment["TLS_CA_CERT"])
        try:
            return urllib.request.urlopen(f"https://127.0.0.1:{self.port}/ready", context=context, timeout=5).status == 200
        except (OSError, urllib.error.URLError):
            return False

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


@pytest.fixture(scope="module")
def rig():
    made = control_plane("--with-kcm", "--with-registry")
    yield made
    made.close()


def test_without_what_it_needs_it_ends_and_names_all_of_it(tmp_path):
    done = subprocess.run([named(tmp_path, "atc"), "--port", "none"], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          env={"PATH": os.environ["PATH"], "SVC_NAME": "atc"})

    assert done.returncode == 1
    for words in ("program exiting with error", "failed to load config", "TLS_CA_CERT: field is required", "SVC_NAMESPACE: field is required", "PORT: "):
        assert words in done.stdout, done.stdout
    assert "SVC_NAME: " not in done.stdout


def test_it_stands_in_for_the_original(rig, tmp_path):
    """With its Deployment's environment, a registry's Secret, and what the original left when it was killed."""
    registry = Registry(rig)
    registry.push("flights/behave", "v1", flight("behave"))
    rig.kubectl("delete", "crd", "flights.yoke.cd", "--timeout=60s")
    rig.create({"apiVersion": CONFIGURATION[0], "kind": CONFIGURATION[1], "metadata": {"name": "atc-resources"}, "webhooks": []})
    atc = Atc(rig, tmp_path, DOCKER_CONFIG_SECRET_NAME="registries")
    atc.start()
    try:
        assert rig.get(*CRD, "flights.yoke.cd", None)["metadata"]["managedFields"][0]["manager"] == "yoke"
        assert rig.get(*CONFIGURATION, "atc-resources") is None
        webhook, = eventually(lambda: rig.get(*CONFIGURATION, "hangar-airways"), "its webhooks are registered", 60)["webhooks"]
        assert base64.b64decode(webhook["clientConfig"]["caBundle"]).decode() == (tmp_path / "ca.crt").read_text()

        manifest = airways.airway("backends", "Backend", registry.url("flights/behave", "v1"), group=GROUP, insecure=True)
        when_compiled(lambda: rig.create(manifest))

        def problem():
            return condition(rig.get("yoke.cd/v1alpha1", "Airway", f"backends.{GROUP}")).get("message", "")

        def login(password):
            text = pathlib.Path(registry.docker_config(tmp_path, password)).read_bytes()
            return {"data": {".dockerconfigjson": base64.b64encode(text).decode()}}
        eventually(lambda: "there are no credentials for" in problem(), "the Airway says what is missing", COMPILED)
        rig.create({"apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/dockerconfigjson", "metadata": {"name": "registries", "namespace": "default"},
                    **login("of-last-year")})
        eventually(lambda: "401" in problem(), "the Airway says that the registry refuses", COMPILED)
        rig.patch("v1", "Secret", "registries", login(registry.password))
        rig.learn(f"{GROUP}/v1", "Backend", "backends")
        eventually(lambda: is_ready(rig.get("yoke.cd/v1alpha1", "Airway", f"backends.{GROUP}")), "the Airway is ready", COMPILED)
        when_compiled(lambda: rig.create(instance("Backend", "one", {"behaviour": "basic", "data": {"a": "b"}}, "default", group=GROUP)))
        eventually(lambda: is_ready(rig.get(f"{GROUP}/v1", "Backend", "one", "default")), "the instance is ready", 60)
        assert (tmp_path / "hangar").is_dir() and (tmp_path / "hangar").stat().st_mode & 0o077 == 0
        rig.delete(f"{GROUP}/v1", "Backend", "one", "default")
        rig.delete("yoke.cd/v1alpha1", "Airway", f"backends.{GROUP}")
        eventually(lambda: rig.get("yoke.cd/v1alpha1", "Airway", f"backends.{GROUP}") is None, "the Airway is gone", 60)
    finally:
        assert atc.stop() == 0, atc.log.read_text()[-4000:]
    assert "not as with yoke's Air Traffic Controller" in atc.log.read_text()
