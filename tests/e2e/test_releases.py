"""`hangar blackbox`, `descent`, `mayday` and `unlatch`: a person's work on a release that yoke or a host has made."""
import json
import signal
import subprocess

import pytest

from airways import airway, flight, instance
from cluster import eventually, is_ready
from conftest import COMPILED
from host import BINARY
from yoke_releases import Made, config_map, go_json, hangar, history, lock, marked, names, record


@pytest.fixture
def web(cluster, namespace):
    """A release of three revisions, the last one active."""
    made = Made(cluster, namespace)
    made.revision(config_map("a", text="one"), url="https://flights.example/web.wasm", sha="0123")
    made.revision(config_map("a", text="two"), config_map("b", url="<&>"))
    made.revision(config_map("b", url="<&>"), config_map("c", lines="first\nsecond\n"))
    cluster.delete("v1", "ConfigMap", "a", namespace)
    return made


def test_blackbox_lists_releases_with_their_active_revision(cluster, namespace, web):
    Made(cluster, namespace, "db").revision(config_map("db"))

    shown = hangar(cluster, "blackbox", "-namespace", namespace)

    assert shown.returncode == 0 and shown.stderr == ""
    assert shown.stdout == ("╭─────────┬───────────┬─────────────╮\n"
                            "│ RELEASE │ NAMESPACE │ REVISION ID │\n"
                            "├─────────┼───────────┼─────────────┤\n"
                            f"│ db      │ {namespace:<9} │           1 │\n"
                            f"│ web     │ {namespace:<9} │           3 │\n"
                            "╰─────────┴───────────┴─────────────╯\n")


def test_blackbox_lists_the_revisions_of_a_release_newest_first(cluster, namespace, web):
    shown = hangar(cluster, "blackbox", f"--namespace={namespace}", "web")

    assert shown.stdout == (
        "╭─────────────┬───────────┬──────────────────────────────────┬──────┬─────────────────────┬─────────────────────╮\n"
        "│ ID          │ RESOURCES │ FLIGHT                           │ SHA  │ ACTIVE AT           │ CREATED AT          │\n"
        "├─────────────┼───────────┼──────────────────────────────────┼──────┼─────────────────────┼─────────────────────┤\n"
        "│ 3 (current) │         2 │ file://main.wasm                 │ abc  │ 2026-04-08 12:00:03 │ 2026-04-08 12:00:03 │\n"
        "│ 2           │         2 │ file://main.wasm                 │ abc  │ 2026-04-08 12:00:02 │ 2026-04-08 12:00:02 │\n"
        "│ 1           │         1 │ https://flights.example/web.wasm │ 0123 │ 2026-04-08 12:00:01 │ 2026-04-08 12:00:01 │\n"
        "╰─────────────┴───────────┴──────────────────────────────────┴──────┴─────────────────────┴─────────────────────╯\n")


def test_blackbox_shows_what_a_revision_has_and_how_two_differ(cluster, namespace, web):
    third = hangar(cluster, "inspect", "-namespace", namespace, "web", "3")
    differs = hangar(cluster, "blackbox", "-namespace", namespace, "-context", "1", "web", "1", "2")

    def yaml(name, data):
        return (f"{namespace}/core/v1/configmap/{name}:\n  apiVersion: v1\n  data:\n{data}  kind: ConfigMap\n  metadata:\n    annotations:\n"
                f"      instance.atc.yoke.cd/namespace: {namespace}\n      instance.atc.yoke.cd/release: web\n    labels:\n"
                f"      app.kubernetes.io/managed-by: yoke\n    name: {name}\n    namespace: {namespace}\n")
    assert third.stdout == yaml("b", "    url: <&>\n") + yaml("c", "    lines: |\n      first\n      second\n")
    assert differs.stdout.startswith("--- revision 1\n+++ revision 2\n@@ -3,3 +3,3 @@\n   data:\n-    text: one\n+    text: two\n   kind: ConfigMap\n")
    assert differs.stdout.count("\n+") == 15, "the second revision has one resource more"


