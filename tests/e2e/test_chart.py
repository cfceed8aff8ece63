"""The chart: its manifests, and that it gives exactly the rights that the host uses."""
import base64
import collections
import itertools
import json
import pathlib
import subprocess
from concurrent.futures import ThreadPoolExecutor

import pytest
import yaml

import airways
import flights
import operators
import users
import workflows
from airways import flight, instance
from charts import CHART, REPOSITORY, Refused, helm, kubeconfig_of, render, rules, rules_of, urls_of, with_repository
from cluster import KINDS, Cluster, condition, eventually, is_ready, try_to, when_compiled
from conftest import COMPILED
from host import BINARY, Host, free_port
from module_server import Modules
from webhooks import BINDING, POLICY, kept_by, make_policy

KINDS[("hangar.dev/v1alpha1", "TenantUsage")] = ("/apis/hangar.dev/v1alpha1", "tenantusages", True)
KINDS[("node.k8s.io/v1", "RuntimeClass")] = ("/apis/node.k8s.io/v1", "runtimeclasses", False)

# Keys that users who come from kwasm-operator have in their values files: those that it published.
KWASM_VALUES = {
    "replicaCount": 2,
    "image": {"repository": "registry.example.com/hangar", "pullPolicy": "Always", "tag": "v1"},
    "imagePullSecrets": [{"name": "pull"}],
    "nameOverride": "wasm",
    "fullnameOverride": "wasm-full",
    "kwasmOperator": {"autoProvision": "true", "installerImage": "registry.example.com/installer:v2"},
    "serviceAccount": {"create": True, "annotations": {"a": "b"}, "name": "robot"},
    "podAnnotations": {"c": "d"},
    "podSecurityContext": {"runAsUser": 1000},
    "securityContext": {"readOnlyRootFilesystem": True},
    "service": {"type": "NodePort", "port": 8088},
    "resources": {"limits": {"cpu": "2"}},
    "nodeSelector": {"kubernetes.io/os": "linux"},
    "tolerations": [{"key": "control", "operator": "Exists"}],
    "affinity": {"nodeAffinity": {}},
}

SHIM = {"file": "containerd-shim-spin-v2", "url": "https://example.com/spin.tar.gz", "sha256": "0a" * 32, "programSha256": "0b" * 32}


def pod_of(manifests):
    (deployment,) = [one for (kind, _), one in manifests.items() if kind == "Deployment"]
    return deployment["spec"]["template"]


def argument(manifests, name):
    """`--name=...` of the host's container."""
    (found,) = [one for one in pod_of(manifests)["spec"]["containers"][0]["args"] if one.startswith(f"--{name}=")]
    return found


# What is rendered --------------------------------------------------------------------------------


