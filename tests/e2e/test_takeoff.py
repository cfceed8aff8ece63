"""`hangar takeoff`: a release made by a person, as yoke's command makes it."""
import concurrent.futures
import gzip
import hashlib
import json
import os
import pathlib
import pty
import signal
import subprocess

import pytest

from airways import flight
from cluster import eventually
from host import BINARY
from module_server import Modules
from registry import Registry
from yoke_releases import Made, config_map, go_json, hangar, history, lock, marked, names, sha1


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    """The directory for compiled modules, shared by all tests."""
    return tmp_path_factory.mktemp("compiled")


def as_input(*resources):
    return "\n---\n".join(map(json.dumps, resources))


def up(cluster, namespace, *arguments, stdin=None, **options):
    return hangar(cluster, "takeoff", "-namespace", namespace, *arguments, stdin=stdin, **options)


def behaving(behaviour, name="it", **spec):
    """The standard input for that behaviour of the flight `behave`."""
    return json.dumps({"metadata": {"name": name}, "spec": {"behaviour": behaviour, **spec}})


def deployment(name, **pod):
    labels = {"app": name}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": {
        "selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": "registry.invalid/none"}], **pod}}}}


def test_resources_on_the_standard_input_become_a_release_to_the_byte_as_yoke_keeps_it(cluster, namespace):
    resources = [config_map("a", url="<&>"), config_map("b", number="1")]

    done = up(cluster, namespace, "web", stdin=as_input(*resources))

    [revision] = history(cluster, namespace, "web")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "successful takeoff of web\n")
    assert names(cluster, namespace) == ["a", "b"]
    assert revision["text"] == go_json([[marked(one, "web", namespace) for one in resources]]) and revision["active"]
    assert revision["labels"] == {"internal.yoke/kind": "revision", "internal.yoke/release": sha1("web")}
    assert {key: value for key, value in revision["annotations"].items() if not key.endswith("-at")} == {
        "internal.yoke/resources": "2", "internal.yoke/source-url": "", "internal.yoke/source-checksum": "", "internal.yoke/release-name": "web"}
    assert [one["manager"] for one in cluster.get("v1", "ConfigMap", "a", namespace)["metadata"]["managedFields"]] == ["yoke"]


def test_what_has_not_changed_is_a_warning_and_no_revision(cluster, namespace):
    up(cluster, namespace, "web", stdin=as_input(config_map("a")))
    cluster.patch("v1", "ConfigMap", "a", {"data": {"k": "changed"}}, namespace)

    done = up(cluster, namespace, "web", stdin=as_input(config_map("a")))
    nothing = up(cluster, namespace, "none", stdin="[]")

    assert done.returncode == 0 and done.stderr == "resources are the same as previous revision: skipping creation of new revision\n"
    assert len(history(cluster, namespace, "web")) == 1
    assert nothing.returncode == 0 and nothing.stderr == done.stderr and history(cluster, namespace, "none") == []


def test_a_change_is_a_revision_and_what_is_not_there_any_more_is_deleted(cluster, namespace):
    up(cluster, namespace, "web", stdin=as_input(config_map("a", k="1"), config_map("b")))

    done = hangar(cluster, "apply", f"--namespace={namespace}", "web", stdin=as_input(config_map("a", k="2"), config_map("c")))

    assert done.returncode == 0, done.stderr
    assert names(cluster, namespace) == ["a", "c"] and cluster.get("v1", "ConfigMap", "a", namespace)["data"] == {"k": "2"}
    assert [one["active"] for one in history(cluster, namespace, "web")] == [False, True]


def test_it_goes_on_with_a_release_that_yoke_has_made(cluster, namespace):
    made = Made(cluster, namespace)
    made.revision(config_map("a", k="1"), config_map("b"))

    same = up(cluster, namespace, "web", stdin=as_input(config_map("a", k="1"), config_map("b")))
    done = up(cluster, namespace, "web", stdin=as_input(config_map("a", k="2")))

    assert same.returncode == 0 and "skipping creation of new revision" in same.stderr
    assert done.returncode == 0 and names(cluster, namespace) == ["a"] and len(history(cluster, namespace, "web")) == 2