@pytest.mark.parametrize("arguments, says", [
    (["nosuch"], 'release "nosuch" not found'), (["web", "9"], "revision 9 not found"), (["web", "1", "9"], "revision 9 not found"),
    (["web", "x"], 'revision must be an integer ID: strconv.Atoi: parsing "x": invalid syntax'),
    (["web", "1", "x"], 'revision to diff must be an integer ID: strconv.Atoi: parsing "x": invalid syntax')])
def test_blackbox_says_what_it_does_not_find(cluster, namespace, web, arguments, says):
    shown = hangar(cluster, "blackbox", "-namespace", namespace, *arguments)

    assert shown.returncode == 1 and shown.stdout == "" and shown.stderr == says + "\n"


def test_a_release_of_two_namespaces_has_to_be_told_apart(cluster, namespace, unique):
    other = f"{namespace}-other"
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other}})
    for one in (namespace, other):
        Made(cluster, one, unique).revision(config_map("a"))

    shown = hangar(cluster, "blackbox", unique)
    cluster.delete("v1", "Namespace", other)

    assert shown.returncode == 1 and shown.stderr == f'release "{unique}" found in more than one namespace: specify namespace\n'


def acting_as(cluster, tmp_path, user):
    """A kubeconfig of the cluster that acts as another user."""
    config = json.loads(cluster.kubectl("config", "view", "--raw", "--flatten", "-o", "json"))
    config["users"][0]["user"]["as"] = user
    path = tmp_path / "kubeconfig"
    path.write_text(json.dumps(config))
    return path


def test_who_may_read_one_namespace_sees_its_releases(cluster, namespace, web, unique, tmp_path):
    rules = [{"apiGroups": [""], "resources": ["secrets"], "verbs": ["list", "get"]}]
    role = {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "reads", "namespace": namespace}, "rules": rules}
    path = "/apis/rbac.authorization.k8s.io/v1"
    cluster.request("POST", f"{path}/namespaces/{namespace}/roles", role)
    bound = {"roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reads"}, "subjects": [{"kind": "User", "name": unique}]}
    cluster.request("POST", f"{path}/namespaces/{namespace}/rolebindings", {"metadata": {"name": "reads"}, **bound})
    cluster.request("POST", f"{path}/clusterroles", {"metadata": {"name": unique}, "rules": [{"apiGroups": [""], "resources": ["namespaces"], "verbs": ["list"]}]})
    bound["roleRef"] = {**bound["roleRef"], "kind": "ClusterRole", "name": unique}
    cluster.request("POST", f"{path}/clusterrolebindings", {"metadata": {"name": unique}, **bound})

    listed = eventually(lambda: (lambda done: done if done.returncode == 0 else None)(
        hangar(cluster, "blackbox", kubeconfig=acting_as(cluster, tmp_path, unique))), "the rights are known")
    shown = hangar(cluster, "blackbox", "-namespace", namespace, "web", "1", kubeconfig=acting_as(cluster, tmp_path, unique))

    assert [line.split()[3] for line in listed.stdout.splitlines()[3:-1]] == [namespace]
    assert "text: one" in shown.stdout


def test_flags_have_one_dash_or_two_and_may_stand_before_the_command(cluster, namespace, web):
    before = subprocess.run([str(BINARY), "--kubeconfig", cluster.kubeconfig, "-debug", "blackbox", f"-namespace={namespace}", "web"], capture_output=True, text=True)
    behind = subprocess.run([str(BINARY), "blackbox", "web", "--kubeconfig", cluster.kubeconfig, "-namespace", namespace], capture_output=True, text=True)
    unknown = hangar(cluster, "blackbox", "-nosuch")

    assert before.returncode == behind.returncode == 0 and before.stdout == behind.stdout != ""
    assert unknown.returncode == 2 and "nosuch" in unknown.stderr


def test_descent_goes_back_without_a_new_revision(cluster, namespace, web):
    revisions = [one["name"] for one in history(cluster, namespace, "web")]

    done = hangar(cluster, "descent", "-namespace", namespace, "web", "2")

    now = history(cluster, namespace, "web")
    assert done.returncode == 0 and done.stdout == "" and done.stderr == "successful descent of web from revision 3 to 2\n"
    assert names(cluster, namespace) == ["a", "b"]
    assert cluster.get("v1", "ConfigMap", "a", namespace)["data"] == {"text": "two"}
    assert [one["name"] for one in now] == revisions and [one["active"] for one in now] == [False, True, False]
    managers = {one["manager"] for one in cluster.get("v1", "ConfigMap", "a", namespace)["metadata"]["managedFields"]}
    assert managers == {"yoke"}