@pytest.mark.parametrize("values", [
    {}, KWASM_VALUES, {"features": {"airways": False}}, {"features": {"flights": False}}, {"features": {"operators": False}}, {"features": {"nodes": False}},
    {"features": {"workflows": False}},
    {"rbac": {"clusterAdmin": True}}, {"kwasmOperator": {"autoProvision": False}, "nodes": {"maxUnavailable": "10%", "runtimeClasses": ["a=b"]}},
    {"rbac": {"create": False}, "serviceAccount": {"create": False}}, {"modules": {"verificationKeysSecret": "flight-keys"}},
    {"modulePolicy": {"rules": [{"prefix": "oci://", "require": "yoke", "keys": ["/keys"]}], "default": {"require": "deny"}}},
    {"modulePolicy": {"rules": [{"prefix": "oci://r.example", "require": "cosign", "keyless": {
        "trustRoot": {"mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1"},
        "identities": [{"issuer": "https://login.example.com", "subjectRegExp": "^.*$"}]}}], "default": {"require": "deny"}}},
    {"settings": {"logLevel": "debug", "moduleAllowList": ["oci://a/*"]}, "registrySecret": "pull",
     "serviceMonitor": {"enabled": True}, "cache": {"existingClaim": "modules"}, "extraArgs": ["--guest-threads=2"],
     "extraVolumes": [{"name": "ca", "configMap": {"name": "ca"}}], "extraVolumeMounts": [{"name": "ca", "mountPath": "/ca"}],
     "networkPolicy": {"enabled": True, "from": [{"podSelector": {}}]}, "topologySpreadConstraints": [
         {"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}]},
], ids=["defaults", "kwasm", "no airways", "no flights", "no operators", "no nodes", "no workflows", "admin", "nodes", "no rights", "signatures", "module policy", "keyless",
        "everything else"])
def test_helm_finds_nothing_wrong_with_it(values):
    assert "0 chart(s) failed" in helm("lint", "--strict", str(CHART), "--values", "-", stdin=yaml.safe_dump(with_repository(values)))
    assert render(values)


def test_the_published_values_mean_what_they_meant():
    manifests = render(KWASM_VALUES)
    deployment = manifests[("Deployment", "wasm-full")]
    pod = deployment["spec"]["template"]["spec"]
    container = pod["containers"][0]

    assert deployment["spec"]["replicas"] == 2
    assert container["image"] == "registry.example.com/hangar:v1" and container["imagePullPolicy"] == "Always"
    assert pod["imagePullSecrets"] == [{"name": "pull"}]
    assert deployment["metadata"]["labels"]["app.kubernetes.io/name"] == "wasm"
    assert manifests[("ServiceAccount", "robot")]["metadata"]["annotations"] == {"a": "b"}
    assert pod["serviceAccountName"] == "robot"
    assert pod_of(manifests)["metadata"]["annotations"]["c"] == "d"
    assert pod["securityContext"]["runAsUser"] == 1000 and container["securityContext"]["readOnlyRootFilesystem"] is True
    assert manifests[("Service", "wasm-full")]["spec"]["type"] == "NodePort"
    assert manifests[("Service", "wasm-full")]["spec"]["ports"][0]["port"] == 8088
    assert container["resources"]["limits"]["cpu"] == "2"
    assert pod["nodeSelector"] == KWASM_VALUES["nodeSelector"] and pod["tolerations"] == KWASM_VALUES["tolerations"]
    assert pod["affinity"] == KWASM_VALUES["affinity"]
    assert {"--auto-provision-nodes=true", "--installer-image=registry.example.com/installer:v2"} <= set(container["args"])


@pytest.mark.parametrize("values, complaint", [
    ({"replicas": 2}, "replicas"),
    ({"features": {"airway": True}}, "airway"),
    ({"features": {"airways": "yes"}}, "boolean"),
    ({"features": {"airways": False, "flights": False, "operators": False, "workflows": False, "nodes": False}}, "every feature is off"),
    ({"kwasmOperator": {"autoProvision": "sometimes"}}, "autoProvision"),
    ({"nodes": {"maxUnavailable": "120%"}}, "maxUnavailable"),
    ({"nodes": {"runtimes": [{**SHIM, "sha256": "short"}]}}, "runtimes/0/sha256"),
    ({"kwasmOperator": {"installerImage": "i"}, "nodes": {"runtimes": [{name: SHIM[name] for name in ("file", "url", "sha256")}]}}, "programSha256"),
    ({"nodes": {"runtimes": [{**SHIM, "url": "ftp://example.com/spin"}]}}, "runtimes/0/url"),
    ({"nodes": {"runtimes": [{**SHIM, "architecture": "riscv64"}]}}, "runtimes/0/architecture"),
    ({"settings": {"nodeRuntimes": "x"}}, "settings.nodeRuntimes"),
    ({"settings": {"moduleVerificationKeysSecret": "x"}}, "settings.moduleVerificationKeysSecret"),
    ({"modules": {"verificationKeysSecret": "Flight Keys"}}, "verificationKeysSecret"),
    ({"settings": {"modulePolicy": "x"}}, "settings.modulePolicy"),
    ({"modulePolicy": {"rules": []}}, "default"),
    ({"modulePolicy": {"rules": [{"prefix": "r.example/team", "require": "none"}], "default": {"require": "none"}}}, "rules/0/prefix"),
    ({"modulePolicy": {"rules": [], "default": {"require": "sigstore"}}}, "default/require"),
    ({"modulePolicy": {"rules": [], "default": {"require": "none", "key": "x"}}}, "key"),
    ({"modulePolicy": {"rules": [{"prefix": "oci://r.example", "require": "cosign", "keyless": {"trustRoot": "root.json", "identities": []}}],
                       "default": {"require": "none"}}}, "keyless/identities"),
    ({"settings": {"leaderElect": False}}, "settings.leaderElect"),
    ({"settings": {"webhookUrl": "https://x"}}, "settings.webhookUrl"),
    ({"webhooks": {"injectCaFrom": "name"}}, "injectCaFrom"),
    ({"rbac": {"flightResources": [{"resources": ["jobs"]}]}}, "apiGroups"),
    ({"tenants": "team"}, "tenants"),
    ({"tenants": ["Team"]}, "tenants/0"),
    ({"tenants": [{"name": "team"}]}, "tenants/0"),
    ({"tenants": ["hangar-system"]}, "the release's own namespace"),
    ({"tenants": [{"namespace": "hangar-system", "serviceAccounts": ["mirror", "hangar"]}]}, "the release's own namespace"),
    ({"tenantPolicy": {"defaults": "friends"}}, "tenantPolicy.defaults|tenantPolicy/defaults"),
    ({"tenantPolicy": {"spec": {"budget": {}}}}, "budget"),
    ({"rbac": {"impersonation": "Always"}}, "impersonation"),
    ({"image": {"repository": ""}}, "image.repository"),
    ({"image": {"repository": "ghcr.io/kwasm/kwasm-operator", "tag": "kwasm-operator-0.2.2"}}, "KWasm's operator, not hangar: give image.repository"),
    ({"image": {"tag": "kwasm-operator-0.2.2"}}, "KWasm's operator, not hangar"),
    ({"nodes": {"fetch": {"proxy": "http://user:password@proxy:3128"}}}, "fetch/proxy"),
    ({"nodes": {"fetch": {"proxy": "proxy:3128"}}}, "fetch/proxy"),
], ids=lambda value: value if isinstance(value, str) else "")
def test_wrong_values_are_refused_by_name(values, complaint):
    with pytest.raises(Refused, match=complaint):
        render(values)


def test_the_host_may_read_the_keys_of_modules_and_no_other_secret_beside_them():
    manifests = render({"modules": {"verificationKeysSecret": "flight-keys"}})
    (role,) = [one for (kind, name), one in manifests.items() if kind == "Role" and name == "hangar"]

    assert argument(manifests, "module-verification-keys-secret") == "--module-verification-keys-secret=flight-keys"
    assert [rule for rule in role["rules"] if "secrets" in rule["resources"]] == [
        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["flight-keys"], "verbs": ["list", "watch"]}]


def test_the_module_policy_is_a_file_that_the_host_reads():
    policy = {"rules": [{"prefix": "oci://registry.example.com/team/", "require": "cosign", "keys": ["-----BEGIN PUBLIC KEY-----\nx\n"]}],
              "default": {"require": "deny"}}
    manifests = render({"modulePolicy": policy})
    flag = argument(manifests, "module-policy")
    (mount,) = [one for one in pod_of(manifests)["spec"]["containers"][0]["volumeMounts"] if one["name"] == "config"]

    assert flag == f"--module-policy={mount['mountPath']}/module-policy.yaml"
    assert yaml.safe_load(manifests[("ConfigMap", "hangar")]["data"]["module-policy.yaml"]) == policy
    assert not [one for one in pod_of(render({}))["spec"]["containers"][0]["args"] if one.startswith("--module-policy")]


def test_the_host_may_read_the_credentials_for_registries_and_no_other_secret_beside_them():
    manifests = render({"registrySecret": "registries"})
    (role,) = [one for (kind, name), one in manifests.items() if kind == "Role" and name == "hangar"]

    assert argument(manifests, "docker-config-secret") == "--docker-config-secret=registries"
    assert [rule for rule in role["rules"] if "secrets" in rule["resources"]] == [
        {"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["registries"], "verbs": ["list", "watch"]}]


def test_pods_are_unprivileged_and_disrupted_one_at_a_time():
    manifests = render({"replicaCount": 2})
    pod = pod_of(manifests)["spec"]
    (container,) = pod["containers"]

    assert pod["securityContext"]["runAsNonRoot"] and pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]}}
    assert container["livenessProbe"]["httpGet"]["path"] == "/healthz" and container["readinessProbe"]["httpGet"]["path"] == "/readyz"
    assert container["resources"]["requests"] and container["resources"]["limits"]["memory"]
    assert pod["nodeSelector"] == {"kubernetes.io/os": "linux"}
    assert pod["topologySpreadConstraints"][0]["topologyKey"] == "kubernetes.io/hostname"
    budget = manifests[("PodDisruptionBudget", "hangar")]["spec"]
    assert budget["maxUnavailable"] == 1
    assert budget["selector"]["matchLabels"].items() <= pod_of(manifests)["metadata"]["labels"].items()


@pytest.mark.parametrize("values, replicas", [({}, 1), ({"webhooks": {"enabled": True}}, 2), ({"webhooks": {"enabled": True}, "replicaCount": 1}, 1),
                                              ({"replicaCount": 0}, 0), ({"replicaCount": 3}, 3)])
def test_hosts_that_the_api_server_asks_are_two(values, replicas):
    manifests = render(values)

    assert manifests[("Deployment", "hangar")]["spec"]["replicas"] == replicas
    assert manifests[("PodDisruptionBudget", "hangar")]["spec"]["maxUnavailable"] == 1


@pytest.mark.parametrize("values", [{}, {"existingClaim": "modules"}])
def test_the_host_knows_how_large_its_cache_may_be(values):
    def of(**cache):
        pod = pod_of(render({"cache": {**values, **cache}}))["spec"]
        volume = next(one for one in pod["volumes"] if one["name"] == "cache")
        return [word for word in pod["containers"][0]["args"] if "cache-size" in word], volume.get("emptyDir", {}).get("sizeLimit", "a claim")

    assert of() == (["--module-cache-size=10Gi"], "a claim" if values else "10Gi")
    assert of(sizeLimit="3Gi")[0] == ["--module-cache-size=3Gi"]
    assert of(sizeLimit="") == ([], "a claim" if values else None)


def test_an_image_may_be_pinned_by_its_digest():
    digest = f"sha256:{'0a' * 32}"

    assert pod_of(render({"image": {"digest": digest}}))["spec"]["containers"][0]["image"] == f"{REPOSITORY}@{digest}"


def test_guest_processes_need_nothing_more_of_the_pod():
    isolated, without = render(), render({"settings": {"guestIsolation": "none"}})

    def settings(manifests):
        return manifests[("ConfigMap", "hangar")]["data"]["hangar.yaml"]
    assert "guestIsolation" not in settings(isolated), "the host's own default"
    assert "guestIsolation: none" in settings(without)
    assert pod_of(isolated)["spec"] == pod_of(without)["spec"]
    assert {key: value for key, value in isolated.items() if key[0].endswith("Role")} == {key: value for key, value in without.items() if key[0].endswith("Role")}


def test_only_those_who_are_named_may_reach_the_pods():
    assert not [kind for kind, _ in render() if kind == "NetworkPolicy"]
    monitoring = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}
    policy = render({"networkPolicy": {"enabled": True, "from": [monitoring]}})[("NetworkPolicy", "hangar")]["spec"]

    assert policy["policyTypes"] == ["Ingress"]
    assert policy["ingress"] == [{"ports": [{"port": "http", "protocol": "TCP"}], "from": [monitoring]}]


