"""The chart of deploy/chart, as helm renders and installs it."""
import os
import pathlib
import subprocess

import yaml

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
CHART = ROOT / "deploy/chart"
REPOSITORY = "registry.example.com/hangar"


class Refused(Exception):
    """What helm said against it."""


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


def render(values=None, release="hangar", namespace="hangar-system", image=True):
    """The manifests by (kind, name). Without `image`, values are given as they are."""
    text = helm("template", release, str(CHART), "--namespace", namespace, "--values", "-",
                stdin=yaml.safe_dump(with_repository(values or {}) if image else values or {}))
    return {(one["kind"], one["metadata"]["name"]): one for one in yaml.safe_load_all(text) if one}


def rules(manifests):
    """All RBAC rules as (scope, group, resource, verb), scope being the namespace of a Role or None."""
    return {(manifest["metadata"].get("namespace"), group, resource, verb)
            for (kind, _), manifest in manifests.items() if kind in ("Role", "ClusterRole")
            for rule in manifest["rules"]
            for group in rule["apiGroups"] for resource in rule["resources"] for verb in rule["verbs"]}
