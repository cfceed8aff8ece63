"""Requests that one operator's ServiceAccount may not make, tried by a guest: it gets the API server's own answer to a
direct request.

The host itself may make all of them, and has many of the objects in its cache: another operator, which may, watches them.
"""
import pytest

from cluster import ApiError, eventually
from operators import EVERYTHING, OPERATOR, allow, lines, logs

READS = ("", "?resourceVersion=0", "?resourceVersion=1&resourceVersionMatch=NotOlderThan", "?limit=1", "?labelSelector=a",
         "?fieldSelector=metadata.name%3Done&resourceVersion=0", "?watch=true", "?watch=true&resourceVersion=0",
         "?watch=true&resourceVersion=1", "?watch=true&fieldSelector=metadata.name%3Done",
         "?watch=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan")
CACHED = ("secrets", "configmaps", "serviceaccounts", "namespaces")


def verbs_of(collection):
    """get, list, watch, create, update, patch, delete and deletecollection, in all forms that a cache might answer."""
    for query in READS:
        yield "GET", collection + query
    for query in ("", "?resourceVersion=0"):
        yield "GET", f"{collection}/one{query}"
    yield "POST", collection
    for method in ("PUT", "PATCH", "DELETE"):
        yield method, f"{collection}/one"
    yield "DELETE", collection


def table(mine, other):
    core, rbac = "/api/v1", "/apis/rbac.authorization.k8s.io/v1"
    for collection in (f"{core}/namespaces/{mine}/secrets", f"{core}/namespaces/{other}/secrets", f"{core}/secrets",
                       f"{core}/namespaces/{other}/configmaps", f"{core}/configmaps", f"{core}/namespaces",
                       f"{core}/namespaces/{mine}/serviceaccounts", f"{rbac}/namespaces/{mine}/rolebindings",
                       f"{rbac}/clusterrolebindings", f"/apis/hangar.dev/v1alpha1/namespaces/{mine}/operators"):
        yield from verbs_of(collection)
    yield "GET", f"{core}/watch/secrets"
    yield "GET", f"{core}/watch/namespaces/{other}/configmaps"
    yield "GET", f"{core}/watch/namespaces/{other}/secrets/one"
    # Rights in its own namespace must not reach into another one by way of a selector.
    yield "GET", f"{core}/configmaps?watch=true&fieldSelector=metadata.namespace%3D{mine}"
    yield "GET", f"{core}/configmaps?fieldSelector=metadata.namespace%3D{mine}&resourceVersion=0"
    # Subresources.
    for method, path in (
            ("GET", "pods/one/log"), ("GET", "pods/one/status"), ("PUT", "pods/one/status"), ("PATCH", "pods/one/status"),
            ("PATCH", "pods/one/ephemeralcontainers"), ("POST", "pods/one/eviction"), ("POST", "pods/one/binding"),
            ("GET", "pods/one/proxy/"), ("POST", "pods/one/proxy/path"), ("GET", "services/one/proxy/"),
            ("POST", "serviceaccounts/default/token"), ("GET", "configmaps/one/status"), ("PATCH", "configmaps/one/status")):
        yield method, f"{core}/namespaces/{mine}/{path}"
    for method in ("GET", "PUT", "PATCH"):
        yield method, f"/apis/apps/v1/namespaces/{mine}/deployments/one/scale"
        yield method, f"/apis/hangar.dev/v1alpha1/namespaces/{mine}/operators/one/status"
        yield method, f"{core}/namespaces/{mine}/status"
    yield "PUT", f"{core}/namespaces/{mine}/finalize"
    yield "GET", f"{core}/nodes/one/proxy/"
    # Reviews about others, and impersonation.
    for path in ("/apis/authorization.k8s.io/v1/subjectaccessreviews", "/apis/authentication.k8s.io/v1/tokenreviews",
                 f"/apis/authorization.k8s.io/v1/namespaces/{mine}/localsubjectaccessreviews",
                 "/apis/certificates.k8s.io/v1/certificatesigningrequests"):
        yield "POST", path
    # URLs without a resource.
    for path in ("/metrics", "/logs", "/logs/", "/debug/pprof/", "/debug/pprof/heap", "/debug/flags/v", "/configz", "/livez/etcd",
                 "/readyz/etcd"):
        yield "GET", path
    yield "PUT", "/debug/flags/v"
    yield "POST", "/version"
    yield "DELETE", "/api"


@pytest.fixture
def another(cluster, unique):
    name = f"ns-{unique}-another"
    cluster.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    yield name
    cluster.delete("v1", "Namespace", name)


def warm(cluster, host, namespace, operator):
    """An operator that may watch everything, and does: from here on the host's cache has it all."""
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    name = f"warm-{namespace}"
    cluster.request("POST", f"{rbac}/clusterroles", {"metadata": {"name": name}, "rules": [
        {"apiGroups": [""], "resources": list(CACHED), "verbs": ["get", "list", "watch"]}]})
    cluster.request("POST", f"{rbac}/clusterrolebindings", {
        "metadata": {"name": name}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name},
        "subjects": [{"kind": "ServiceAccount", "name": "warm", "namespace": namespace}]})
    steps = " -- ".join(f"stream=/api/v1/{plural}?watch=true" for plural in CACHED).split(" ")
    operator("warm", *steps, serviceAccountName="warm")
    for plural in CACHED:
        eventually(lambda: f"GET /api/v1/{plural}?watch=true: 200" in lines(host, "warm", namespace), f"{plural} are watched", 60)


def direct(cluster, user, method, path):
    """Status and message of the API server's own answer to that user."""
    try:
        cluster.request(method, path, {} if method != "GET" else None,
                        "application/merge-patch+json" if method == "PATCH" else "application/json", {"Impersonate-User": user})
        return 200, ""
    except ApiError as error:
        return error.status, error.body["message"] if isinstance(error.body, dict) else ""


def test_what_a_service_account_must_not_do_its_operator_cannot(cluster, host, namespace, another, operator):
    for where in (namespace, another):
        for kind in ("Secret", "ConfigMap"):
            cluster.create({"apiVersion": "v1", "kind": kind, "metadata": {"name": "one", "namespace": where},
                            ("stringData" if kind == "Secret" else "data"): {"key": "hidden-value"}})
    warm(cluster, host, namespace, operator)
    # With rights of its own, so the API server knows it.
    allow(cluster, namespace, *EVERYTHING, account="guest")
    forbidden = list(table(namespace, another))
    steps = [f"request={method},{path}" + ("" if method == "GET" else ",{}") for method, path in forbidden]
    own = f"/api/v1/namespaces/{namespace}/configmaps"
    operator("weak", *steps, f"get={own}/one", f"get={own}?resourceVersion=0", "print=done", "wait", serviceAccountName="guest",
             limits={"requestsPerSecond": 1000})

    printed = eventually(lambda: (lambda seen: seen if seen[-1:] == ["done"] else None)(lines(host, "weak", namespace)), "all was tried", 120)

    assert printed[-3:] == [f"GET {own}/one: 200", f"GET {own}?resourceVersion=0: 200", "done"]
    user = f"system:serviceaccount:{namespace}:guest"
    wrong = []
    for (method, path), line in zip(forbidden, printed[:-3], strict=True):
        code, message = direct(cluster, user, method, path)
        assert code == 403, f"the table is wrong: {method} {path} is {code} {message}"
        if line != f"{method} {path}: 403 {message}":
            wrong.append((line, message))
    assert not wrong
    assert user in printed[0]
    assert "hidden-value" not in logs(host, "weak", namespace)
    assert cluster.get(*OPERATOR, "weak", namespace)["status"]["restarts"] == 0