def test_nodes_download_runtimes_and_pull_with_the_hosts_secrets():
    values = {"kwasmOperator": {"installerImage": "installer:v1"}, "imagePullSecrets": [{"name": "pull"}, {"name": "other"}],
              "image": {"tag": "v3"}, "nodes": {"runtimes": [{**SHIM, "architecture": "amd64"}, {**SHIM, "file": "crun"}]}}
    manifests = render(values)

    source = f"{SHIM['url']}#sha256:{SHIM['sha256']}#program-sha256:{SHIM['programSha256']}"
    assert argument(manifests, "node-runtimes") == f"--node-runtimes=containerd-shim-spin-v2@amd64={source},crun={source}"
    assert argument(manifests, "node-fetch-image") == f"--node-fetch-image={REPOSITORY}:v3"
    assert argument(manifests, "node-image-pull-secrets") == "--node-image-pull-secrets=pull,other"
    others = render({**values, "nodes": {"imagePullSecrets": [{"name": "installers"}]}})
    assert argument(others, "node-image-pull-secrets") == "--node-image-pull-secrets=installers"


def test_the_container_that_downloads_reaches_its_servers_as_the_values_say():
    values = {"kwasmOperator": {"installerImage": "installer:v1"},
              "nodes": {"runtimes": [SHIM], "fetch": {"proxy": "http://proxy:3128", "noProxy": ".example.com,10.0.0.0/8", "caConfigMap": "our-ca"}}}
    manifests = render(values)

    assert argument(manifests, "node-fetch-proxy") == "--node-fetch-proxy=http://proxy:3128"
    assert argument(manifests, "node-fetch-no-proxy") == "--node-fetch-no-proxy=.example.com,10.0.0.0/8"
    assert argument(manifests, "node-fetch-ca-config-map") == "--node-fetch-ca-config-map=our-ca"
    plain = pod_of(render({**values, "nodes": {"runtimes": [SHIM]}}))["spec"]["containers"][0]["args"]
    assert not [one for one in plain if one.startswith(("--node-fetch-proxy", "--node-fetch-no-proxy", "--node-fetch-ca"))]


def test_config_maps_are_read_where_readiness_rules_come_from():
    def readers(values):
        return {rule[0] for rule in rules(render(values)) if rule[1:] == ("", "configmaps", "list")}
    assert readers({}) == {NAMESPACE}
    assert readers({"readinessRulesFrom": ["one", "two"]}) == {"one", "two"}
    assert readers({"readinessRulesFrom": ["*"]}) == {None}
    assert not readers({"features": {"airways": False, "flights": False}})
    assert argument(render({"readinessRulesFrom": ["one", "two"]}), "readiness-rules-from") == "--readiness-rules-from=one,two"


def test_webhooks_are_served_and_have_what_they_need_only_where_they_are_on():
    off, on = render(), render({"webhooks": {"enabled": True}, "networkPolicy": {"enabled": True}})
    container = pod_of(on)["spec"]["containers"][0]

    assert not [one for one in off if "webhooks" in one[1]]
    assert on[("Service", "hangar-webhooks")]["spec"]["ports"][0]["targetPort"] == "webhooks"
    assert {"name": "webhooks", "containerPort": 9443} in container["ports"]
    assert {"--webhook-bind-address=:9443", "--webhook-service=hangar-system/hangar-webhooks", "--webhook-secret=hangar-webhooks",
            "--webhook-owner=hangar-webhooks"} <= set(container["args"])
    assert {"port": "webhooks", "protocol": "TCP"} in on[("NetworkPolicy", "hangar")]["spec"]["ingress"][1]["ports"]
    added = rules(on) - rules(off)
    assert (NAMESPACE, "", "secrets", "get") in added and not {rule for rule in added if rule[2] in ("*", "*/*")}
    known = render({"webhooks": {"enabled": True, "clientCaConfigMap": "clients", "clientNames": ["one", "two"]},
                    "networkPolicy": {"enabled": True, "webhooksFrom": [{"ipBlock": {"cidr": "192.0.2.10/32"}}]}})
    pod = pod_of(known)["spec"]
    assert {"--webhook-client-ca-file=/etc/hangar-webhook-clients/ca.crt", "--webhook-client-names=one,two"} <= set(pod["containers"][0]["args"])
    assert {"name": "webhook-clients", "configMap": {"name": "clients"}} in pod["volumes"]
    assert known[("NetworkPolicy", "hangar")]["spec"]["ingress"][1]["from"] == [{"ipBlock": {"cidr": "192.0.2.10/32"}}]

    others = render({"webhooks": {"enabled": True, "existingSecret": "ours", "injectCaFrom": "hangar-system/ours"}})
    assert {"--webhook-certificate-dir=/etc/hangar-webhooks", "--webhook-ca-from=hangar-system/ours"} <= set(pod_of(others)["spec"]["containers"][0]["args"])
    assert not {rule for rule in rules(others) if rule[2] == "secrets"}
    assert [one for one in render({"webhooks": {"enabled": True}, "features": {"airways": False}}) if "webhooks" in one[1]]
    none = {"airways": False, "flights": False, "operators": False}
    assert not [one for one in render({"webhooks": {"enabled": True}, "features": none}) if "webhooks" in one[1]]


def test_webhooks_of_operators_have_a_service_whose_endpoint_is_the_leader():
    on = render({"webhooks": {"enabled": True}})
    container = pod_of(on)["spec"]["containers"][0]
    service = on[("Service", "hangar-operators")]["spec"]

    assert "selector" not in service and service["ports"] == [{"name": "webhooks", "port": 443}]
    assert "--webhook-leader-service=hangar-system/hangar-operators" in container["args"]
    assert {"name": "HANGAR_WEBHOOK_LEADER_ADDRESS", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}} in container["env"]
    assert (NAMESPACE, "discovery.k8s.io", "endpointslices", "patch") in rules(on)
    # The host's own identity only watches what operators answer.
    alone = rules(render({"webhooks": {"enabled": True}, "features": {"airways": False, "flights": False}}))
    assert {verb for _, _, resource, verb in alone if resource in ("mutatingwebhookconfigurations", "customresourcedefinitions")} == {"list", "watch"}

    off = render({"webhooks": {"enabled": True}, "features": {"operators": False}})
    assert ("Service", "hangar-operators") not in off
    assert not {rule for rule in rules(off) if rule[2] in ("endpointslices", "mutatingwebhookconfigurations") and rule[0] == NAMESPACE}


def test_traces_go_to_a_collector_only_where_there_is_one():
    def traces(**values):
        return [one for one in pod_of(render(values))["spec"]["containers"][0]["args"] if one.startswith("--traces")]
    assert traces() == [] and traces(traces={"ratio": 1}) == []
    assert traces(traces={"url": "http://collector:4318"}) == ["--traces-url=http://collector:4318", "--traces-ratio=0.05"]
    assert traces(traces={"url": "https://collector", "ratio": 0.5}) == ["--traces-url=https://collector", "--traces-ratio=0.5"]


