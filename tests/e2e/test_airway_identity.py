"""Flights with rights of their own: an Airway names a ServiceAccount, whose RBAC decides what its flights look up, create and delete."""
import pytest

import airways
import cluster as kubernetes
from airways import flight
from cluster import condition, eventually, is_ready
from conftest import COMPILED
from host import Host

AIRWAY = ("yoke.cd/v1alpha1", "Airway")
GROUP = "identity.hangar.dev"
ANNOTATION = "hangar.dev/service-account"
ACCOUNT = "flights"
RBAC = "rbac.authorization.k8s.io/v1"
ROLE, BINDING = (RBAC, "Role"), (RBAC, "RoleBinding")

kubernetes.KINDS[ROLE] = (f"/apis/{RBAC}", "roles", True)
kubernetes.KINDS[BINDING] = (f"/apis/{RBAC}", "rolebindings", True)


@pytest.fixture(scope="module")
def cluster(own_cluster):
    """A control plane of its own: its host is restarted with another setting."""
    return own_cluster


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    return tmp_path_factory.mktemp("identity-host")


@pytest.fixture(scope="module")
def own_host(cluster, directory):
    made = Host(cluster.kubeconfig, directory)
    yield made
    assert made.stop() == 0, f"the host did not end cleanly:\n{made.tail()}"


@pytest.fixture
def host(own_host):
    return own_host


def grant(cluster, namespace, name, *rules, account=ACCOUNT, of=None):
    """Creates a Role, and its RoleBinding for the account of this namespace or of another one."""
    cluster.apply({"apiVersion": RBAC, "kind": "Role", "metadata": {"name": name, "namespace": namespace},
                   "rules": [{"apiGroups": [""], "resources": ["configmaps"], **rule} for rule in rules]})
    cluster.apply({"apiVersion": RBAC, "kind": "RoleBinding", "metadata": {"name": name, "namespace": namespace},
                   "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
                   "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": of or namespace}]})


ALL = {"verbs": ["get", "create", "patch", "delete"]}


class Kind:
    def __init__(self, cluster, airway, unique, wasm="greeting_cpp", account=ACCOUNT, **spec):
        self.cluster, self.kind = cluster, unique.capitalize()
        manifest = airways.airway(f"{unique}s", self.kind, flight(wasm), group=GROUP, **spec)
        if account:
            manifest["metadata"]["annotations"] = {ANNOTATION: account}
        self.name = manifest["metadata"]["name"]
        airway(manifest)

    def create(self, name, namespace, **spec):
        self.cluster.create(airways.instance(self.kind, name, spec, namespace, group=GROUP))

    def patch(self, name, namespace, **spec):
        self.cluster.patch(f"{GROUP}/v1", self.kind, name, {"spec": spec}, namespace)

    def get(self, name, namespace):
        return self.cluster.get(f"{GROUP}/v1", self.kind, name, namespace)

    def delete(self, name, namespace):
        self.cluster.delete(f"{GROUP}/v1", self.kind, name, namespace)

    def act_as(self, account):
        self.cluster.patch(*AIRWAY, self.name, {"metadata": {"annotations": {ANNOTATION: account}}}, None)

    def says(self, name, namespace, *words, reason="Error"):
        def look():
            ready = condition(self.get(name, namespace))
            return ready.get("reason") == reason and all(word in ready["message"] for word in words) and ready["message"]
        return eventually(look, f"{name} says {words}: {condition(self.get(name, namespace))}", 60)

    def ready(self, name, namespace):
        eventually(lambda: is_ready(self.get(name, namespace)), f"{name} is Ready: {condition(self.get(name, namespace))}", COMPILED)


@pytest.fixture
def kind(cluster, host, airway, unique):
    return lambda **options: Kind(cluster, airway, unique, **options)


def config_map(cluster, name, namespace):
    return (cluster.get("v1", "ConfigMap", name, namespace) or {}).get("data")


def managers(cluster, name, namespace):
    return {(one["manager"], one["operation"]) for one in cluster.get("v1", "ConfigMap", name, namespace)["metadata"]["managedFields"]}


def test_a_release_is_made_with_the_rights_of_the_account_in_the_instances_namespace(cluster, kind, namespace):
    made = kind()
    made.create("it", namespace, text="hello")
    message = made.says("it", namespace, f"system:serviceaccount:{namespace}:{ACCOUNT}")
    assert f"ServiceAccount {ACCOUNT} of namespace {namespace}: give it that right" in message
    assert config_map(cluster, "it", namespace) is None

    grant(cluster, namespace, "makes", ALL)
    made.ready("it", namespace)
    assert config_map(cluster, "it", namespace) == {"text": "hello"}
    # The account has no rights in another namespace.
    other = f"{namespace}-other"
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other}})
    made.create("it", other, text="hello")
    made.says("it", other, f"system:serviceaccount:{other}:{ACCOUNT}")
    made.delete("it", other)
    eventually(lambda: made.get("it", other) is None, "what has made nothing needs no rights to go", 60)
    cluster.delete("v1", "Namespace", other)


def test_one_account_of_the_platform_serves_the_instances_of_all_namespaces(cluster, kind, namespace):
    made = kind(account=f"default/{ACCOUNT}")
    made.create("it", namespace, text="hello")
    made.says("it", namespace, f"system:serviceaccount:default:{ACCOUNT}", f"ServiceAccount {ACCOUNT} of namespace default")
    grant(cluster, namespace, "makes", ALL, of="default")
    made.ready("it", namespace)


