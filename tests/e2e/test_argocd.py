"""`hangar argocd`: the config management plugin for Argo CD and its server, with the environment and the requests that Argo CD and yoke's plugin send."""
import base64
import concurrent.futures
import gzip
import http.client
import json
import os
import pathlib
import shutil
import signal
import subprocess

import pytest
import yaml

from airways import flight
from charts import ROOT
from cluster import eventually
from conftest import COMPILED
from host import BINARY, free_port
from module_server import Modules
from signing import keys, sign

DEPLOY = ROOT / "deploy/argocd"


class Server:
    """`hangar argocd --svr`."""

    def __init__(self, directory, *flags, command=None, port=None, env=None):
        directory.mkdir(parents=True, exist_ok=True)
        self.port, self.log = port or free_port(), directory / "server.log"
        self.url = f"http://127.0.0.1:{self.port}"
        command = command or [str(BINARY), "argocd", "-svr", "--listen", f"127.0.0.1:{self.port}", f"--module-cache-dir={directory / 'cache'}", *flags]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})})
        eventually(self.is_healthy, "the server answers", 60)

    def is_healthy(self):
        assert self.process.poll() is None, self.log.read_text()[-4000:]
        try:
            return self.ask("GET", "/health")[0] == 200
        except OSError:
            return False

    def ask(self, method, path, body=None, headers=None, source="127.0.0.1"):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=COMPILED, source_address=(source, 0))
        try:
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    def execute(self, **request):
        return self.ask("POST", "/exec", json.dumps(request))

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(60)


@pytest.fixture(scope="module")
def server(cluster, tmp_path_factory):
    made = Server(tmp_path_factory.mktemp("argocd"), f"--kubeconfig={cluster.kubeconfig}")
    yield made
    assert made.stop() == 0, made.log.read_text()[-4000:]


@pytest.fixture(scope="module")
def modules():
    made = Modules()
    made.files["/behave.wasm"] = pathlib.Path(flight("behave")).read_bytes()
    yield made
    made.close()


def behaving(behaviour, name="it", **spec):
    return json.dumps({"metadata": {"name": name}, "spec": {"behaviour": behaviour, **spec}})


def parameter(name, value):
    kind = {str: "string", list: "array", dict: "map"}[type(value)]
    return {"name": name, kind: value}


def generate(cluster, directory, server_url, parameters, flags=(), command=None, **variables):
    """The plugin, as argocd-cmp-server runs it in the directory of an Application."""
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ["HOME"], "ARGOCD_APP_NAME": "web", "ARGOCD_APP_NAMESPACE": "shop",
                   "ARGOCD_APP_PARAMETERS": json.dumps([parameter(*one) for one in parameters.items()]), **variables}
    command = command or [str(BINARY), "argocd", "--server", server_url, *flags]
    return subprocess.run(command, cwd=directory, env={key: value for key, value in environment.items() if value is not None},
                          stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=COMPILED)


def resources(done):
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.fixture
def application(tmp_path):
    """The directory of an Application with the flight `behave`."""
    directory = tmp_path / "application"
    directory.mkdir()
    (directory / "main.wasm").symlink_to(flight("behave"))
    return directory


# The plugin ----------------------------------------------------------------------------------------


def test_an_application_is_what_its_flight_prints_with_the_marks_of_the_release(cluster, server, application):
    done = generate(cluster, application, server.url, {
        "wasm": "/main.wasm", "args": ["-env", "prod"], "input": behaving("dump")}, ARGOCD_ENV_COLOR="blue", ARGOCD_ENV_YOKE_RELEASE="mine")

    [made] = resources(done)
    assert made["metadata"] == {"name": "it", "labels": {"app.kubernetes.io/managed-by": "yokecd"},
                                "annotations": {"instance.atc.yoke.cd/release": "web", "instance.atc.yoke.cd/namespace": "shop"}}
    assert json.loads(made["data"]["argv"]) == ["web", "-env", "prod"]
    seen = made["data"]["env"].split("\n")
    assert {"COLOR=blue", "YOKE_RELEASE=web", "NAMESPACE=shop"} <= set(seen) and "YOKE_RELEASE=mine" not in seen