def test_records_are_shown_and_have_what_they_need_only_where_they_are_on():
    off, on = render(), render({"records": {"enabled": True}, "networkPolicy": {"enabled": True}})
    container = pod_of(on)["spec"]["containers"][0]

    assert not [one for one in off if "records" in one[1]]
    assert on[("Service", "hangar-records")]["spec"]["ports"] == [{"name": "records", "port": 9444, "targetPort": "records"}]
    assert {"name": "records", "containerPort": 9444} in container["ports"]
    assert {"--records-bind-address=:9444", "--records-secret=hangar-records", "--records-names=hangar-records.hangar-system.svc"} <= set(container["args"])
    assert {"port": "records", "protocol": "TCP"} in on[("NetworkPolicy", "hangar")]["spec"]["ingress"][1]["ports"]
    assert rules(on) - rules(off) == {
        (None, "authentication.k8s.io", "tokenreviews", "create"), (NAMESPACE, "", "configmaps", "patch"),
        (NAMESPACE, "", "secrets", "get"), (NAMESPACE, "", "secrets", "update")}
    reader = ("Role", "hangar-records-reader")
    assert (NAMESPACE, "", "pods/portforward", "create") in rules_of(on[reader])
    # The chart binds nobody to it.
    assert not [one for one in on.values() if one["kind"] == "RoleBinding" and one["roleRef"]["name"] == reader[1]]

    reached = render({"records": {"enabled": True, "url": "https://hangar.example.com", "existingSecret": "ours", "service": {"type": "LoadBalancer"}}})
    assert {"--records-url=https://hangar.example.com", "--records-secret=ours"} <= set(pod_of(reached)["spec"]["containers"][0]["args"])
    assert {rule[2:] for rule in rules_of(reached[reader])} == {("configmaps", "get")}
    assert ("Secret", "hangar-records") not in reached and reached[("Service", "hangar-records")]["spec"]["type"] == "LoadBalancer"
    assert not [one for one in render({"records": {"enabled": True}, "features": {"operators": False}}) if "records" in one[1]]


def test_before_an_uninstall_a_job_lets_go_of_the_cluster():
    manifests = render()
    hooks = [one for one in manifests.values() if "pre-delete" in one["metadata"].get("annotations", {}).get("helm.sh/hook", "")]
    assert [one["kind"] for one in hooks] == ["Role", "RoleBinding", "Job"]
    assert all("hook-succeeded" in one["metadata"]["annotations"]["helm.sh/hook-delete-policy"] for one in hooks)
    pod = manifests[("Job", "hangar-uninstall")]["spec"]["template"]
    assert pod["spec"]["containers"][0]["args"] == ["uninstall", "--namespace=hangar-system", "--deployment=hangar"]
    hosts = manifests[("Deployment", "hangar")]["spec"]["selector"]["matchLabels"]
    assert not hosts.items() <= pod.get("metadata", {}).get("labels", {}).items(), "it would wait for itself"

    kept = render({"uninstall": {"keepFinalizers": True}})[("Job", "hangar-uninstall")]
    assert kept["spec"]["template"]["spec"]["containers"][0]["args"][-1] == "--keep-finalizers"
    assert not [name for _, name in render({"uninstall": {"enabled": False}}) if "uninstall" in name]


def test_helm_test_asks_the_service_whether_a_host_is_ready():
    pod = render({"service": {"port": 8088}}, namespace="elsewhere")[("Pod", "hangar-test-ready")]

    assert pod["metadata"]["annotations"]["helm.sh/hook"] == "test"
    assert pod["spec"]["containers"][0]["args"] == ["ready", "http://hangar.elsewhere.svc:8088"]
    assert pod["spec"]["containers"][0]["image"].startswith(REPOSITORY) and pod["spec"]["securityContext"]["runAsNonRoot"]
    # Nor does it belong to the pods of the Service, of the budget and of the spreading.
    service = render()[("Service", "hangar")]["spec"]["selector"]
    assert not service.items() <= pod["metadata"]["labels"].items()


def aggregated(manifests):
    return {name: one for (kind, name), one in manifests.items()
            if kind == "ClusterRole" and any("aggregate-to" in label for label in one["metadata"]["labels"])}


def test_what_users_may_do_goes_into_the_clusters_own_roles():
    roles = aggregated(render())
    view, edit = roles["hangar-view"], roles["hangar-edit"]

    assert view["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-view"] == "true"
    assert edit["metadata"]["labels"]["rbac.authorization.k8s.io/aggregate-to-edit"] == "true"
    assert {verb for *_, verb in rules_of(view)} == {"get", "list", "watch"}
    assert {resource for _, _, resource, _ in rules_of(edit)} == {"flights", "operators", "statefulworkflows"}, "neither Airways nor any status"
    for values in ({"rbac": {"aggregate": False}}, {"rbac": {"create": False}}):
        assert not aggregated(render(values))
    only = aggregated(render({"features": {"flights": False, "operators": False, "workflows": False}}))
    assert {resource for role in only.values() for _, _, resource, _ in rules_of(role)} == {"airways", "airways/status"}


def test_a_feature_that_is_off_has_no_rights():
    only = {"airways": ("yoke.cd", "airways"), "flights": ("yoke.cd", "flights"), "operators": ("hangar.dev", "operators"),
            "workflows": ("workflows.example.com", "statefulworkflows"), "nodes": ("", "nodes")}
    for off, what in only.items():
        manifests = render({"features": {off: False}})
        assert [rule for rule in rules(render()) if rule[1:3] == what]
        assert not [rule for rule in rules(manifests) if rule[1:3] == what]
        features = argument(manifests, "features")
        assert off not in features and len(features) > len("--features=")


ACTS = ("impersonate", "impersonate:serviceaccount")


@pytest.mark.parametrize("values, kubernetes, expected", [
    ({}, "v1.36.0", set()),
    ({"tenants": ["team"]}, "v1.36.0", {("team", "authentication.k8s.io", "serviceaccounts", "impersonate:serviceaccount")}),
    ({"tenants": ["team"]}, "v1.35.4", {("team", "", "serviceaccounts", "impersonate")}),
    ({"tenants": ["team"], "rbac": {"impersonation": "Legacy"}}, "v1.36.0", {("team", "", "serviceaccounts", "impersonate")}),
    ({"tenants": ["team"], "rbac": {"impersonation": "Constrained"}}, "v1.35.4",
     {("team", "authentication.k8s.io", "serviceaccounts", "impersonate:serviceaccount")}),
    ({"tenants": [{"namespace": "team", "clusterReach": True}]}, "v1.36.0", {("team", "", "serviceaccounts", "impersonate")}),
    ({"tenants": "*"}, "v1.36.0", {(None, "", "serviceaccounts", "impersonate")}),
], ids=["nobody", "constrained", "older", "legacy", "chosen", "reach", "everybody"])
def test_nobody_but_service_accounts_of_tenants_can_be_impersonated(values, kubernetes, expected):
    assert {rule for rule in rules(render(values, kubernetes=kubernetes)) if rule[3] in ACTS} == expected


def test_outside_of_tenants_namespaces_there_is_no_right_to_secrets_copies_or_rbac():
    for values in ({}, {"tenants": ["team"]}, {"tenants": "*"}):
        given = {rule for rule in rules(render(values)) if rule[1] == "rbac.authorization.k8s.io"
                 or (rule[0] is None and values.get("tenants") != "*" and rule[2] in ("secrets", "controllerrevisions", "*"))}
        assert not given


@pytest.mark.parametrize("tenant, names", [
    ("team", ["default-name"]), ({"namespace": "team"}, ["default-name"]), ({"namespace": "team", "serviceAccounts": ["mirror"]}, ["mirror"])])
def test_tenants_that_name_no_service_accounts_have_those_of_the_release(tenant, names):
    role = render({"tenants": [tenant], "rbac": {"impersonatedServiceAccounts": ["default-name"]}})[("Role", "team/hangar-tenant")]

    (acting,) = [rule for rule in role["rules"] if rule["verbs"] == ["impersonate:serviceaccount"]]
    assert acting["resourceNames"] == names


def test_one_value_gives_the_defaults_of_one_team():
    def settings(values):
        return yaml.safe_load(render(values)[("ConfigMap", "hangar")]["data"]["hangar.yaml"])
    assert settings({}) == settings({"tenantPolicy": {"defaults": "strangers"}}) == {}
    team = {"tenantPolicy": {"defaults": "team"}}
    assert settings(team) == {"moduleAddressAllowList": ["private"], "namespaceGuestMemory": "1024Gi"}
    own = settings({**team, "settings": {"namespaceGuestMemory": "1Gi", "logLevel": "debug"}})
    assert own == {"moduleAddressAllowList": ["private"], "namespaceGuestMemory": "1Gi", "logLevel": "debug"}


