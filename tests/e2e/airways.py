"""Airways and instances of the test flights, as manifests."""
import os
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
GUESTS = pathlib.Path(os.environ.get("HANGAR_GUESTS_DIR", ROOT / "build/guests"))

OPEN_SCHEMA = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def flight(name):
    """The path of a built flight."""
    path = GUESTS / f"{name}.wasm"
    assert path.exists(), f"{path} is missing: run make guests"
    return str(path)


def airway(plural, kind, wasm, group="e2e.hangar.dev", scope="Namespaced", schema=None, **spec):
    """An Airway with one version v1 and an open schema."""
    return {
        "apiVersion": "yoke.cd/v1alpha1", "kind": "Airway", "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "wasmUrls": {"flight": wasm},
            "template": {
                "group": group, "scope": scope,
                "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
                "versions": [{"name": "v1", "served": True, "storage": True,
                              "schema": {"openAPIV3Schema": schema or OPEN_SCHEMA}}]},
            **spec}}


def instance(kind, name, spec, namespace="default", group="e2e.hangar.dev", **metadata):
    manifest = {"apiVersion": f"{group}/v1", "kind": kind, "metadata": {"name": name, **metadata}, "spec": spec}
    if namespace:
        manifest["metadata"]["namespace"] = namespace
    return manifest