def test_a_flight_gets_its_input_arguments_and_variables(cluster, namespace, cache):
    module = flight("behave")

    done = up(cluster, namespace, "-compilation-cache", str(cache), "web", module, "--", "-env", "prod", stdin=behaving("dump", "it"))

    assert done.returncode == 0, done.stderr
    [name] = names(cluster, namespace)
    seen = cluster.get("v1", "ConfigMap", name, namespace)["data"]
    [revision] = history(cluster, namespace, "web")
    assert json.loads(seen["argv"]) == ["web", "-env", "prod"]
    assert f"YOKE_RELEASE=web" in seen["env"] and f"YOKE_NAMESPACE={namespace}" in seen["env"]
    assert revision["annotations"]["internal.yoke/source-url"] == f"file://{module}"
    assert revision["annotations"]["internal.yoke/source-checksum"] == hashlib.sha1(pathlib.Path(module).read_bytes()).hexdigest()


@pytest.mark.parametrize("place", ["gzip", "relative", "http", "oci"])
def test_modules_come_from_files_urls_and_registries(cluster, namespace, cache, tmp_path, place):
    module, options, flags = pathlib.Path(flight("behave")), {}, []
    if place == "gzip":
        url = tmp_path / "main.wasm.gz"
        url.write_bytes(gzip.compress(module.read_bytes(), compresslevel=1))
    elif place == "relative":
        (tmp_path / "main.wasm").symlink_to(module)
        url, options["cwd"] = "./main.wasm", tmp_path
    elif place == "http":
        modules = Modules()
        modules.files["/main.wasm"] = module.read_bytes()
        url = f"http://127.0.0.1:{modules.server.server_address[1]}/main.wasm"
        flags = ["-insecure"]
    else:
        registry = Registry(cluster)
        registry.push("takeoff/web", "v1.0.0", module)
        url, flags = registry.url("takeoff/web", "v1.0.0"), ["-insecure", f"-docker-config={registry.docker_config(tmp_path, registry.password)}"]

    done = up(cluster, namespace, f"-compilation-cache={cache}", *flags, "web", str(url), stdin=behaving("basic", data={"k": "v"}), **options)

    assert done.returncode == 0, done.stderr
    [revision] = history(cluster, namespace, "web")
    recorded = revision["annotations"]["internal.yoke/source-url"]
    assert recorded == (str(url) if "://" in str(url) else "file://main.wasm" if place == "relative" else f"file://{url}")


def test_a_flight_that_fails_is_told_and_changes_nothing(cluster, namespace, cache):
    done = up(cluster, namespace, f"-compilation-cache={cache}", "web", flight("behave"), stdin=behaving("basic", stderr="no such thing\n", exitCode=3))

    assert done.returncode == 1
    assert done.stderr == "no such thing\n---\nfailed to evaluate flight: failed to instantiate module: module closed with exit_code(3)\n"
    assert names(cluster, namespace) == [] and history(cluster, namespace, "web") == []


@pytest.mark.parametrize("arguments, stdin, says", [
    ([], "x", "release is required as first positional arg"),
    (["web"], "", "failed to takeoff: resource provided is either empty or invalid"),
    (["web"], "{}", "failed to parse output into valid flight output: input must be resource, list of resources, or list of list of resources"),
    (["web"], '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"}}\n---\n{bad', "failed to parse output into valid flight output: "),
    (["-wait", "soon", "web"], "x", "--wait: "), (["web", "/no/such.wasm"], "", "failed to evaluate flight: "),
    (["web"], '{"apiVersion":"no.such/v1","kind":"Thing","metadata":{"name":"a"}}',
     'setting target namespace: _/no.such/v1/thing/a: failed to lookup resource mapping: no matches for kind "Thing" in version "no.such/v1"\n')])
def test_wrong_input_is_exit_code_1_and_changes_nothing(cluster, namespace, cache, arguments, stdin, says):
    done = up(cluster, namespace, *(["-compilation-cache", str(cache)] if len(arguments) == 2 else []), *arguments, stdin=stdin)

    assert done.returncode == 1 and done.stdout == "" and says in done.stderr, done.stderr
    assert names(cluster, namespace) == [] and history(cluster, namespace, "web") == []