def test_stages_are_sync_waves(cluster, server, application):
    made = resources(generate(cluster, application, server.url, {"wasm": "main.wasm", "input": behaving("stages")}))

    waves = [(one["kind"], one["metadata"]["annotations"]["argocd.argoproj.io/sync-wave"]) for one in made]
    assert waves == [("Namespace", "0"), ("CustomResourceDefinition", "0"), ("ConfigMap", "1"), ("Staged", "2"), ("ConfigMap", "2"), ("Job", "2"),
                     ("ConfigMap", "3")]


def test_the_input_is_made_of_files_and_values(cluster, server, application):
    (application / "values.yaml").write_text("metadata: &m {name: it}\nspec: {behaviour: basic, data: {a: one, b: two}}\n")
    (application / "over.json").write_text(json.dumps({"spec": {"data": {"b": "three"}}}))

    [made] = resources(generate(cluster, application, server.url, {
        "wasm": "main.wasm", "inputFiles": ["values.yaml", "over.json"], "input": {"spec.data.c": '"4"', "metadata.name": "other"}}))

    assert made["metadata"]["name"] == "other" and made["data"] == {"a": "one", "b": "three", "c": "4"}


def test_a_flight_may_print_yaml_and_nothing(cluster, server, application):
    text = "kind: ConfigMap\napiVersion: v1\nmetadata: {name: a}\n---\nkind: ConfigMap\napiVersion: v1\nmetadata: {name: b}\n"

    made = resources(generate(cluster, application, server.url, {"wasm": "main.wasm", "input": behaving("raw", stdout=text)}))
    none = generate(cluster, application, server.url, {"wasm": "main.wasm", "input": behaving("raw", stdout="[]")})

    assert [one["metadata"]["name"] for one in made] == ["a", "b"]
    assert (none.returncode, none.stdout) == (0, ""), none.stderr


def test_secrets_are_filled_into_the_url(cluster, namespace, server, application, modules):
    modules.files["/private.wasm"], modules.password["/private.wasm"] = modules.files["/behave.wasm"], "ada:p4ss"
    cluster.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "modules", "namespace": namespace},
                    "stringData": {"user": "ada", "password": "p4ss"}})
    refs = {"user": {"secret": "modules", "namespace": namespace, "key": "user"}, "password": {"secret": "modules", "key": "password"}}
    given = {"wasm": modules.url("/private.wasm", "{{ .user }}:{{.password}}@"), "refs": refs, "insecure": "true", "input": behaving("basic")}

    def run(**changed):
        return generate(cluster, application, server.url, {**given, **changed}, [f"--kubeconfig={cluster.kubeconfig}"], ARGOCD_NAMESPACE=namespace)

    assert [one["metadata"]["name"] for one in resources(run())] == ["it"]
    for changed, says in (({"refs": {"user": refs["user"]}}, 'refs has no entry "password"'),
                          ({"refs": {**refs, "user": {"secret": "none", "key": "user"}}}, 'failed to get secret reference "none"'),
                          ({"refs": {**refs, "user": {"secret": "modules", "key": "none"}}}, 'key "none" not present in secret "modules"')):
        wrong = run(**changed)
        assert wrong.returncode == 1 and wrong.stdout == "" and says in wrong.stderr and "p4ss" not in wrong.stderr, wrong.stderr


