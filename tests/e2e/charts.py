"""The chart of deploy/chart, as helm renders and installs it."""
import json
import os
import pathlib
import subprocess

import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CHART = ROOT / "deploy/chart"
REPOSITORY = "registry.example.com/hangar"


class Refused(Exception):
    """helm refused it; the message is helm's."""


def helm(*arguments, stdin="", env=None):
    tools = os.environ.get("HANGAR_TOOLS_DIR") or subprocess.run(
        [str(ROOT / "dev/build-tools.sh"), "--print-dir"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    done = subprocess.run([f"{tools}/helm", *arguments], input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env={**os.environ, **(env or {})}, timeout=300)
    if done.returncode != 0:
        raise Refused(done.stdout + done.stderr)
    return done.stdout


def with_repository(values):
    return {**values, "image": {"repository": REPOSITORY, **values.get("image", {})}}


def render(values=None, release="hangar", namespace="hangar-system", image=True, kubernetes="v1.36.0"):
    """The manifests by (kind, name), or (kind, namespace/name) outside of the release's namespace. Without `image`, values
    are passed as they are."""
    text = helm("template", release, str(CHART), "--namespace", namespace, "--values", "-", "--kube-version", kubernetes,
                stdin=yaml.safe_dump(with_repository(values or {}) if image else values or {}))

    def name_of(metadata):
        where = metadata.get("namespace", namespace)
        return metadata["name"] if where == namespace else f"{where}/{metadata['name']}"
    return {(one["kind"], name_of(one["metadata"])): one for one in yaml.safe_load_all(text) if one}


def kubeconfig_of(cluster, namespace, account, path):
    """Writes a kubeconfig for a service account: with the account's rights, and no others."""
    token = cluster.kubectl("create", "token", account, "--namespace", namespace, "--duration=48h").strip()
    config = yaml.safe_load(pathlib.Path(cluster.kubeconfig).read_text())
    config["users"] = [{"name": config["users"][0]["name"], "user": {"token": token}}]
    path.write_text(yaml.safe_dump(config))
    return path


def rules(manifests):
    """All RBAC rules of the host on resources as (scope, group, resource, verb), scope being the namespace of a Role or None."""
    def is_the_hosts(manifest):
        # That one is for users, and the other for the Job that runs once the host has ended.
        if manifest["metadata"]["name"] in ("hangar-records-reader", "hangar-uninstall"):
            return False
        return manifest["kind"] in ("Role", "ClusterRole") and not any("aggregate-to" in label for label in manifest["metadata"]["labels"])
    return {one for manifest in manifests.values() if is_the_hosts(manifest) for one in rules_of(manifest)}


def rules_of(role):
    return {(role["metadata"].get("namespace"), group, resource, verb)
            for rule in role["rules"]
            for group in rule.get("apiGroups", []) for resource in rule.get("resources", []) for verb in rule["verbs"]}


def urls_of(manifests):
    """All RBAC rules on URLs as (URL, verb)."""
    return {(url, verb) for manifest in manifests.values() if manifest["kind"] == "ClusterRole"
            for rule in manifest["rules"] for url in rule.get("nonResourceURLs", []) for verb in rule["verbs"]}


def dashboards():
    """The Grafana dashboards by the names of their files."""
    manifests = render({"dashboards": {"enabled": True}})
    return {name: json.loads(text) for (kind, _), one in manifests.items() if kind == "ConfigMap" and "grafana_dashboard" in one["metadata"]["labels"]
            for name, text in one["data"].items()}