def test_the_releases_own_policy_is_what_its_value_says():
    assert not [kind for kind, _ in render() if kind == "TenantPolicy"]
    spec = {"budgets": {"operators": 3}, "modules": {"urls": ["oci://registry.example.com/*/*"]}}
    assert render({"tenantPolicy": {"spec": spec}})[("TenantPolicy", "hangar-default")]["spec"] == spec


def test_compiled_code_on_a_claim_is_signed():
    assert "code-cache" not in str(render())
    for values, secret in (({}, "hangar-code-cache"), ({"keySecret": "ours"}, "ours")):
        manifests = render({"cache": {"existingClaim": "modules", **values}})
        assert argument(manifests, "code-cache-key-file") == "--code-cache-key-file=/etc/hangar-code-cache/key"
        (volume,) = [one for one in pod_of(manifests)["spec"]["volumes"] if one["name"] == "code-cache-key"]
        assert volume["secret"]["secretName"] == secret
        assert (("Secret", secret) in manifests) is (secret != "ours")
    made = render({"cache": {"existingClaim": "modules"}})[("Secret", "hangar-code-cache")]
    assert len(base64.b64decode(made["data"]["key"])) == 32


def test_a_changed_setting_restarts_the_pods():
    before, after = (pod_of(render({"settings": {"logLevel": level}}))["metadata"]["annotations"] for level in ("info", "debug"))
    assert before["checksum/config"] != after["checksum/config"]


# What the host asks for --------------------------------------------------------------------------

NAMESPACE = "hangar-system"
# Of the operator, of the workflow, of the Airway's instances, and of the Flight.
TENANTS = ("team", "flows", "default", "fleet")
RIGHTS = {"rbac": {"airwayGroups": ["e2e.hangar.dev"],
                   "flightResources": [{"apiGroups": [""], "resources": ["configmaps", "services"]}],
                   "operatorResources": [{"apiGroups": [""], "resources": ["configmaps"]}],
                   "workflowResources": [{"apiGroups": [""], "resources": ["persistentvolumeclaims"]},
                                         {"apiGroups": ["apps"], "resources": ["deployments"]}]},
          # By labels, so that the host reads those of namespaces; it selects no namespace.
          "tenantPolicy": {"spec": {"namespaceSelector": {"matchLabels": {"nobody": "has-it"}}, "serviceAccounts": []}},
          "tenants": list(TENANTS), "replicaCount": 0, "webhooks": {"enabled": True}, "records": {"enabled": True},
          # No node has it: the test runs what the chart's Job is for.
          "nodeSelector": {"nobody": "has-it"}}
# The chart's result for its node values.
NODES = ("--installer-image=registry.example.com/installer:v1", "--node-runtime-classes=wasmtime", "--node-probe-image=probe",
         "--node-ready-delay=100ms", "--node-retry-delay=100ms")


@pytest.fixture(scope="module")
def installed():
    """A control plane with an audit log and the release `hangar` on it, installed by helm."""
    made = Cluster("--with-kcm", "--with-scheduler", "--with-kwok=1", "--audit", "--apiserver-arg=--enable-admission-plugins=OwnerReferencesPermissionEnforcement")
    for name in TENANTS:
        made.kubectl("apply", "-f", "-", stdin=json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}))
        eventually(lambda name=name: made.get("v1", "ServiceAccount", "default", name), "the namespace has its service account")
    helm("install", "hangar", str(CHART), "--namespace", NAMESPACE, "--create-namespace", "--values", "-",
         stdin=yaml.safe_dump(with_repository(RIGHTS)), env={"KUBECONFIG": made.kubeconfig})
    yield made
    made.close()


@pytest.fixture
def account_host(installed, tmp_path):
    """A host with the identity that the chart gives to its pods."""
    path = kubeconfig_of(installed, NAMESPACE, "hangar", tmp_path / "kubeconfig")
    manifests, port, records = render(RIGHTS), free_port(), free_port()
    host = Host(path, tmp_path / "host", "--leader-elect", f"--namespace={NAMESPACE}", argument(manifests, "features"),
                argument(manifests, "webhook-secret"), argument(manifests, "webhook-owner"), "--webhook-drain=0s",
                f"--webhook-bind-address=127.0.0.1:{port}", f"--webhook-url=https://127.0.0.1:{port}", *NODES,
                argument(manifests, "webhook-leader-service"), "--webhook-leader-address=192.0.2.7",
                argument(manifests, "records-secret"), f"--records-bind-address=127.0.0.1:{records}", f"--records-url=https://127.0.0.1:{records}")
    yield host
    host.stop()


def asked(cluster):
    """The host's own requests, as {(namespace, group, resource, verb): {status, ...}}; requests under other identities count
    as the verbs that allow them."""
    seen = collections.defaultdict(set)
    for line in (pathlib.Path(cluster.env["HANGAR_CP_LOG_DIR"]) / "audit.log").read_text().splitlines():
        event = json.loads(line)
        if event["user"]["username"] != f"system:serviceaccount:{NAMESPACE}:hangar":
            continue
        status = event.get("responseStatus", {}).get("code", 0)
        if "impersonatedUser" in event:
            _, _, namespace, _ = event["impersonatedUser"]["username"].split(":")
            constraint = event["authenticationMetadata"]["impersonationConstraint"]
            seen[(namespace, "authentication.k8s.io", "serviceaccounts", constraint)].add(0)
            where = event.get("objectRef", {})
            if "resource" in where:
                seen[(where.get("namespace", ""), "*", "*", f"impersonate-on:serviceaccount:{event['verb']}")].add(0)
            else:
                seen[("", "", event["requestURI"].split("?")[0], f"impersonate-on:serviceaccount:{event['verb']}")].add(0)
            continue
        where = event.get("objectRef", {})
        if "resource" not in where:
            seen[("", "", event["requestURI"].split("?")[0], event["verb"])].add(status)
            continue
        resource = "/".join(part for part in (where["resource"], where.get("subresource")) if part)
        key = (where.get("namespace", ""), where.get("apiGroup", ""), resource)
        seen[(*key, event["verb"])].add(status)
        if event["verb"] == "patch" and status == 201:  # An apply that creates needs the right to.
            seen[(*key, "create")].add(status)
    return seen


def airway_flow(cluster):
    """Makes a kind, an instance with a ConfigMap and a Service, changes it, and deletes everything again."""
    schema = {**airways.OPEN_SCHEMA, "properties": {"status": {**airways.OPEN_SCHEMA, "properties": {"phase": {"type": "string"}}}}}
    manifest = airways.airway("aircrafts", "Aircraft", flight("behave"), schema=schema, mode="dynamic")
    when_compiled(lambda: cluster.apply(manifest))
    cluster.learn("e2e.hangar.dev/v1", "Aircraft", "aircrafts")
    eventually(lambda: is_ready(cluster.get("yoke.cd/v1alpha1", "Airway", "aircrafts.e2e.hangar.dev")), "the Airway is ready", COMPILED)
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "one"},
               "spec": {"selector": {"app": "one"}, "ports": [{"port": 80}]}}
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}, "data": {"a": "b"}}
    cluster.create(instance("Aircraft", "one", {"behaviour": "raw", "stdout": json.dumps([service, settings])}))
    eventually(lambda: is_ready(cluster.get("e2e.hangar.dev/v1", "Aircraft", "one")), "the instance is ready", 60)
    # One resource fewer, so the host prunes one.
    cluster.patch("e2e.hangar.dev/v1", "Aircraft", "one", {"spec": {"stdout": json.dumps([settings])}})
    eventually(lambda: cluster.get("v1", "Service", "one") is None, "the Service is pruned", 60)
    cluster.delete("e2e.hangar.dev/v1", "Aircraft", "one")
    eventually(lambda: cluster.get("e2e.hangar.dev/v1", "Aircraft", "one") is None, "the instance is gone", 60)
    # A status that the API server does not accept: the host reports the failure in the status and in Events.
    cluster.create(instance("Aircraft", "two", {"behaviour": "status", "status": {"phase": 5}}))
    eventually(lambda: condition(cluster.get("e2e.hangar.dev/v1", "Aircraft", "two")).get("reason") == "Error", "the instance fails", 60)
    # Another version becomes the stored one: the host rewrites instances in it, and tells the API server.
    (version,) = manifest["spec"]["template"]["versions"]
    manifest["spec"]["template"]["versions"] = [{**version, "storage": False}, {**version, "name": "v2"}]
    cluster.apply(manifest)
    definition = ("apiextensions.k8s.io/v1", "CustomResourceDefinition", "aircrafts.e2e.hangar.dev")
    eventually(lambda: cluster.get(*definition)["status"]["storedVersions"] == ["v2"], "no instance is stored in v1", 60)
    cluster.delete("yoke.cd/v1alpha1", "Airway", "aircrafts.e2e.hangar.dev")
    eventually(lambda: cluster.get("yoke.cd/v1alpha1", "Airway", "aircrafts.e2e.hangar.dev") is None, "the Airway is gone", 90)


