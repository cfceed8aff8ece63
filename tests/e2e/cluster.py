"""A real control plane, and a small client of its API: the world of the tests.

Only the standard library, and nothing of hangar's: these tests check everything from outside.
"""
import base64
import http.client
import json
import os
import pathlib
import shlex
import ssl
import subprocess
import tempfile
import threading
import time
import urllib.parse
import urllib.request

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CORES = len(os.sched_getaffinity(0))

# Where a kind lives: (prefix, plural, namespaced). Kinds made by tests are added with `learn`.
KINDS = {
    ("v1", "ConfigMap"): ("/api/v1", "configmaps", True),
    ("v1", "Secret"): ("/api/v1", "secrets", True),
    ("v1", "Service"): ("/api/v1", "services", True),
    ("v1", "Pod"): ("/api/v1", "pods", True),
    ("v1", "Event"): ("/api/v1", "events", True),
    ("v1", "Namespace"): ("/api/v1", "namespaces", False),
    ("v1", "Node"): ("/api/v1", "nodes", False),
    ("v1", "ServiceAccount"): ("/api/v1", "serviceaccounts", True),
    ("apps/v1", "Deployment"): ("/apis/apps/v1", "deployments", True),
    ("apps/v1", "DaemonSet"): ("/apis/apps/v1", "daemonsets", True),
    ("batch/v1", "Job"): ("/apis/batch/v1", "jobs", True),
    ("coordination.k8s.io/v1", "Lease"): ("/apis/coordination.k8s.io/v1", "leases", True),
    ("apiextensions.k8s.io/v1", "CustomResourceDefinition"): (
        "/apis/apiextensions.k8s.io/v1", "customresourcedefinitions", False),
    **{("admissionregistration.k8s.io/v1", kind): ("/apis/admissionregistration.k8s.io/v1", plural, False) for kind, plural in (
        ("ValidatingWebhookConfiguration", "validatingwebhookconfigurations"), ("ValidatingAdmissionPolicy", "validatingadmissionpolicies"),
        ("ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings"))},
    ("yoke.cd/v1alpha1", "Airway"): ("/apis/yoke.cd/v1alpha1", "airways", False),
    ("yoke.cd/v1alpha1", "Flight"): ("/apis/yoke.cd/v1alpha1", "flights", True),
    ("yoke.cd/v1alpha1", "ClusterFlight"): ("/apis/yoke.cd/v1alpha1", "clusterflights", False),
    ("hangar.dev/v1alpha1", "Operator"): ("/apis/hangar.dev/v1alpha1", "operators", True),
}


class ApiError(Exception):
    """The API server refused a request."""

    def __init__(self, status, body):
        self.status = status
        self.body = body
        super().__init__(f"{status}: {body.get('message', body) if isinstance(body, dict) else body}")