def test_a_terminal_is_no_input(cluster, namespace):
    controller, terminal = pty.openpty()
    done = subprocess.run([str(BINARY), "takeoff", "web", "-kubeconfig", cluster.kubeconfig, "-namespace", namespace], stdin=terminal, capture_output=True, text=True, timeout=60)
    os.close(controller)
    os.close(terminal)

    assert done.returncode == 1 and done.stderr == "flight-path is required as second position arg\n"


def test_a_checksum_must_be_the_modules(cluster, namespace, cache):
    digest = hashlib.sha256(pathlib.Path(flight("behave")).read_bytes()).hexdigest()
    arguments = [f"-compilation-cache={cache}", "web", flight("behave")]

    wrong = up(cluster, namespace, "-checksum", "0" * 64, *arguments, stdin=behaving("basic"))
    right = up(cluster, namespace, "-checksum", digest, *arguments, stdin=behaving("basic"))

    assert (wrong.returncode, wrong.stderr) == (1, f'cannot verify module against expected checksum: wanted "{"0" * 64}" but got "{digest}"\n')
    assert right.returncode == 0, right.stderr


def test_a_flight_has_the_time_and_memory_that_it_is_given(cluster, namespace, cache):
    slow = up(cluster, namespace, f"-compilation-cache={cache}", "-timeout=50ms", "web", flight("behave"), stdin=behaving("endless"))
    large = up(cluster, namespace, f"-compilation-cache={cache}", "web", flight("behave"), stdin=behaving("memory", mib=200))

    assert slow.returncode == 1 and "execution timeout (50ms) exceeded" in slow.stderr
    assert large.returncode == 1 and "out of memory" in large.stderr, "128 MiB are the default"


def test_dry_asks_the_api_server_and_changes_nothing(cluster, namespace):
    up(cluster, namespace, "web", stdin=as_input(config_map("a", k="1")))

    good = up(cluster, namespace, "-dry", "web", stdin=as_input(config_map("a", k="2"), config_map("b")))
    bad = up(cluster, namespace, "-dry", "web", stdin=as_input(config_map("a", k="2"), config_map("Not_A_Name")))
    elsewhere = up(cluster, f"{namespace}-new", "-dry", "-create-namespace", "web", stdin=as_input(config_map("a")))

    assert (good.returncode, good.stderr) == (0, "successful dry-run takeoff of web\n")
    assert bad.returncode == 1 and f"{namespace}/core/v1/configmap/not_a_name" in bad.stderr
    assert elsewhere.returncode == 0 and "is not rehearsed: the release makes its namespace first" in elsewhere.stderr, elsewhere.stderr
    assert names(cluster, namespace) == ["a"] and cluster.get("v1", "ConfigMap", "a", namespace)["data"] == {"k": "1"}
    assert len(history(cluster, namespace, "web")) == 1 and cluster.get("v1", "Namespace", f"{namespace}-new") is None


def test_one_bad_resource_keeps_its_whole_stage_from_being_applied(cluster, namespace):
    done = up(cluster, namespace, "web", stdin=as_input(config_map("a"), config_map("Not_A_Name")))
    skipping = up(cluster, namespace, "-skip-dry-run", "web", stdin=as_input(config_map("b"), config_map("Not_A_Name")))

    assert done.returncode == 1 and done.stderr.startswith(f"failed to apply resources: dry run: {namespace}/core/v1/configmap/not_a_name: ")
    assert skipping.returncode == 1 and names(cluster, namespace) == ["b"], "as it was asked for"
    assert skipping.stderr.startswith(f"failed to apply resources: {namespace}/core/v1/configmap/not_a_name: ")


def test_what_the_api_server_refuses_leaves_no_revision(cluster, namespace):
    alone = up(cluster, namespace, "web", stdin=as_input(config_map("Not_A_Name")))
    revisions = history(cluster, namespace, "web")
    up(cluster, namespace, "web", stdin=as_input(config_map("a", k="1"), config_map("b", k="1")))
    changed = up(cluster, namespace, "web", stdin=as_input(config_map("a", k="2"), {**config_map("b"), "data": {"k": 2}}))

    assert alone.returncode == 1 and alone.stderr.startswith("failed to apply resources: dry run: ") and revisions == []
    assert changed.returncode == 1 and changed.stderr.startswith("failed to apply resources: dry run: "), changed.stderr
    assert cluster.get("v1", "ConfigMap", "a", namespace)["data"] == {"k": "1"} and len(history(cluster, namespace, "web")) == 1