def pinned_airway_flow(cluster, host, modules):
    """The host pins an Airway to a URL's module, keeps a copy, and removes it; a host without the module looks for the copy."""
    name = "gliders.e2e.hangar.dev"
    airway = ("yoke.cd/v1alpha1", "Airway", name)
    modules.files["/flight.wasm"] = pathlib.Path(flight("greeting_cpp")).read_bytes()
    when_compiled(lambda: cluster.apply(airways.airway("gliders", "Glider", modules.url("/flight.wasm"))))
    eventually(lambda: is_ready(cluster.get(*airway)), "the Airway is ready", COMPILED)
    copies = lambda: json.loads(cluster.kubectl("get", "controllerrevisions", "--namespace", NAMESPACE, "-o", "json"))["items"]
    assert len(copies()) == 1
    cluster.patch(*airway, {"status": {"flight": {"sha256": "0" * 64}}}, None, "status")
    assert host.stop() == 0
    host.start()
    eventually(lambda: condition(cluster.get(*airway)).get("reason") == "ModuleUnavailable", "it is nowhere", COMPILED)
    eventually(lambda: not copies(), "nobody needs the copy", 60)
    cluster.delete(*airway)
    eventually(lambda: cluster.get(*airway) is None, "the Airway is gone", 90)


def flight_flow(cluster):
    """A Flight makes a ConfigMap and a Service as its own service account, changes them, and is deleted; so is
    a ClusterFlight."""
    release = lambda *resources: {"spec": {"inputObject": {"spec": {"behaviour": "raw", "stdout": json.dumps(resources)}}}}
    flights.allow(cluster, "fleet", resources=("configmaps", "services"))
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "one"}, "spec": {"selector": {"app": "one"}, "ports": [{"port": 80}]}}
    settings = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}, "data": {"a": "b"}}
    one = ("yoke.cd/v1alpha1", "Flight", "one", "fleet")
    when_compiled(lambda: cluster.create(flights.manifest("one", "fleet", **release(service, settings)["spec"])))
    eventually(lambda: is_ready(cluster.get(*one)), "the Flight is ready", COMPILED)
    cluster.patch(*one[:3], release(settings), "fleet")
    eventually(lambda: cluster.get("v1", "Service", "one", "fleet") is None, "the Service is pruned", 60)
    cluster.delete(*one)
    eventually(lambda: cluster.get(*one) is None, "the Flight is gone", 60)
    settings["metadata"]["namespace"] = "fleet"
    all_of_it = ("yoke.cd/v1alpha1", "ClusterFlight", "all", None)
    when_compiled(lambda: cluster.create(flights.manifest("all", None, kind="ClusterFlight", account="fleet/default", **release(settings)["spec"])))
    eventually(lambda: is_ready(cluster.get(*all_of_it)), "the ClusterFlight is ready", COMPILED)
    cluster.delete(*all_of_it)
    eventually(lambda: cluster.get(*all_of_it) is None, "the ClusterFlight is gone", 60)


def operator_flow(cluster, host):
    """Starts an operator with files and environment, which watches and writes as its own service account."""
    operators.allow(cluster, "team", *operators.EVERYTHING, "deletecollection")
    operators.create_config_map(cluster, "settings", "team", level="debug")
    cluster.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "token", "namespace": "team"}, "stringData": {"key": "x"}})
    cluster.create(operators.manifest(
        "watcher", "team", "env=TOKEN", "file=/etc/app/level", "watch=team",
        env=[{"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "token", "key": "key"}}}],
        files=[{"path": "/etc/app", "configMap": {"name": "settings"}}]))
    eventually(lambda: any(line.startswith("listed") for line in operators.lines(host, "watcher", "team")), "the operator listed", COMPILED)
    operators.create_config_map(cluster, "news", "team")
    eventually(lambda: "changed news" in operators.lines(host, "watcher", "team"), "the operator heard of a change")
    cluster.delete("hangar.dev/v1alpha1", "Operator", "watcher", "team")
    # All verbs for which the host acts as a service account; a watch that a cache cannot answer.
    own = "/api/v1/namespaces/team/configmaps"
    one = json.dumps({"metadata": {"name": "one"}})
    cluster.create(operators.manifest(
        "writer", "team", f"request=POST,{own},{one}", f"get={own}/one", f"get={own}", f"request=PUT,{own}/one,{one}",
        f"request=PATCH,{own}/one,{{}}", f"stream={own}?watch=true&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&timeoutSeconds=1",
        f"request=DELETE,{own}/one", f"request=DELETE,{own}?labelSelector=none", "get=/apis", "print=done", "wait"))
    printed = eventually(lambda: (lambda seen: seen if "done" in seen else None)(operators.lines(host, "writer", "team")), "all was tried", 60)
    assert not [line for line in printed if ": 4" in line]
    cluster.delete("hangar.dev/v1alpha1", "Operator", "writer", "team")


def workflow_flow(cluster):
    """A workflow makes a claim and a Deployment as its own service account, and receives a signal."""
    workflows.allow(cluster, "flows")
    workflows.module(cluster, "flows", "provisioner", workflows.bundle(workflows.PROVISIONER))
    cluster.create(workflows.workflow("orders", "flows", "provisioner", input={"team": "orders"}))
    workflows.reaches(cluster, "flows", "orders", "ready", 120)
    workflows.signal(cluster, "flows", "orders", "one", {"type": "NOTHING"})
    eventually(lambda: not cluster.get(*workflows.WORKFLOW, "orders", "flows")["metadata"].get("annotations"), "the signal is taken", 60)
    # The host looks for an unknown module among the copies in the cluster.
    workflows.module(cluster, "flows", "rollout", workflows.bundle(workflows.ROLLOUT))
    cluster.create(workflows.workflow("lost", "flows", "rollout", input={"soakMilliseconds": 600000}))
    began = eventually(lambda: workflows.status(cluster, "flows", "lost").get("revision"), "it began", 60)["sha256"]
    cluster.patch(*workflows.WORKFLOW, "lost", {"status": {"revision": {"sha256": "0" * 64}}}, "flows", "status")
    workflows.signal(cluster, "flows", "lost", "one", "ABORT")
    workflows.stalls(cluster, "flows", "lost", "0" * 64)
    assert len(workflows.copies(cluster, "flows")) == 2
    for name in ("orders", "lost"):
        cluster.delete(*workflows.WORKFLOW, name, "flows")
    eventually(lambda: workflows.copies(cluster, "flows") == [f"machine-{began}"], "nobody needs the provisioner's copy", 60)


def node_flow(cluster):
    """Provisions a node, with other runtime classes than before, and uninstalls. The pods of its Jobs are simulated."""
    cluster.create({"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "handler": "old", "metadata": {
        "name": "old", "labels": {"app.kubernetes.io/managed-by": "hangar-nodes"}}})
    # A foreign Job has the name that ours would have, until it is deleted.
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "other", "image": "other"}]}}
    cluster.create({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "node-0-provision-kwasm", "namespace": NAMESPACE},
                    "spec": {"suspend": True, "template": template}})
    cluster.patch("v1", "Node", "node-0", {"metadata": {"annotations": {"kwasm.sh/kwasm-node": "true"}}})
    eventually(lambda: "not ours" in cluster.get("v1", "Node", "node-0")["metadata"]["annotations"].get("nodes.hangar.dev/last-error", ""),
               "the Job of that name is told", 60)
    cluster.delete("batch/v1", "Job", "node-0-provision-kwasm", NAMESPACE)
    eventually(lambda: "kwasm.sh/kwasm-provisioned" in cluster.get("v1", "Node", "node-0")["metadata"]["labels"], "the node is provisioned", 90)
    eventually(lambda: condition(cluster.get("v1", "Node", "node-0"), "WasmProvisioned").get("status") == "True", "it says so")
    cluster.patch("v1", "Node", "node-0", {"metadata": {"annotations": {"kwasm.sh/kwasm-node": None}}})
    eventually(lambda: "kwasm.sh/kwasm-provisioned" not in cluster.get("v1", "Node", "node-0")["metadata"]["labels"], "the node is not", 90)
    eventually(lambda: not cluster.list("batch/v1", "Job", NAMESPACE), "its Jobs are gone", 90)