@pytest.mark.parametrize("parameters, variables, says", [
    ({}, {}, "ARGOCD_APP_PARAMETERS: invalid config: wasm parameter must be provided or build enabled"),
    ({"wasm": "main.wasm"}, {"ARGOCD_APP_NAME": None}, "ARGOCD_APP_NAME: field is required"),
    ({"wasm": "main.wasm"}, {"ARGOCD_APP_PARAMETERS": "{"}, "ARGOCD_APP_PARAMETERS: invalid config: "),
    ({"wasm": "main.wasm", "build": "true"}, {}, "wasm asset cannot be present and build enabled"),
    ({"wasm": "main.wasm", "maxMemoryMib": "much"}, {}, "failed to parse parameter maxMemoryMib"),
    ({"wasm": "main.wasm", "timeout": "5 seconds"}, {}, "failed to parse parameter timeout"),
    ({"wasm": "main.wasm", "inputFiles": ["none.yaml"]}, {}, "could not read file 'none.yaml'"),
    ({"wasm": "main.wasm", "inputFiles": ["/etc/passwd"]}, {}, "could not read file '/etc/passwd': the path is absolute"),
    ({"wasm": "none.wasm"}, {}, "failed to execute flight wasm: failed to open wasm file"),
    ({"wasm": "text.wasm"}, {}, "failed to execute flight wasm: error: "),
    ({"wasm": "main.wasm", "checksum": "0" * 64}, {}, "failed to execute flight wasm: error: "),
    ({"wasm": "file:///etc/passwd"}, {}, "not allowed"),
    ({"wasm": "main.wasm", "input": behaving("basic"), "resourceMatchers": ["a/b/c/d"]}, {}, "failed to execute flight wasm: error: "),
    ({"wasm": "main.wasm", "input": behaving("basic", stderr="words of the flight", exitCode=3)}, {}, "exit_code(3): words of the flight"),
    ({"wasm": "main.wasm", "input": behaving("raw", stdout='{"a": 1}')}, {}, "failed to parse output into valid flight output"),
])
def test_what_is_wrong_is_said(cluster, server, application, parameters, variables, says):
    (application / "text.wasm").write_text("no module")

    done = generate(cluster, application, server.url, parameters, **variables)

    assert done.returncode == 1 and done.stdout == "" and says in done.stderr, done.stderr


def test_without_a_server_it_says_so(cluster, application):
    done = generate(cluster, application, f"http://localhost:{free_port()}", {"wasm": "main.wasm"})

    assert done.returncode == 1 and "failed to execute flight wasm: failed to get response" in done.stderr, done.stderr


def test_a_program_in_go_is_built(cluster, server, tmp_path):
    if not shutil.which("go"):
        pytest.skip("go is not there")
    (tmp_path / "go.mod").write_text("module example.com/flight\n\ngo 1.21\n")
    (tmp_path / "main.go").write_text("""package main

import "os"

func main() {
	os.Stdout.WriteString(`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "built"}}`)
}
""")
    caches = {name: os.environ.get(name) for name in ("GOCACHE", "GOMODCACHE", "GOPATH", "GOFLAGS", "GOPROXY")}

    [made] = resources(generate(cluster, tmp_path, server.url, {"build": "true"}, GOTOOLCHAIN="local", **caches))
    (tmp_path / "main.go").write_text("package main\n")
    wrong = generate(cluster, tmp_path, server.url, {"build": "true"}, GOTOOLCHAIN="local", **caches)
    without = generate(cluster, tmp_path, server.url, {"build": "true"}, PATH="/nonexistent")

    assert made["metadata"]["name"] == "built"
    assert wrong.returncode == 1 and "failed to build binary: go build exited with code 1" in wrong.stderr, wrong.stderr
    assert without.returncode == 1 and "parameter build needs Go in the container" in without.stderr, without.stderr


# The server ----------------------------------------------------------------------------------------


def published(modules, **changed):
    """A request as yoke's plugin encodes it."""
    return {"Source": None, "ClusterAccess": {"Enabled": False, "ResourceMatchers": None}, "Path": modules.url("/behave.wasm"), "Checksum": "",
            "Release": "foo", "Namespace": "bar", "Args": ["a", "r", "g"], "Env": {"FOO": "BAR"}, "Input": behaving("dump"), "MaxMemoryMib": 0,
            "Timeout": 0, "Insecure": False, **changed}


def test_it_answers_the_requests_of_yokes_plugin(server, modules):
    status, text = server.execute(**published(modules))

    assert status == 200, text
    [made] = json.loads(text)
    assert json.loads(made["data"]["argv"]) == ["foo", "a", "r", "g"] and "FOO=BAR" in made["data"]["env"].split("\n")
    assert "labels" not in made["metadata"]
    any_json = server.execute(**published(modules, Input=behaving("raw", stdout='{"any": "JSON"}')))
    assert any_json == (200, '{"any": "JSON"}\n')