@pytest.mark.parametrize("arguments, says", [
    (["web", "3"], "can't descend from 3 to 3"), (["web", "0"], "requested revision id 0 is not within valid range 1 to 3"),
    (["web", "4"], "requested revision id 4 is not within valid range 1 to 3"), (["nosuch", "1"], 'no release found "nosuch" in namespace "{}"'),
    ([], "release is required as first positional arg"), (["web"], "revision is required as second positional arg"),
    (["web", "two"], 'revision must be an integer ID: strconv.Atoi: parsing "two": invalid syntax')])
def test_descent_says_where_it_cannot_go(cluster, namespace, web, arguments, says):
    done = hangar(cluster, "down", "-namespace", namespace, *arguments)

    assert done.returncode == 1 and done.stderr == says.format(namespace) + "\n"
    assert names(cluster, namespace) == ["b", "c"] and [one["active"] for one in history(cluster, namespace, "web")] == [False, False, True]


def test_descent_takes_nothing_from_others(cluster, namespace, web):
    cluster.apply(config_map("a", namespace, mine="yes"))

    done = hangar(cluster, "descent", "-namespace", namespace, "web", "1")

    assert done.returncode == 1
    assert f'{namespace}/core/v1/configmap/a: failed to validate resource release: expected release "{namespace}/web" but resource is already owned by ""' in done.stderr
    assert cluster.get("v1", "ConfigMap", "a", namespace)["data"] == {"mine": "yes"} and names(cluster, namespace) == ["a", "b", "c"]


def hold(cluster, namespace, name):
    """The object cannot disappear until let_go()."""
    cluster.patch("v1", "ConfigMap", name, {"metadata": {"finalizers": ["e2e.hangar.dev/hold"]}}, namespace)


def let_go(cluster, namespace, name):
    cluster.patch("v1", "ConfigMap", name, {"metadata": {"finalizers": None}}, namespace)