def test_stdout_and_files_need_no_cluster(tmp_path, cache):
    nowhere = {"kubeconfig": tmp_path / "none"}
    printed = hangar(None, "takeoff", "-stdout", "web", stdin="{}", **nowhere)
    flown = hangar(None, "takeoff", "-stdout", f"-compilation-cache={cache}", "web", flight("behave"), stdin=behaving("raw", stdout="as it is"), **nowhere)
    written = hangar(None, "takeoff", "-out", str(tmp_path / "out"), "web", stdin=as_input(config_map("a", "apps", k="v"), deployment("d")), **nowhere)
    tree = hangar(None, "takeoff", "--out=-", "web", stdin=as_input(config_map("a", "apps", k="v")), **nowhere)

    assert (printed.returncode, printed.stdout) == (0, "{}")
    assert (flown.returncode, flown.stdout) == (0, "as it is"), flown.stderr
    assert written.returncode == 0, written.stderr
    files = sorted(str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*.yaml"))
    assert files == ["web/_/apps/v1/deployment/d.yaml", "web/apps/core/v1/configmap/a.yaml"]
    yaml = "apiVersion: v1\ndata:\n  k: v\nkind: ConfigMap\nmetadata:\n  name: a\n  namespace: apps\n"
    assert (tmp_path / "out/web/apps/core/v1/configmap/a.yaml").read_text() == yaml
    assert tree.stdout == "apps:\n  core:\n    v1:\n      configmap:\n        a:\n" + "".join(f"          {line}\n" for line in yaml.splitlines())


@pytest.mark.parametrize("change", [{"kind": "../../../../evil"}, {"apiVersion": "../v1"}, {"kind": ".."}])
def test_files_stay_in_their_directory(tmp_path, change):
    before = {"kept": "1"}
    out = tmp_path / "out"
    hangar(None, "takeoff", "-out", str(out), "web", stdin=as_input(config_map("a", **before)), kubeconfig=tmp_path / "none")

    done = hangar(None, "takeoff", "-out", str(out), "web", stdin=as_input(config_map("b"), {**config_map("c"), **change}), kubeconfig=tmp_path / "none")

    assert done.returncode == 1 and "is not the name of a file" in done.stderr
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["a.yaml"], "nothing was written, nothing taken away"


@pytest.mark.parametrize("release", ["..", "a/b", "."])
def test_a_release_that_is_no_directory_writes_no_files(tmp_path, release):
    done = hangar(None, "takeoff", "-out", str(tmp_path / "out"), release, stdin=as_input(config_map("a")), kubeconfig=tmp_path / "none")

    assert done.returncode == 1 and "cannot name a directory" in done.stderr and list(tmp_path.iterdir()) == []


def test_diff_only_shows_what_would_change(cluster, namespace):
    up(cluster, namespace, "web", stdin=as_input(config_map("a", k="1")))

    plain = up(cluster, namespace, "-diff-only", "-context", "0", "web", stdin=as_input(config_map("a", k="2")))
    colored = up(cluster, namespace, "-diff-only", "-color", "-context=0", "web", stdin=as_input(config_map("a", k="2")))
    same = up(cluster, namespace, "-diff-only", "web", stdin=as_input(config_map("a", k="1")))

    assert plain.stdout == '--- current\n+++ next\n@@ -4 +4 @@\n-    k: "1"\n+    k: "2"\n'
    assert '\x1b[32m-    k: "1"\x1b[0m\n\x1b[31m+    k: "2"\x1b[0m\n' in colored.stdout
    assert (same.returncode, same.stdout) == (0, "") and len(history(cluster, namespace, "web")) == 1


def test_namespaces_are_made_and_crossed_only_where_that_is_asked_for(cluster, namespace):
    new = f"{namespace}-new"
    absent = up(cluster, new, "web", stdin=as_input(config_map("a")))
    created = up(cluster, new, "-create-namespace", "web", stdin=as_input(config_map("a")))
    foreign = up(cluster, new, "web", stdin=as_input(config_map("a"), config_map("b", namespace)))
    crossing = up(cluster, new, "-cross-namespace", "web", stdin=as_input(config_map("a"), config_map("b", namespace)))
    seen = names(cluster, new), names(cluster, namespace)
    cluster.delete("v1", "Namespace", new)

    assert absent.returncode == 1 and "not found" in absent.stderr
    assert created.returncode == 0, created.stderr
    assert foreign.returncode == 1 and "Multiple namespaces detected (if desired enable multinamespace releases)" in foreign.stderr
    assert crossing.returncode == 0 and seen == (["a"], ["b"])


def test_a_release_may_make_its_own_namespace(cluster, namespace):
    own = f"{namespace}-own"

    done = up(cluster, own, "web", stdin=as_input({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": own}}, config_map("a")))
    seen = names(cluster, own), len(history(cluster, own, "web"))
    cluster.delete("v1", "Namespace", own)

    assert done.returncode == 0, done.stderr
    assert seen == (["a"], 1)


def test_what_is_anothers_is_taken_only_where_that_is_asked_for(cluster, namespace):
    cluster.apply(config_map("a", namespace, mine="1"), manager="somebody")

    refused = up(cluster, namespace, "web", stdin=as_input(config_map("a", mine="2")))
    conflict = up(cluster, namespace, "-force-ownership", "web", stdin=as_input(config_map("a", mine="2")))
    taken = up(cluster, namespace, "-force-ownership", "-force-conflicts", "web", stdin=as_input(config_map("a", mine="2")))

    assert refused.returncode == 1 and f'expected release "{namespace}/web" but resource is already owned by ""' in refused.stderr
    assert conflict.returncode == 1 and 'conflict with "somebody"' in conflict.stderr
    assert taken.returncode == 0 and cluster.get("v1", "ConfigMap", "a", namespace)["data"] == {"mine": "2"}


def test_it_waits_until_the_release_is_ready_or_the_time_is_over(cluster, namespace):
    ready = up(cluster, namespace, "-wait=60s", "-poll=100ms", "web", stdin=as_input(deployment("d")))
    available = cluster.get("apps/v1", "Deployment", "d", namespace)["status"].get("availableReplicas")
    late = up(cluster, namespace, "-wait", "1s", "-poll", "100ms", "web", stdin=as_input(deployment("d"), deployment("stuck", nodeSelector={"no": "such"})))

    assert ready.returncode == 0 and available == 1, ready.stderr
    assert late.returncode == 1
    says = f"release did not become ready within wait period: to rollback use `yoke descent`: failed to get readiness for {namespace}/apps/v1/deployment/stuck: "
    assert late.stderr.startswith(says) and late.stderr.endswith(": 1s timeout reached\n"), late.stderr
    assert [one["active"] for one in history(cluster, namespace, "web")] == [True, False]
    back = hangar(cluster, "descent", "-namespace", namespace, "web", "1")
    assert back.returncode == 0, back.stderr
    assert [one["metadata"]["name"] for one in cluster.list("apps/v1", "Deployment", namespace)] == ["d"]
    assert len(history(cluster, namespace, "web")) == 1


def test_a_terminal_shows_what_is_waited_for(cluster, namespace):
    controller, terminal = pty.openpty()
    done = subprocess.run([str(BINARY), "takeoff", "web", "-kubeconfig", cluster.kubeconfig, "-namespace", namespace, "-wait=1s", "-poll=100ms"],
                          input=as_input(deployment("stuck", nodeSelector={"no": "such"})).encode(), stderr=terminal, timeout=60)
    os.close(terminal)
    shown = os.read(controller, 65536).decode()
    os.close(controller)

    assert done.returncode == 1
    assert f"\r\x1b[Kwaiting for {namespace}/Deployment.apps:stuck: " in shown and "\r\x1b[Krelease did not become ready" in shown


def open_kind(unique):
    """A CustomResourceDefinition, and an object of its kind with the given spec."""
    plural, kind = f"{unique}s", unique.capitalize()
    crd = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": f"{plural}.e2e.hangar.dev"}, "spec": {
        "group": "e2e.hangar.dev", "scope": "Namespaced", "names": {"plural": plural, "singular": unique, "kind": kind},
        "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}}]}}
    return crd, lambda name="it", **spec: {"apiVersion": "e2e.hangar.dev/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def test_a_stage_is_ready_before_the_next_begins(cluster, namespace, unique):
    crd, make = open_kind(unique)
    thing, plural = make(), crd["spec"]["names"]["plural"]
    cluster.learn("e2e.hangar.dev/v1", thing["kind"], plural)

    done = up(cluster, namespace, "-poll=100ms", "web", stdin=as_input(thing, crd))
    live = cluster.get("e2e.hangar.dev/v1", thing["kind"], "it", namespace)
    mayday = hangar(cluster, "mayday", "-namespace", namespace, "-remove-crds", "web")

    assert done.returncode == 0, done.stderr
    assert live is not None and len(history(cluster, namespace, "web")) == 0 and mayday.returncode == 0
    assert cluster.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", f"{plural}.e2e.hangar.dev") is None


class Scripted:
    """A kind whose readiness a script in Lua decides, and a release of objects of that kind."""

    def __init__(self, cluster, namespace, unique, cache):
        self.cluster, self.namespace, self.cache = cluster, namespace, cache
        self.crd, self.make = open_kind(unique)
        self.key = f"{self.crd['spec']['names']['kind']}.e2e.hangar.dev"

    def rule(self, script):
        self.cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "data": {self.key: script}, "metadata": {
            "name": "rules", "namespace": self.namespace, "labels": {"resource.yoke.cd/readiness": "lua"}}})

    def up(self, *objects, flags=("-load-custom-readiness",), wait="60s"):
        return up(self.cluster, self.namespace, f"-compilation-cache={self.cache}", f"-wait={wait}", "-poll=100ms", *flags, "web",
                  stdin=as_input(self.crd, *objects))

    def failure(self):
        """What it says of an object whose rule fails."""
        done = self.up(self.make())
        says = "release did not become ready within wait period: to rollback use `yoke descent`: failed to get readiness for " \
               f"{self.namespace}/e2e.hangar.dev/v1/{self.crd['spec']['names']['singular']}/it: readiness rule {self.key} of ConfigMap {self.namespace}/rules: "
        assert done.returncode == 1 and done.stderr.startswith(says), done.stderr
        return done.stderr.removeprefix(says)


@pytest.fixture
def scripted(cluster, namespace, unique, cache):
    made = Scripted(cluster, namespace, unique, cache)
    yield made
    hangar(cluster, "mayday", "-namespace", namespace, "-remove-crds", "web")


def test_a_rule_in_lua_decides_when_it_is_asked_for(namespace, scripted):
    scripted.rule("return function(it)\n  print('anything')\n  return it.spec.parts[2].done\nend")
    done, missing = ({"parts": [{"done": False}, {"done": value}]} for value in (True, False))

    ready = scripted.up(scripted.make(**done))
    late = scripted.up(scripted.make(**done), scripted.make("other", **missing), wait="1s")
    unasked = scripted.up(scripted.make(**missing), flags=())

    assert (ready.returncode, ready.stderr) == (0, "successful takeoff of web\n")
    says = f"/other: readiness rule {scripted.key} of ConfigMap {namespace}/rules is not met: 1s timeout reached"
    assert late.returncode == 1 and says in late.stderr
    assert unasked.returncode == 0, unasked.stderr


def test_a_wrong_rule_in_lua_is_named_with_the_error_and_its_line(scripted):
    for script, says in (
        ("return function(it)\n  return it.status.ready\nend", f"failed to invoke lua readiness function: {scripted.key}:2: attempt to index"),
        ("return function(it) error('not so') end", f"failed to invoke lua readiness function: {scripted.key}:1: not so"),
        ("return function(it) return 'yes' end", "expected result to be a boolean but got: string"),
        ("return function(", f"failed to load lua script: {scripted.key}"),
        ("", "expected script to return a function but got: nil"),
        ("return function(it) return os.time() end", f"failed to invoke lua readiness function: {scripted.key}:1: attempt to index"),
    ):
        scripted.rule(script)
        assert scripted.failure().startswith(says), script


def test_a_rule_in_lua_ends_at_its_limits(scripted):
    for script, says in (("return function() while true do end end", "execution timeout (5s of processor time) exceeded"),
                         ("return function() local all = {} while true do all[#all + 1] = ('x'):rep(100000) end end", "it needs more than 64 MiB of memory")):
        scripted.rule(script)
        assert says in scripted.failure()


def test_a_flight_sees_of_the_cluster_what_it_is_allowed_to(cluster, namespace, cache):
    cluster.apply(config_map("outside", namespace, k="v"))
    target = {"apiVersion": "v1", "kind": "ConfigMap", "name": "outside", "namespace": namespace}

    def look(*flags):
        done = up(cluster, namespace, f"-compilation-cache={cache}", "-stdout", *flags, "web", flight("behave"), stdin=behaving("lookup", lookup=target))
        return done.stdout + done.stderr
    assert "access to the cluster has not been granted" in look()
    assert "cannot access resource outside of target release ownership" in look("-cluster-access")
    assert '"k":"v"' in look("-cluster-access", "-resource-access", "Secret,ConfigMap:outside").replace('\\"', '"').replace(" ", "")


def test_the_history_is_kept_to_its_cap(cluster, namespace):
    for number in range(4):
        assert up(cluster, namespace, "-history-cap=2", "web", stdin=as_input(config_map("a", k=str(number)))).returncode == 0
    capped = len(history(cluster, namespace, "web"))
    up(cluster, namespace, "-history-cap", "-1", "web", stdin=as_input(config_map("a", k="x")))

    assert capped == 2 and len(history(cluster, namespace, "web")) == 3


def test_a_url_that_serves_another_module_is_refused(cluster, namespace, cache):
    modules = Modules()
    url = f"http://127.0.0.1:{modules.server.server_address[1]}/main.wasm"
    modules.files["/main.wasm"] = pathlib.Path(flight("behave")).read_bytes()
    first = up(cluster, namespace, f"-compilation-cache={cache}", "-insecure", "web", url, stdin=behaving("basic"))
    # A custom section at the end: another module with the same behaviour.
    modules.files["/main.wasm"] += b"\x00\x02\x01x"

    done = up(cluster, namespace, f"-compilation-cache={cache}", "-insecure", "web", url, stdin=behaving("basic"))

    assert first.returncode == 0, first.stderr
    assert done.returncode == 1 and f'module "{url}" has changed since last use: got "' in done.stderr


# Faults -------------------------------------------------------------------------------------------


def hold(cluster, namespace, name):
    cluster.patch("v1", "ConfigMap", name, {"metadata": {"finalizers": ["e2e.hangar.dev/hold"]}}, namespace)


def let_go(cluster, namespace, name):
    cluster.patch("v1", "ConfigMap", name, {"metadata": {"finalizers": None}}, namespace)


def start(cluster, namespace, *arguments, stdin):
    process = subprocess.Popen([str(BINARY), "takeoff", "-kubeconfig", cluster.kubeconfig, "-namespace", namespace, *arguments], stdin=subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    process.stdin.write(stdin)
    process.stdin.close()
    process.stdin = None
    return process


def is_going(cluster, namespace, name):
    live = cluster.get("v1", "ConfigMap", name, namespace)
    return live is not None and "deletionTimestamp" in live["metadata"]


def test_what_was_killed_between_the_apply_and_the_revision_is_found_by_the_next(cluster, namespace):
    up(cluster, namespace, "web", stdin=as_input(config_map("a"), config_map("old")))
    hold(cluster, namespace, "old")
    killed = start(cluster, namespace, "web", stdin=as_input(config_map("a"), config_map("left")))
    eventually(lambda: is_going(cluster, namespace, "old"), "everything is applied, and it prunes")
    killed.kill()
    killed.communicate()
    let_go(cluster, namespace, "old")
    assert [one["active"] for one in history(cluster, namespace, "web")] == [True, False] and "left" in names(cluster, namespace)

    done = up(cluster, namespace, "web", stdin=as_input(config_map("a"), config_map("new")))

    assert done.returncode == 0, done.stderr
    assert names(cluster, namespace) == ["a", "new"], "what the killed one made is gone"
    assert [one["active"] for one in history(cluster, namespace, "web")] == [False, True]


def test_the_same_again_after_a_kill_ends_what_was_begun(cluster, namespace):
    up(cluster, namespace, "web", stdin=as_input(config_map("old")))
    hold(cluster, namespace, "old")
    killed = start(cluster, namespace, "web", stdin=as_input(config_map("new")))
    eventually(lambda: is_going(cluster, namespace, "old"), "it prunes")
    killed.kill()
    killed.communicate()
    let_go(cluster, namespace, "old")

    done = up(cluster, namespace, "web", stdin=as_input(config_map("new")))

    assert (done.returncode, done.stderr) == (0, "successful takeoff of web\n")
    assert names(cluster, namespace) == ["new"] and [one["active"] for one in history(cluster, namespace, "web")] == [False, True]


def test_two_at_once_leave_one_release(cluster, namespace):
    """The later one wins; the other's resources are gone with it, or with the next takeoff."""
    def fly(number):
        return up(cluster, namespace, "web", stdin=as_input(config_map("shared", by=str(number)), *(config_map(f"own-{number}-{i}") for i in range(5))))
    for attempt in range(4):
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            done = list(pool.map(fly, range(3 * attempt, 3 * attempt + 3)))
        assert any(one.returncode == 0 for one in done), [one.stderr for one in done]
        for one in done:
            assert one.returncode == 0 or "another takeoff of release" in one.stderr or "not found" in one.stderr or "no longer exists" in one.stderr, one.stderr
    last = up(cluster, namespace, "web", stdin=as_input(config_map("shared", by="last")))

    assert last.returncode == 0, last.stderr
    assert names(cluster, namespace) == ["shared"] and history(cluster, namespace, "web")[-1]["active"]


def test_two_at_once_of_the_same_resources_both_succeed(cluster, namespace):
    for attempt in range(4):
        text = as_input(*(config_map(f"a-{i}", of=str(attempt)) for i in range(5)))
        with concurrent.futures.ThreadPoolExecutor(3) as pool:
            done = list(pool.map(lambda _: up(cluster, namespace, "web", stdin=text), range(3)))
        for one in done:
            same = "resources are the same as previous revision: skipping creation of new revision\n"
            assert one.returncode == 0 and one.stderr in ("successful takeoff of web\n", same), one.stderr
    assert history(cluster, namespace, "web")[-1]["active"]


def test_two_that_lock_follow_one_another(cluster, namespace):
    up(cluster, namespace, "web", stdin=as_input(config_map("old")))
    hold(cluster, namespace, "old")
    first = start(cluster, namespace, "-lock", "web", stdin=as_input(config_map("first")))
    eventually(lambda: is_going(cluster, namespace, "old"), "it is at work")

    second = up(cluster, namespace, "-lock", "web", stdin=as_input(config_map("second")))
    let_go(cluster, namespace, "old")
    _, said = first.communicate(timeout=60)
    third = up(cluster, namespace, "-lock", "web", stdin=as_input(config_map("third")))

    assert second.returncode == 1 and second.stderr == "failed to lock release: lock is already taken\n"
    assert first.returncode == 0 and said == "successful takeoff of web\n"
    assert third.returncode == 0 and names(cluster, namespace) == ["third"]


def test_a_lock_whose_owner_is_gone_is_unlatched(cluster, namespace):
    lock(cluster, namespace, "web")

    refused = up(cluster, namespace, "-lock", "web", stdin=as_input(config_map("a")))
    unlocked = up(cluster, namespace, "web", stdin=as_input(config_map("a")))
    hangar(cluster, "unlatch", "-namespace", namespace, "web")
    done = up(cluster, namespace, "-lock", "web", stdin=as_input(config_map("b")))

    assert refused.returncode == 1 and "lock is already taken" in refused.stderr
    assert unlocked.returncode == 0, "a lock keeps off only those that lock"
    assert done.returncode == 0 and names(cluster, namespace) == ["b"]


def test_interrupted_it_says_so_and_unlocks(cluster, namespace):
    up(cluster, namespace, "web", stdin=as_input(config_map("old")))
    hold(cluster, namespace, "old")
    process = start(cluster, namespace, "-lock", "web", stdin=as_input(config_map("new")))
    eventually(lambda: is_going(cluster, namespace, "old"), "it prunes")
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=60)
    let_go(cluster, namespace, "old")

    assert process.returncode == 1 and said
    assert cluster.list("v1", "Secret", namespace, "internal.yoke/kind=lock") == []