def test_modules_in_requests_may_be_gzipped_and_are_kept(server, modules):
    module = modules.files["/behave.wasm"]
    sources = [base64.b64encode(data).decode() for data in (module, gzip.compress(module, compresslevel=1))]

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(lambda number: server.execute(Source=sources[number % 2], Release="web", Namespace="shop",
                                                              Input=behaving("basic", name=f"n{number}")), range(6)))

    assert [json.loads(text)[0]["metadata"]["name"] for status, text in answers if status == 200] == [f"n{number}" for number in range(6)], answers
    assert list((server.log.parent / "cache/sent").iterdir()) == []
    assert server.execute(Source=sources[0], Checksum="0" * 64)[0] == 500


@pytest.mark.parametrize("access, outcome", [
    ({"Enabled": False}, "FeatureNotGranted"), ({"Enabled": True}, "Forbidden"), ({"Enabled": True, "ResourceMatchers": ["ConfigMap"]}, "found"),
    ({"Enabled": True, "ResourceMatchers": ["Secret"]}, "Forbidden")])
def test_matchers_limit_what_a_flight_looks_up(cluster, namespace, server, modules, access, outcome):
    cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "seen", "namespace": namespace}, "data": {"key": "value"}})
    target = {"name": "seen", "namespace": namespace, "kind": "ConfigMap", "apiVersion": "v1", "tolerate": True}

    status, text = server.execute(**published(modules, ClusterAccess=access, Namespace=namespace, Input=behaving("lookup", lookup=target)))

    assert status == 200, text
    data = json.loads(text)[0]["data"]
    assert data["outcome"] == outcome and data.get("key") == ("value" if outcome == "found" else None)


@pytest.mark.parametrize("changed, status, says", [
    ({"Args": "a"}, 400, "Args: must be a list of strings"), ({"Source": "?"}, 400, "Source: must be in base64"),
    ({"Path": "main.wasm"}, 403, "not allowed"), ({"Path": "configmap://default/flight"}, 403, "not allowed"), ({"Path": ""}, 400, ""),
    ({"Path": "http://127.0.0.1:1/none.wasm"}, 500, "none.wasm"), ({"Checksum": "0" * 64}, 500, "checksum"),
    ({"Source": base64.b64encode(b"no module").decode()}, 500, ""),
    ({"Input": behaving("endless"), "Timeout": 30_000_000}, 500, "execution timeout (30ms) exceeded"),
    ({"Input": behaving("memory", mib=64), "MaxMemoryMib": 32}, 500, ""), ({"Input": behaving("hugeStdout", mib=20)}, 500, ""),
    ({"Input": behaving("panic")}, 500, "exit_code(2)")])
def test_what_it_refuses(server, modules, changed, status, says):
    answer = server.execute(**published(modules, **changed))

    assert answer[0] == status and says in answer[1], answer
    assert server.is_healthy()


def test_only_programs_of_this_machine_may_run_flights(server, modules):
    request = json.dumps(published(modules))

    forwarded = server.ask("POST", "/exec", request, source="127.0.0.6")
    page = server.ask("POST", "/exec", request, {"Origin": "http://localhost"})

    assert forwarded == page == (403, "only programs of this machine may run flights\n")
    assert server.ask("GET", "/health", source="127.0.0.6") == (200, "")


def test_its_endpoints_and_bounds(server):
    assert [server.ask(*one)[0] for one in (("GET", "/exec"), ("POST", "/health"), ("GET", "/"), ("POST", "/exec", "{"))] == [405, 405, 404, 400]
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    connection.putrequest("POST", "/exec")
    connection.putheader("Content-Length", str(65 << 20))
    connection.endheaders()
    assert connection.getresponse().status == 413
    connection.close()