def start(cluster, *arguments):
    return subprocess.Popen([str(BINARY), *arguments, "-kubeconfig", cluster.kubeconfig], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def is_going(cluster, namespace, name):
    return "deletionTimestamp" in cluster.get("v1", "ConfigMap", name, namespace)["metadata"]


def test_a_descent_that_was_killed_can_be_done_again(cluster, namespace, web):
    hold(cluster, namespace, "c")
    killed = start(cluster, "descent", "-namespace", namespace, "web", "1")
    eventually(lambda: is_going(cluster, namespace, "c"), "it prunes")
    killed.kill()
    killed.communicate()
    assert [one["active"] for one in history(cluster, namespace, "web")] == [False, False, True], "it has not arrived"
    let_go(cluster, namespace, "c")

    done = hangar(cluster, "descent", "-namespace", namespace, "web", "1")

    assert done.returncode == 0, done.stderr
    assert names(cluster, namespace) == ["a"] and [one["active"] for one in history(cluster, namespace, "web")] == [True, False, False]


def test_a_locked_release_is_left_alone_until_it_is_unlocked(cluster, namespace, web):
    lock(cluster, namespace, "web")
    taken = hangar(cluster, "descent", "-lock", "-namespace", namespace, "web", "1")
    listed = hangar(cluster, "blackbox", "-namespace", namespace)
    unlatched = hangar(cluster, "unlatch", "-namespace", namespace, "web")
    again = hangar(cluster, "unlock", "-namespace", namespace, "web")

    done = hangar(cluster, "descent", "-lock", "-namespace", namespace, "web", "1")

    assert taken.returncode == 1 and taken.stderr == "failed to aquire release lock: lock is already taken\n"
    assert listed.returncode == 0 and listed.stderr == "", "a lock is no revision"
    for one in (unlatched, again):
        assert (one.returncode, one.stdout, one.stderr) == (0, "", "")
    assert done.returncode == 0, done.stderr
    assert cluster.list("v1", "Secret", namespace, "internal.yoke/kind=lock") == [], "it unlocks"


def test_a_locked_descent_that_was_killed_leaves_its_lock_and_one_that_is_interrupted_does_not(cluster, namespace, web):
    def locked():
        return len(cluster.list("v1", "Secret", namespace, "internal.yoke/kind=lock"))
    hold(cluster, namespace, "c")
    interrupted = start(cluster, "descent", "-lock", "-namespace", namespace, "web", "1")
    eventually(lambda: is_going(cluster, namespace, "c"), "it prunes")
    assert locked() == 1
    interrupted.send_signal(signal.SIGINT)
    assert interrupted.wait(timeout=30) == 1 and locked() == 0
    killed = start(cluster, "descent", "-lock", "-namespace", namespace, "web", "1")
    eventually(locked, "it has the lock")
    killed.kill()
    killed.communicate()
    assert locked() == 1
    let_go(cluster, namespace, "c")
    refused = hangar(cluster, "descent", "-lock", "-namespace", namespace, "web", "1")
    hangar(cluster, "unlatch", "-namespace", namespace, "web")

    done = hangar(cluster, "descent", "-lock", "-namespace", namespace, "web", "1")

    assert refused.returncode == 1 and "lock is already taken" in refused.stderr
    assert done.returncode == 0, done.stderr


def test_mayday_deletes_what_the_release_has_made_and_its_history(cluster, namespace, web):
    Made(cluster, namespace, "db").revision(config_map("db"))
    cluster.apply(config_map("mine", namespace))

    done = hangar(cluster, "mayday", "-namespace", namespace, "web")

    assert done.returncode == 0 and done.stdout == "" and done.stderr == "Removed 2 resource(s)...\n\nSuccessfully deleted release web\n"
    assert names(cluster, namespace) == ["db", "mine"]
    assert history(cluster, namespace, "web") == [] and len(history(cluster, namespace, "db")) == 1


def test_mayday_of_nothing_is_a_warning(cluster, namespace):
    done = hangar(cluster, "delete", "-namespace", namespace, "nosuch")
    nameless = hangar(cluster, "mayday", "-namespace", namespace)

    assert done.returncode == 0 and done.stderr == f'mayday noop: no history found for release "nosuch" in namespace "{namespace}"\n'
    assert nameless.returncode == 1 and nameless.stderr == "release is required\n"


@pytest.mark.parametrize("flags, kept", [([], True), (["-remove-namespaces"], False), (["--remove-all"], False)])
def test_mayday_lets_go_of_namespaces_unless_it_is_told_to_delete_them(cluster, namespace, unique, flags, kept):
    own = f"{namespace}-own"
    Made(cluster, namespace, unique).revision({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": own}}, config_map("a"))

    done = hangar(cluster, "mayday", "-namespace", namespace, *flags, unique)

    assert done.returncode == 0, done.stderr
    live = cluster.get("v1", "Namespace", own)
    assert (live is not None) == kept
    if kept:
        assert "annotations" not in live["metadata"] and "app.kubernetes.io/managed-by" not in live["metadata"]["labels"]
        cluster.delete("v1", "Namespace", own)


def test_mayday_takes_what_an_interrupted_takeoff_has_left(cluster, namespace, web):
    web.revision(config_map("b"), config_map("left"), active=0)

    done = hangar(cluster, "mayday", "-namespace", namespace, "web")

    assert done.returncode == 0 and "Removed 3 resource(s)" in done.stderr
    assert names(cluster, namespace) == [] and history(cluster, namespace, "web") == []


def test_a_history_that_names_what_others_have_made_deletes_nothing_of_it(cluster, namespace, web, unique):
    foreign = marked(config_map("b"), "web", namespace)
    record(cluster, namespace, unique, [[foreign]], 1)

    done = hangar(cluster, "mayday", "-namespace", namespace, unique)

    assert done.returncode == 0, done.stderr
    assert names(cluster, namespace) == ["b", "c"] and history(cluster, namespace, unique) == []


def test_a_secret_that_is_no_revision_is_told_and_the_others_are_read(cluster, namespace, web):
    cluster.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "yoke.bad", "namespace": namespace, "labels": {"internal.yoke/kind": "revision"}}})

    listed = hangar(cluster, "blackbox", "-namespace", namespace)

    assert listed.returncode == 0 and f"{namespace}/yoke.bad: " in listed.stderr and "│ web " in listed.stdout