# Checked when an owner reference is admitted, which no audit log shows; without any of them the flow fails.
UNSEEN = {(None, "yoke.cd", "airways/finalizers", "update"), (None, "e2e.hangar.dev", "*/finalizers", "update"),
          (None, "e2e.hangar.dev", "*", "delete"),
          # Checked when a policy is created whose parameters are these.
          *((None, "yoke.cd", owners, "get") for owners in ("airways", "flights", "clusterflights")),
          # An apply of an object that did not exist: the request is a patch.
          (None, "hangar.dev", "tenantusages", "create"), (NAMESPACE, "discovery.k8s.io", "endpointslices", "create"),
          # Only where the leader's address becomes one of another family; and an owner reference is set.
          (NAMESPACE, "discovery.k8s.io", "endpointslices", "delete")}


# The host looks for copies of modules in the whole cluster first, and then in namespaces with Flights or workflows.
# An operator's ServiceAccount reads webhook configurations; constrained impersonation does not reach beyond its namespace.
TRIED = {("", "apps", "controllerrevisions", "list"), ("", "admissionregistration.k8s.io", "mutatingwebhookconfigurations", "get")}


def lists_before_watching(rule, all_rules):
    """From an API server that cannot send the list at the start of a watch the host lists separately; this one can."""
    return rule[3] == "list" and (*rule[:3], "watch") in all_rules


def webhook_flow(cluster):
    """The host registers configurations and restores deleted ones; they belong to the chart's ClusterRole."""
    def configuration(name):
        return cluster.get("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", name, None)
    made = eventually(lambda: configuration("hangar-airways"), "the configuration is there", 60)
    assert [owner["name"] for owner in made["metadata"]["ownerReferences"]] == ["hangar-webhooks"]
    for kind, owner in itertools.product(("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"), ("airway", "flight", "clusterflight")):
        policy = f"hangar-{owner}-children"
        eventually(lambda kind=kind, policy=policy: cluster.get("admissionregistration.k8s.io/v1", kind, policy, None), f"the {kind} {policy} is there", 60)
    cluster.delete("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", "hangar-airways", None)
    eventually(lambda: configuration("hangar-airways"), "the configuration is there again", 60)
    eventually(lambda: configuration("hangar-flights"), "Flights have one, too", 60)
    when_compiled(lambda: cluster.apply(airways.airway("balloons", "Balloon", flight("behave"))))
    name = "balloons.e2e.hangar.dev"
    eventually(lambda: configuration(name), "the kind has a configuration", 60)
    cluster.delete("yoke.cd/v1alpha1", "Airway", name)
    eventually(lambda: configuration(name) is None, "the configuration is gone", 60)


def orphan_flow(cluster, host):
    """The host removes a policy that one before it has left."""
    host.kill()
    make_policy(cluster, "orphan", NAMESPACE)
    host.start()
    for kind in (POLICY, BINDING):
        eventually(lambda kind=kind: "orphan" not in kept_by(cluster, NAMESPACE, kind), f"the orphaned {kind[1]} is gone", 60)


def operator_webhook_flow(cluster):
    """The host watches a configuration that an operator answers, and is the endpoint of the Service for that."""
    cluster.learn("discovery.k8s.io/v1", "EndpointSlice", "endpointslices")
    (one,) = eventually(lambda: cluster.list("discovery.k8s.io/v1", "EndpointSlice", NAMESPACE, "kubernetes.io/service-name=hangar-operators"),
                          "the leader has written its endpoint", 60)
    assert (one["metadata"]["name"], one["endpoints"][0]["addresses"]) == ("hangar-operators-ipv4", ["192.0.2.7"])
    assert [owner["name"] for owner in one["metadata"]["ownerReferences"]] == ["hangar-webhooks"]
    cluster.create(operators.manifest("hooked", "team", "wait", webhooks=[{"kind": "MutatingWebhookConfiguration", "name": "nobodys"}]))
    told = eventually(lambda: condition(cluster.get(*operators.OPERATOR, "hooked", "team"), "WebhooksReady"), "its condition is there", COMPILED)
    assert told["status"] == "False" and "MutatingWebhookConfiguration nobodys, as ServiceAccount default" in told["message"]
    cluster.delete(*operators.OPERATOR, "hooked", "team")


def records_flow(cluster, directory):
    """A user with a token sees the turns of an operator, or learns which right is missing."""
    def timeline(kubeconfig):
        return subprocess.run([str(BINARY), "timeline", "watched", "-n", "team", f"--kubeconfig={kubeconfig}"],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
    cluster.create(operators.manifest("watched", "team", "print=up", "wait"))
    user = users.with_token(cluster, directory, "onlooker", "team")
    users.let(cluster, "team:onlooker", NAMESPACE, ["get"], ["configmaps"], names=["hangar-records"])
    eventually(lambda: "may not get operators.hangar.dev" in timeline(user).stderr, "the host says what is missing", 60)
    users.let(cluster, "team:onlooker", "team", ["get"], ["operators"])
    eventually(lambda: "Module sha256:" in timeline(user).stdout, "the turns are shown", 60)
    cluster.delete(*operators.OPERATOR, "watched", "team")


def usage_flow(cluster):
    """A namespace sees its usage, for as long as it uses anything."""
    def usage():
        return cluster.get("hangar.dev/v1alpha1", "TenantUsage", "hangar", "team")
    cluster.create(operators.manifest("user", "team", "wait"))
    assert eventually(usage, "the namespace sees what it uses", 60)["status"]["guestMemory"]["limit"] > 0
    cluster.delete(*operators.OPERATOR, "user", "team")
    eventually(lambda: not usage(), "it uses nothing any more", 60)


def test_members_of_a_namespace_may_look_or_edit_as_the_clusters_roles_say(installed):
    prefix = "/apis/rbac.authorization.k8s.io/v1/namespaces/team/rolebindings"
    for role in ("view", "edit"):
        installed.request("POST", prefix, {"metadata": {"name": role}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
                                           "subjects": [{"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": f"a-{role}er"}]})

    def may(user, verb, resource, namespace="team"):
        group, _, name = resource.rpartition("/")
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": {
            "user": user, "resourceAttributes": {"namespace": namespace, "verb": verb, "group": group, "resource": name}}}
        return installed.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", review)["status"]["allowed"]

    for resource in ("yoke.cd/flights", "hangar.dev/operators", "workflows.example.com/statefulworkflows"):
        eventually(lambda: may("a-viewer", "list", resource) and may("a-editer", "create", resource), "the roles were aggregated", 60)
        assert not may("a-viewer", "create", resource) and not may("a-editer", "create", resource, "flows")
    assert may("a-viewer", "list", "hangar.dev/tenantusages") and not may("a-viewer", "list", "hangar.dev/tenantusages", "flows")
    assert not may("a-editer", "patch", "hangar.dev/tenantusages") and not may("a-editer", "create", "hangar.dev/tenantpolicies", "")
    assert not may("a-editer", "create", "yoke.cd/airways", "")