def test_an_allow_list_and_keys_limit_modules(tmp_path, modules):
    (tmp_path / "keys").mkdir()
    private, public = keys(tmp_path / "keys", "ec")
    module = modules.files["/behave.wasm"]
    signed, unsigned = (base64.b64encode(data).decode() for data in (sign(module, private, tmp_path), module))
    offline = {"HOME": str(tmp_path), "KUBECONFIG": ""}
    listed = Server(tmp_path / "listed", f"--module-allow-list={modules.url('/allowed/*')}", env=offline)
    verifying = Server(tmp_path / "verifying", f"--verify={public}", env=offline)
    try:
        assert listed.execute(**published(modules)) == (403, f'module "{modules.url("/behave.wasm")}" not allowed\n')
        assert listed.execute(Source=unsigned, Input=behaving("basic"))[0] == 200
        assert verifying.execute(Source=signed, Input=behaving("basic"))[0] == 200
        for answer in (verifying.execute(Source=unsigned), verifying.execute(**published(modules))):
            assert answer[0] == 500 and "module is unsigned" in answer[1], answer
        # Neither has a kubeconfig.
        answer = listed.execute(Source=unsigned, ClusterAccess={"Enabled": True}, Input=behaving("basic"))
        assert answer[0] == 500 and "has no login for a cluster" in answer[1], answer
    finally:
        assert (listed.stop(), verifying.stop()) == (0, 0)


# In place of yoke's ----------------------------------------------------------------------------------


def test_under_yokes_name_it_has_its_flag_and_its_environment(cluster, tmp_path, application):
    link = tmp_path / "yokecd"
    link.symlink_to(BINARY)
    unknown = subprocess.run([link, "-serve"], capture_output=True, text=True, timeout=60)
    server = Server(tmp_path / "yokecd-server", command=[str(link), "-svr"], port=3666, env={
        "KUBECONFIG": cluster.kubeconfig, "YOKECD_CACHE_FS": str(tmp_path / "yokecd-cache"), "MODULE_ALLOW_LIST": "oci://a/*,oci://b/*"})
    try:
        done = generate(cluster, application, None, {"wasm": "main.wasm", "input": behaving("basic")}, command=[str(link)])
        wrong = generate(cluster, application, None, {"wasm": "oci://registry.example/flights/web:v1"}, command=[str(link)])
    finally:
        assert server.stop() == 0

    assert unknown.returncode == 2 and "flag provided but not defined: -serve" in unknown.stderr
    assert [one["metadata"]["name"] for one in resources(done)] == ["it"]
    assert wrong.returncode == 1 and wrong.stderr.startswith("failed to execute flight wasm: error: module ") and "not allowed" in wrong.stderr, wrong.stderr
    assert (tmp_path / "yokecd-cache/hangar/code").is_dir()


def test_the_manifests_add_the_plugin_to_a_repo_server(cluster, namespace):
    plugin = yaml.safe_load((DEPLOY / "plugin.yaml").read_text())
    cluster.create({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "argocd-repo-server", "namespace": namespace}, "spec": {
        "replicas": 0, "selector": {"matchLabels": {"app": "repo-server"}}, "template": {"metadata": {"labels": {"app": "repo-server"}}, "spec": {
            "containers": [{"name": "argocd-repo-server", "image": "registry.invalid/argocd"}],
            "volumes": [{"name": "var-files", "emptyDir": {}}, {"name": "plugins", "emptyDir": {}}]}}}})
    plugin["metadata"]["namespace"] = namespace
    made = cluster.create(plugin)

    cluster.kubectl("patch", "deployment", "argocd-repo-server", "-n", namespace, "--patch-file", str(DEPLOY / "repo-server.yaml"))

    definition = yaml.safe_load(made["data"]["plugin.yaml"])
    assert (definition["kind"], definition["metadata"]["name"]) == ("ConfigManagementPlugin", "yokecd")
    assert definition["spec"]["generate"]["command"] == ["hangar", "argocd"]
    pod = cluster.get("apps/v1", "Deployment", "argocd-repo-server", namespace)["spec"]["template"]["spec"]
    containers = {one["name"]: one for one in pod["containers"]}
    assert set(containers) == {"argocd-repo-server", "yokecd", "yokecd-svr"}
    volumes = {one["name"]: one for one in pod["volumes"]}
    assert {mount["name"] for name in ("yokecd", "yokecd-svr") for mount in containers[name]["volumeMounts"]} <= set(volumes)
    assert volumes["yokecd-plugin"]["configMap"]["name"] == plugin["metadata"]["name"]
    command = [*containers["yokecd-svr"]["command"], *containers["yokecd-svr"]["args"], "--help"]
    assert subprocess.run([str(BINARY), *command[1:]], capture_output=True, timeout=60).returncode == 0