class Cluster:
    """One control plane; ended by close(), and by itself when this process is gone."""

    def __init__(self, *options):
        script = str(ROOT / "dev/control-plane.sh")
        self._script = script
        self.dir = subprocess.run(
            [script, "up", f"--watch-pid={os.getpid()}", *options],
            check=True, stdout=subprocess.PIPE, text=True).stdout.strip().splitlines()[-1]
        exports = subprocess.run([script, "env", "--dir", self.dir], check=True, stdout=subprocess.PIPE, text=True).stdout
        self.env = dict(word.split("=", 1) for line in exports.splitlines() for word in shlex.split(line)[1:])
        self.kubeconfig = self.env["KUBECONFIG"]
        self._context, self._address = self._tls(self.kubeconfig)
        self._local = threading.local()

    def _tls(self, kubeconfig):
        config = json.loads(subprocess.run(
            [self.env["HANGAR_CP_KUBECTL"], "--kubeconfig", kubeconfig, "config", "view", "--raw", "--flatten", "-o", "json"],
            check=True, stdout=subprocess.PIPE).stdout)
        cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
        context = ssl.create_default_context(
            cadata=base64.b64decode(cluster["certificate-authority-data"]).decode())
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as pem:
            pem.write(base64.b64decode(user["client-certificate-data"]).decode())
            pem.write(base64.b64decode(user["client-key-data"]).decode())
            pem.flush()
            context.load_cert_chain(pem.name)
        return context, urllib.parse.urlsplit(cluster["server"])

    def close(self):
        subprocess.run([self._script, "down", "--dir", self.dir], check=True)

    def pids(self):
        """Of the components that were started."""
        return [int(file.read_text().split()[0]) for file in pathlib.Path(self.dir, "run").glob("*.pid")]

    def component(self, verb, name):
        """Stops, kills or starts one component of the control plane."""
        subprocess.run([self._script, verb, name, "--dir", self.dir], check=True, stdout=subprocess.DEVNULL)

    def learn(self, api_version, kind, plural, namespaced=True):
        KINDS[(api_version, kind)] = (f"/apis/{api_version}", plural, namespaced)

    # One request -----------------------------------------------------------------------------

    def request(self, method, path, body=None, content_type="application/json", headers=None):
        """The JSON answer. Connections are kept, one per thread."""
        data = None if body is None else (body if isinstance(body, bytes) else json.dumps(body).encode())
        for attempt in (1, 2):
            connection = getattr(self._local, "connection", None)
            if connection is None:
                connection = http.client.HTTPSConnection(
                    self._address.hostname, self._address.port, context=self._context, timeout=30)
                self._local.connection = connection
            try:
                connection.request(method, path, data, {"Content-Type": content_type, "Accept": "application/json", **(headers or {})})
                answer = connection.getresponse()
                text = answer.read()
                break
            except (http.client.HTTPException, OSError):
                connection.close()
                self._local.connection = None
                if attempt == 2:
                    raise
        parsed = json.loads(text) if text[:1] in (b"{", b"[") else text.decode()
        if answer.status >= 400:
            raise ApiError(answer.status, parsed)
        return parsed

    def path(self, api_version, kind, namespace=None, name=None, subresource=None):
        prefix, plural, namespaced = KINDS[(api_version, kind)]
        parts = [prefix]
        if namespaced and namespace:
            parts += ["namespaces", namespace]
        parts.append(plural)
        parts += [urllib.parse.quote(part) for part in (name, subresource) if part]
        return "/".join(parts)

    def path_of(self, manifest, named=True, subresource=None):
        metadata = manifest["metadata"]
        _, _, namespaced = KINDS[(manifest["apiVersion"], manifest["kind"])]
        namespace = metadata.get("namespace", "default") if namespaced else None
        return self.path(manifest["apiVersion"], manifest["kind"], namespace, metadata["name"] if named else None, subresource)

    # Verbs ------------------------------------------------------------------------------------

    def apply(self, manifest, manager="e2e"):
        return self.request("PATCH", self.path_of(manifest) + f"?fieldManager={manager}&force=true", manifest,
                            "application/apply-patch+yaml")

    def create(self, manifest):
        return self.request("POST", self.path_of(manifest, named=False), manifest)

    def get(self, api_version, kind, name, namespace="default"):
        """The object, or None."""
        try:
            return self.request("GET", self.path(api_version, kind, namespace, name))
        except ApiError as error:
            if error.status == 404:
                return None
            raise

    def list(self, api_version, kind, namespace=None, selector=None):
        query = "?" + urllib.parse.urlencode({"labelSelector": selector}) if selector else ""
        return self.request("GET", self.path(api_version, kind, namespace) + query)["items"]

    def patch(self, api_version, kind, name, patch, namespace="default", subresource=None, manager="e2e"):
        return self.request("PATCH", self.path(api_version, kind, namespace, name, subresource) + f"?fieldManager={manager}",
                            patch, "application/merge-patch+json")

    def delete(self, api_version, kind, name, namespace="default"):
        try:
            self.request("DELETE", self.path(api_version, kind, namespace, name), {"propagationPolicy": "Background"})
        except ApiError as error:
            if error.status != 404:
                raise

    def watch(self, path, resource_version):
        """The events of a watch, one after the other, on a connection of its own; ends when the API server ends it."""
        connection = http.client.HTTPSConnection(self._address.hostname, self._address.port, context=self._context)
        try:
            connection.request("GET", f"{path}?watch=true&resourceVersion={resource_version}")
            for line in connection.getresponse():
                yield json.loads(line)
        finally:
            connection.close()

    def kubectl(self, *arguments, stdin=None):
        return subprocess.run([self.env["HANGAR_CP_KUBECTL"], "--kubeconfig", self.kubeconfig, *arguments], input=stdin, check=True,
                              stdout=subprocess.PIPE, text=True).stdout

    def apply_crds(self, path):
        """Applies the CustomResourceDefinitions of a file or directory, and waits until they are established.

        Not by `kubectl wait`: it fails on one that has no conditions yet.
        """
        applied = self.kubectl("apply", "--server-side", "-o", "name", "-f", str(path)).split()
        names = [name.split("/", 1)[1] for name in applied if name.startswith("customresourcedefinition.")]
        for name in names:
            eventually(lambda: condition(self.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", name), "Established").get("status") == "True", f"{name} is established")


def eventually(look, why, seconds=30.0):
    """The first true value of look(); fails with `why` and the last value seen. `seconds` are those of an idle machine: a
    second in which each core has work for three counts as a third."""
    waited, before = 0.0, time.monotonic()
    while True:
        seen = look()
        if seen:
            return seen
        if waited > seconds:
            raise AssertionError(f"not within {seconds:.0f} s: {why}; last seen: {seen!r}")
        time.sleep(0.02)
        now = time.monotonic()
        waited += (now - before) / max(1.0, os.getloadavg()[0] / CORES)
        before = now


class Refusal:
    """A false value that shows why the API server refused."""

    def __init__(self, error):
        self._error = error

    def __bool__(self):
        return False

    def __repr__(self):
        return f"refused: {self._error}"


def try_to(act, *arguments, **options):
    """The function's result, or a Refusal."""
    try:
        return act(*arguments, **options)
    except ApiError as error:
        return Refusal(error)


def when_compiled(write, seconds=300):
    """The answer to a write that a webhook delays (503) while it fetches and compiles a module."""
    def attempt():
        try:
            return [write()]
        except ApiError as error:
            if error.status != 503:
                raise
            return None
    return eventually(attempt, "the webhook has the module", seconds)[0]


def never(look, why, seconds=2.0):
    """Fails as soon as look() is true within the time."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        seen = look()
        assert not seen, f"{why}: {seen!r}"
        time.sleep(0.05)


def condition(manifest, kind="Ready"):
    """The condition of that type, or an empty one."""
    conditions = ((manifest or {}).get("status") or {}).get("conditions") or []
    return next((one for one in conditions if one["type"] == kind), {})


def is_ready(manifest):
    return condition(manifest).get("status") == "True"


class Proxy:
    """The proxy between the host and the API server, and the faults that it injects."""

    def __init__(self, cluster):
        self.url = cluster.env["HANGAR_CP_TOXIPROXY"]
        self.name = next(iter(self.call("GET", "/proxies")))

    def call(self, method, path, body=None):
        request = urllib.request.Request(self.url + path, json.dumps(body).encode() if body else None, method=method,
                                         headers={"Content-Type": "application/json", "User-Agent": "hangar-e2e"})
        with urllib.request.urlopen(request, timeout=10) as answer:
            text = answer.read()
        return json.loads(text) if text else None

    def enable(self, enabled):
        self.call("POST", f"/proxies/{self.name}", {"enabled": enabled})

    def cut(self):
        """Ends every connection; new ones are accepted at once."""
        self.enable(False)
        self.enable(True)

    def slow(self, milliseconds):
        self.call("POST", f"/proxies/{self.name}/toxics", {"name": "slow", "type": "latency", "attributes": {"latency": milliseconds}})

    def mend(self):
        for toxic in self.call("GET", f"/proxies/{self.name}/toxics"):
            self.call("DELETE", f"/proxies/{self.name}/toxics/{toxic['name']}")
        self.enable(True)
