#!/usr/bin/env python3
"""Makes the manifests of this directory from the chart and values.yaml: what to apply where there is no Helm.

    generate.py           writes hangar.yaml, k0s.yaml and outside.yaml
    generate.py --check   writes nothing; exit status 1 and the names of files that are out of date

hangar.yaml has everything; k0s.yaml leaves out the CustomResourceDefinitions, for a stack of their own; outside.yaml
has the rights, and a token for a host that runs outside of the cluster.
"""
import argparse
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
NAMESPACE = "hangar-system"
# Of these labels only Helm has a use.
HELMS = re.compile(r"^ *(helm\.sh/chart|app\.kubernetes\.io/managed-by): .*\n", re.MULTILINE)
# What is in a pod or belongs to pods; a host outside of the cluster has no use for it.
PODS = {"ConfigMap", "Deployment", "Service"}

HEADER = """\
# {title}
# Made by deploy/edge/generate.py from the chart and deploy/edge/values.yaml: change those, or what is in the cluster.
"""

# The pods of the host meet the strictest of Kubernetes' standards.
NAMESPACE_MANIFEST = f"""\
apiVersion: v1
kind: Namespace
metadata:
  name: {NAMESPACE}
  labels:
    pod-security.kubernetes.io/enforce: restricted
"""

TOKEN_MANIFEST = f"""\
# The API server puts a token into it that does not expire; deleting the Secret takes the token back.
apiVersion: v1
kind: Secret
metadata:
  name: hangar-outside
  namespace: {NAMESPACE}
  annotations:
    kubernetes.io/service-account.name: hangar
type: kubernetes.io/service-account-token
"""


def rendered():
    """The chart's manifests, as text."""
    tools = os.environ.get("HANGAR_TOOLS_DIR") or subprocess.run(
        [str(ROOT / "dev/build-tools.sh"), "--print-dir"], check=True, stdout=subprocess.PIPE, text=True).stdout.strip()
    # Kubernetes versions without constrained impersonation take its rule, and never use it.
    text = subprocess.run(
        [f"{tools}/helm", "template", "hangar", str(ROOT / "deploy/chart"), "--namespace", NAMESPACE, "--values", str(HERE / "values.yaml"),
         "--include-crds", "--skip-tests", "--kube-version", "v1.36.0", "--api-versions", "flowcontrol.apiserver.k8s.io/v1"],
        check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True).stdout
    return [one.lstrip("\n") for one in re.split(r"^---\n", HELMS.sub("", text), flags=re.MULTILINE) if kind_of(one)]


def kind_of(manifest):
    found = re.search(r"^kind: (\w+)$", manifest, re.MULTILINE)
    return found and found.group(1)


def manifests():
    """The text of each file, by its name."""
    everything = rendered()
    without_definitions = [one for one in everything if kind_of(one) != "CustomResourceDefinition"]
    rights = [one for one in without_definitions if kind_of(one) not in PODS]

    def file(title, parts):
        return HEADER.format(title=title) + "".join(f"---\n{one.rstrip()}\n" for one in parts)
    return {
        "hangar.yaml": file("hangar for a small cluster, in one file: kubectl apply --server-side -f hangar.yaml", [NAMESPACE_MANIFEST, *everything]),
        "k0s.yaml": file("hangar for k0s, without the CustomResourceDefinitions: they are a stack of their own.", [NAMESPACE_MANIFEST, *without_definitions]),
        "outside.yaml": file("What a host outside of the cluster needs in it: its rights, and a token.", [NAMESPACE_MANIFEST, *rights, TOKEN_MANIFEST]),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare only")
    arguments = parser.parse_args()

    stale = [name for name, text in manifests().items() if not (HERE / name).exists() or (HERE / name).read_text() != text]
    if arguments.check:
        sys.exit(f"error: out of date, run deploy/edge/generate.py: {', '.join(stale)}" if stale else 0)
    for name in stale:
        (HERE / name).write_text(manifests()[name])
        print(f"deploy/edge/{name}", file=sys.stderr)


if __name__ == "__main__":
    main()