def test_the_release_of_an_instance_is_shown_and_taken_back_as_any_other(cluster, host, namespace, unique):
    plural, kind = f"{unique}s", unique.capitalize()
    cluster.create(airway(plural, kind, flight("behave"), historyCapSize=5))
    cluster.learn("e2e.hangar.dev/v1", kind, plural)
    eventually(lambda: is_ready(cluster.get("yoke.cd/v1alpha1", "Airway", f"{plural}.e2e.hangar.dev")), "the Airway is ready", COMPILED)
    release = f"e2e.hangar.dev.{kind}.{namespace}.it"

    def value(text):
        cluster.apply(instance(kind, "it", {"behaviour": "basic", "data": {"text": text}}, namespace))
        eventually(lambda: any(text in one["text"] and one["active"] for one in history(cluster, namespace, release)), f"{text} is released", COMPILED)
    value("one")
    value("two")

    table = hangar(cluster, "blackbox", "-namespace", namespace, release)
    differs = hangar(cluster, "blackbox", "-namespace", namespace, release, "1", "2")
    down = hangar(cluster, "descent", "-namespace", namespace, release, "1")

    assert "│ 2 (current) │" in table.stdout and flight("behave") in table.stdout
    assert "-    text: one\n+    text: two\n" in differs.stdout
    assert down.returncode == 0 and down.stderr == f"successful descent of {release} from revision 2 to 1\n"
    assert [one["active"] for one in history(cluster, namespace, release)] == [True, False]
    for one in history(cluster, namespace, release):
        assert one["text"] == go_json(json.loads(one["text"])), "to the byte as Go writes it"


def test_turbulence_shows_what_differs_and_mends_it(cluster, namespace, web):
    none = hangar(cluster, "turbulence", "-namespace", namespace, "web")
    cluster.patch("v1", "ConfigMap", "b", {"data": {"url": "edited", "added": "1"}}, namespace)
    cluster.delete("v1", "ConfigMap", "c", namespace)

    drift = hangar(cluster, "drift", "-namespace", namespace, "-context=1", "web")
    everything = hangar(cluster, "diff", "-namespace", namespace, "-conflict-only=false", "-color", "web")
    fixed = hangar(cluster, "turbulence", "-namespace", namespace, "-fix", "web")
    after = hangar(cluster, "turbulence", "-namespace", namespace, "web")

    for one in (none, after):
        assert (one.returncode, one.stdout, one.stderr) == (0, "", "no turbulence detected\n")
    assert drift.returncode == 0 and drift.stderr == ""
    assert "--- expected\n+++ actual\n" in drift.stdout and "-      url: <&>\n+      url: edited\n" in drift.stdout
    assert f"-{namespace}/core/v1/configmap/c:\n-  object:\n" in drift.stdout and f"+{namespace}/core/v1/configmap/c: null\n" in drift.stdout
    assert "added" not in drift.stdout and '\x1b[31m+      added: "1"\x1b[0m' in everything.stdout
    assert fixed.returncode == 0 and fixed.stderr == "".join(f"fixed drift for: {namespace}/core/v1/configmap/{name}\n" for name in "bc")
    assert names(cluster, namespace) == ["b", "c"] and cluster.get("v1", "ConfigMap", "b", namespace)["data"] == {"url": "<&>", "added": "1"}
    assert len(history(cluster, namespace, "web")) == 3


def test_turbulence_mends_nothing_of_others(cluster, namespace, web):
    cluster.delete("v1", "ConfigMap", "b", namespace)
    cluster.apply(config_map("b", namespace, mine="1"))

    done = hangar(cluster, "turbulence", "-namespace", namespace, "-fix", "web")
    nosuch = hangar(cluster, "turbulence", "-namespace", namespace, "nosuch")

    assert done.returncode == 1 and "already owned by" in done.stderr and cluster.get("v1", "ConfigMap", "b", namespace)["data"] == {"mine": "1"}
    assert nosuch.returncode == 1 and nosuch.stderr == f'release not found for "nosuch" in namespace "{namespace}"\n'
