"""Users of a cluster other than its administrator, as kubeconfigs."""
import json
import pathlib
import subprocess


def openssl(*arguments):
    subprocess.run(["openssl", *arguments], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def kubeconfig_for(cluster, path, user):
    config = json.loads(cluster.kubectl("config", "view", "--raw", "--flatten", "-o", "json"))
    config["users"] = [{"name": config["users"][0]["name"], "user": user}]
    path.write_text(json.dumps(config))
    return path


def with_token(cluster, directory, account, namespace, **more):
    """A ServiceAccount that authenticates by a token. `more`: further members of the kubeconfig's user."""
    if cluster.get("v1", "ServiceAccount", account, namespace) is None:
        cluster.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account, "namespace": namespace}})
    token = cluster.kubectl("create", "token", account, "--namespace", namespace, "--duration=2h").strip()
    return kubeconfig_for(cluster, directory / f"{namespace}-{account}.json", {"token": token, **more})


def certificate_of(cluster, directory, name, *groups):
    """A certificate that the cluster's authority has signed, and its key, as files."""
    authority = pathlib.Path(cluster.env["HANGAR_CP_CA"])
    key, certificate = directory / f"{name}.key", directory / f"{name}.crt"
    subject = "".join(f"/O={group}" for group in groups) + f"/CN={name}"
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", subject,
            "-CA", str(authority), "-CAkey", str(authority.with_suffix(".key")), "-addext", "basicConstraints=critical,CA:FALSE",
            "-addext", "extendedKeyUsage=clientAuth", "-keyout", str(key), "-out", str(certificate))
    return certificate, key


def with_certificate(cluster, directory, name, *groups):
    certificate, key = certificate_of(cluster, directory, name, *groups)
    return kubeconfig_for(cluster, directory / f"{name}.json", {"client-certificate": str(certificate), "client-key": str(key)})


def subject_of(name):
    """"namespace:account" is a ServiceAccount, "group:NAME" a group, anything else a user."""
    if name.startswith("group:"):
        return {"kind": "Group", "name": name.removeprefix("group:"), "apiGroup": "rbac.authorization.k8s.io"}
    if ":" in name:
        namespace, account = name.split(":")
        return {"kind": "ServiceAccount", "name": account, "namespace": namespace}
    return {"kind": "User", "name": name, "apiGroup": "rbac.authorization.k8s.io"}


def let(cluster, who, namespace, verbs, resources, groups=("", "hangar.dev", "amurant.io"), names=None):
    """Gives a role in a namespace."""
    prefix = f"/apis/rbac.authorization.k8s.io/v1/namespaces/{namespace}"
    rule = {"apiGroups": list(groups), "resources": list(resources), "verbs": list(verbs)}
    role = cluster.request("POST", f"{prefix}/roles", {
        "metadata": {"generateName": "let-"}, "rules": [{**rule, "resourceNames": list(names)} if names else rule]})["metadata"]["name"]
    cluster.request("POST", f"{prefix}/rolebindings", {
        "metadata": {"generateName": "let-"}, "subjects": [subject_of(who)],
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": role}})