def test_the_host_may_do_all_that_it_asks_for_and_asks_for_all_that_it_may(installed, account_host, tmp_path):
    orphan_flow(installed, account_host)
    webhook_flow(installed)
    airway_flow(installed)
    # Before the host is restarted: its watches for Flights serve others too.
    flight_flow(installed)
    modules = Modules()
    pinned_airway_flow(installed, account_host, modules)
    modules.close()
    operator_flow(installed, account_host)
    operator_webhook_flow(installed)
    workflow_flow(installed)
    node_flow(installed)
    usage_flow(installed)
    records_flow(installed, tmp_path)
    assert account_host.stop() == 0
    seen = asked(installed)

    refused = {key for key, statuses in seen.items() if 401 in statuses or 403 in statuses}
    assert refused <= TRIED, f"the API server refused {sorted(refused - TRIED)}"

    def was_used(rule):
        scope, group, resource, verb = rule
        # Tenants have the same rules; each of these identities does something else with them.
        scopes = TENANTS if scope in TENANTS else (scope,)
        return any(group == asked_group and verb == asked_verb and resource in ("*", asked_resource)
                   and (scope is None or namespace in scopes)
                   for namespace, asked_group, asked_resource, asked_verb in seen)
    given = rules(render(RIGHTS))
    urls = {url for url, _ in urls_of(render(RIGHTS))}
    asked_urls = {resource for _, _, resource, verb in seen if verb == "impersonate-on:serviceaccount:get" and resource.startswith("/")}
    assert asked_urls <= urls and {"/version", "/apis"} <= asked_urls
    unused = {rule for rule in given - UNSEEN if not was_used(rule) and not lists_before_watching(rule, given)}
    assert not unused, f"never asked for: {sorted(unused, key=str)}"
    assert {(namespace, verb) for namespace, *_, verb in seen if verb.startswith("impersonate") and "-on:" not in verb} == {
        (name, "impersonate:serviceaccount") for name in ("team", "flows", "fleet")}


def test_requests_for_the_lease_have_the_seats_of_leaders(installed, account_host):
    counted = 'apiserver_flowcontrol_dispatched_requests_total{flow_schema="hangar-leader-election",priority_level="leader-election"}'

    def dispatched():
        lines = installed.request("GET", "/metrics").splitlines()
        return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(counted))
    before = dispatched()
    eventually(lambda: dispatched() > before, "the Lease is renewed by requests of its own flow", 60)


def run_uninstall_job(cluster, kubeconfig):
    """What a kubelet does with the pod of the chart's Job: runs its command, with the rights of its ServiceAccount."""
    (pod,) = eventually(lambda: cluster.list("v1", "Pod", NAMESPACE, selector="batch.kubernetes.io/job-name=hangar-uninstall"), "the Job has a pod", 60)
    assert pod["spec"]["serviceAccountName"] == "hangar"
    (container,) = pod["spec"]["containers"]
    done = subprocess.run([str(BINARY), *container["args"], f"--kubeconfig={kubeconfig}"], capture_output=True, text=True)
    cluster.patch("v1", "Pod", pod["metadata"]["name"], {"status": {"phase": "Failed" if done.returncode else "Succeeded"}}, NAMESPACE, "status")
    return done


def test_uninstalling_leaves_the_kinds_and_what_people_made(installed, account_host, tmp_path):
    """Also with an instance whose resources are protected and which is converted: nothing waits for a host."""
    manifest = airways.airway("blimps", "Blimp", flight("behave"), mode="static")
    manifest["spec"]["wasmUrls"]["converter"] = flight("converter")
    (version,) = manifest["spec"]["template"]["versions"]
    manifest["spec"]["template"]["versions"] = [version, {**version, "name": "v2", "storage": False}]
    # The configuration may still have the address of another test's host.
    eventually(lambda: try_to(installed.apply, manifest), "the Airway is accepted", COMPILED)
    for served in ("v1", "v2"):
        installed.learn(f"e2e.hangar.dev/{served}", "Blimp", "blimps")
    airway, blimp = ("yoke.cd/v1alpha1", "Airway", "blimps.e2e.hangar.dev"), ("e2e.hangar.dev/v1", "Blimp", "one", "fleet")
    converted = ("e2e.hangar.dev/v2", *blimp[1:])
    eventually(lambda: is_ready(installed.get(*airway)), "the Airway is ready", COMPILED)
    when_compiled(lambda: installed.create(instance("Blimp", "one", {"behaviour": "basic", "data": {"a": "b"}}, "fleet")))
    eventually(lambda: is_ready(installed.get(*blimp)), "the instance is ready", 60)
    eventually(lambda: try_to(installed.get, *converted), "it is converted", 60)

    def change(api_version, kind, name, namespace, query="", **body):
        return try_to(installed.request, "PATCH", installed.path(api_version, kind, namespace, name) + query, body, "application/merge-patch+json")
    settings = ("v1", "ConfigMap", "one", "fleet")
    eventually(lambda: not change(*settings, query="?dryRun=All", data={"a": "changed"}), "its ConfigMap is protected", 60)
    assert account_host.stop() == 0
    assert not change(*blimp, spec={"data": {"a": "c"}}), "a host has to review it"
    assert not try_to(installed.get, *converted), "a host has to convert it"
    kubeconfig = kubeconfig_of(installed, NAMESPACE, "hangar", tmp_path / "job")
    with ThreadPoolExecutor(1) as pool:
        job = pool.submit(run_uninstall_job, installed, kubeconfig)
        helm("uninstall", "hangar", "--namespace", NAMESPACE, "--wait", env={"KUBECONFIG": installed.kubeconfig})
    assert job.result().returncode == 0, job.result().stderr
    for line in ("blimps.e2e.hangar.dev no longer converted", "blimps.e2e.hangar.dev/fleet/one let go", "airways.yoke.cd/blimps.e2e.hangar.dev let go",
                 "validatingwebhookconfigurations.admissionregistration.k8s.io/hangar-airways deleted"):
        assert line in job.result().stdout

    assert installed.get("v1", "ServiceAccount", "hangar", NAMESPACE) is None
    for kind in ("ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"):
        eventually(lambda kind=kind: not installed.list("admissionregistration.k8s.io/v1", kind, selector="hangar.dev/kept-by"), f"no {kind} is left", 60)
    for kind in ("airways.yoke.cd", "operators.hangar.dev", "blimps.e2e.hangar.dev"):
        assert installed.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", kind)
    installed.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "unrelated", "namespace": "fleet"}})
    assert change("v1", "ConfigMap", "unrelated", "fleet", data={"a": "b"})
    eventually(lambda: change(*settings, data={"a": "changed"}), "what was protected can be changed", 60)
    eventually(lambda: change(*blimp, spec={"data": {"a": "c"}}), "no host is asked to review the instance", 60)
    eventually(lambda: try_to(installed.get, *converted), "no host is asked to convert it", 60)
    for name in ("fleet", NAMESPACE):
        installed.delete("v1", "Namespace", name)
    for name in ("fleet", NAMESPACE):
        eventually(lambda name=name: installed.get("v1", "Namespace", name) is None, f"namespace {name} is gone", 90)
    installed.delete(*airway)
    eventually(lambda: installed.get("apiextensions.k8s.io/v1", "CustomResourceDefinition", "blimps.e2e.hangar.dev") is None, "its kind goes with it", 60)