def test_a_flight_is_shown_what_its_account_may_get(cluster, kind, namespace):
    """The matcher allows every ConfigMap; the account does not."""
    made = kind(clusterAccess=True, resourceAccessMatchers=["ConfigMap"], mode="dynamic")
    cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "source", "namespace": namespace}, "data": {"text": "secret"}})
    grant(cluster, namespace, "makes", {"verbs": ["create"]}, {"verbs": ["get", "patch", "delete"], "resourceNames": ["it"]})
    made.create("it", namespace, **{"from": "source"})
    made.says("it", namespace, "failed to lookup configmap source", "forbidden", f"system:serviceaccount:{namespace}:{ACCOUNT}", "cannot get")
    assert config_map(cluster, "it", namespace) is None
    # The flight does not learn either whether an object exists that it may not get.
    made.create("other", namespace, **{"from": "nothing"})
    made.says("other", namespace, "failed to lookup configmap nothing", "forbidden")
    made.delete("other", namespace)

    grant(cluster, namespace, "reads", {"verbs": ["get"], "resourceNames": ["source"]})
    made.ready("it", namespace)
    assert config_map(cluster, "it", namespace) == {"text": "secret"}


def test_a_removal_whose_account_has_no_rights_any_more_says_so_and_can_be_helped(cluster, kind, namespace):
    made = kind()
    grant(cluster, namespace, "makes", ALL)
    made.create("it", namespace, text="hello")
    made.ready("it", namespace)
    cluster.delete(*BINDING, "makes", namespace)
    made.delete("it", namespace)

    made.says("it", namespace, "cannot remove", f"system:serviceaccount:{namespace}:{ACCOUNT}", "give it that right", reason="Terminating")
    eventually(lambda: [event for event in cluster.list("v1", "Event", namespace)
                        if event["involvedObject"]["name"] == "it" and event["reason"] == "RemovalFailed"], "an Event says it, too")
    assert config_map(cluster, "it", namespace) == {"text": "hello"}
    made.act_as(None)
    eventually(lambda: made.get("it", namespace) is None, "as the host it goes", 60)
    assert config_map(cluster, "it", namespace) is None


def test_a_namespace_goes_although_its_accounts_rights_go_first(cluster, kind, unique):
    made = kind()
    gone = f"gone-{unique}"
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": gone}})
    grant(cluster, gone, "makes", ALL)
    made.create("it", gone, text="hello")
    made.ready("it", gone)

    cluster.delete("v1", "Namespace", gone)

    eventually(lambda: made.get("it", gone) is None, "the instance goes", 120)


def test_what_the_host_made_stays_its_releases_when_the_airway_names_an_account(cluster, kind, namespace):
    """Fields keep their only owner, so a field that the flight no longer prints is removed."""
    made = kind(wasm="behave", account=None)
    made.create("it", namespace, behaviour="basic", data={"a": "1", "b": "2"})
    made.ready("it", namespace)
    assert managers(cluster, "it", namespace) == {("yoke", "Apply")}
    grant(cluster, namespace, "makes", ALL)

    made.act_as(ACCOUNT)
    cluster.request("PATCH", cluster.path(f"{GROUP}/v1", made.kind, namespace, "it") + "?fieldManager=e2e",
                    [{"op": "remove", "path": "/spec/data/b"}], "application/json-patch+json")

    eventually(lambda: config_map(cluster, "it", namespace) == {"a": "1"}, "the field is gone", 60)
    made.ready("it", namespace)
    assert managers(cluster, "it", namespace) == {("yoke", "Apply")}
    cluster.delete(*BINDING, "makes", namespace)
    made.patch("it", namespace, data={"a": "3"})
    made.says("it", namespace, "give it that right")
    grant(cluster, namespace, "makes", ALL)
    made.ready("it", namespace)


@pytest.mark.parametrize("account", ["Not a name", "a/b/c"])
def test_an_annotation_that_names_no_account_is_an_error_and_nobody_acts(cluster, airway, host, namespace, unique, account):
    manifest = airways.airway(f"{unique}s", unique.capitalize(), flight("greeting_cpp"), group=GROUP)
    manifest["metadata"]["annotations"] = {ANNOTATION: account}
    airway(manifest, ready=False)

    ready = eventually(lambda: (lambda one: one if one.get("reason") == "Error" else None)(condition(cluster.get(*AIRWAY, manifest["metadata"]["name"]))),
                       "the Airway says so", 60)
    assert ANNOTATION in ready["message"] and "must be a service account" in ready["message"]


def test_the_host_names_an_account_for_airways_that_name_none(cluster, host, directory, kind, namespace):
    assert host.stop() == 0
    other = Host(cluster.kubeconfig, directory.parent / "identity-default", f"--airway-service-account={ACCOUNT}")
    try:
        made = kind(account=None)
        made.create("it", namespace, text="hello")
        made.says("it", namespace, f"system:serviceaccount:{namespace}:{ACCOUNT}")
        grant(cluster, namespace, "makes", ALL)
        made.ready("it", namespace)
        made.delete("it", namespace)
        eventually(lambda: made.get("it", namespace) is None, "it goes", 60)
    finally:
        assert other.stop() == 0
        host.start()
