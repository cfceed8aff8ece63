"""What a cluster contains, without what differs from run to run: uids, times, addresses, nodes and random names."""
import json
import re
import time

from cluster import eventually

# Members of objects.
LEFT_OUT = {"uid", "resourceVersion", "managedFields", "generation"}
TIMES = ("Time", "Times", "Timestamp")
# Their statuses come from others than the operator; of a pod's, the phase is kept.
STATUS_OF_OTHERS = ("Job", "Pod", "Service")

RANDOM = [(re.compile(r"\b\d+\.\d+\.\d+\.\d+\b"), "ADDRESS"), (re.compile(r"\bnode-\d\b"), "NODE"),
          (re.compile(r"\bkube-api-access-\w{5}\b"), "kube-api-access")]


def _told(value, names, is_sorted=False):
    if isinstance(value, dict):
        return {_told(key, names): _told(one, names, is_sorted or key == "status") for key, one in value.items()
                if key not in LEFT_OUT and not key.endswith(TIMES)}
    if isinstance(value, list):
        told = [_told(one, names, is_sorted) for one in value]
        return sorted(told, key=json.dumps) if is_sorted else told
    if isinstance(value, str):
        for name, replacement in names.items():
            value = value.replace(name, replacement)
        for pattern, replacement in RANDOM:
            value = pattern.sub(replacement, value)
    return value


def objects(cluster, namespace, kinds):
    """Those of the namespace, by kind."""
    found = {kind: cluster.list(api_version, kind, namespace) for api_version, kind in kinds}
    names = {}
    for kind, ones in found.items():
        for one in ones:
            metadata = one["metadata"]
            if prefix := metadata.get("generateName"):
                names[metadata["name"]] = f"{prefix}*"
        for one in ones:
            name = one["metadata"]["name"]
            names[one["metadata"]["uid"]] = f"UID of {kind} {names.get(name, name)}"
    for kind in STATUS_OF_OTHERS:
        for one in found.get(kind, ()):
            one["status"] = {key: value for key, value in one.get("status", {}).items() if key == "phase"}
    return {kind: sorted((_told(one, names) for one in ones), key=json.dumps) for kind, ones in found.items()}


def settled(cluster, namespace, kinds):
    """The same, once it has not changed for some seconds."""
    def look():
        before = objects(cluster, namespace, kinds)
        time.sleep(3)
        return before if objects(cluster, namespace, kinds) == before else None
    return eventually(look, "nothing changes any more", 120)


def events(cluster, namespace, uids, random):
    """Type, reason and message of the Events about those objects, each once. `random`: names that end in five random letters."""
    listed = cluster.request("GET", f"/api/v1/namespaces/{namespace}/events")["items"]
    pattern = re.compile(rf"\b({random})-\w{{5}}\b")
    return sorted({(event["type"], event["reason"], pattern.sub(r"\1-*", event["message"])) for event in listed if event["involvedObject"].get("uid") in uids})
