"""Records from anywhere: a host shows them to users of the cluster, and to each what the API server lets him get."""
import http.client
import json
import os
import ssl
import stat
import subprocess
import time

import pytest

import operators
import users
from cluster import eventually
from conftest import control_plane
from host import BINARY, Host, free_port, to_its_end
from operators import EVERYTHING, OPERATOR, allow

SYSTEM = "system-of-hangar"


@pytest.fixture(scope="module")
def seen():
    made = control_plane("--with-kcm")
    made.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM}})
    yield made
    made.close()


@pytest.fixture(scope="module")
def showing(seen, tmp_path_factory):
    """A host that shows its records, and says where in a ConfigMap."""
    port = free_port()
    host = Host(seen.kubeconfig, tmp_path_factory.mktemp("host"), f"--records-bind-address=127.0.0.1:{port}",
                f"--records-url=https://127.0.0.1:{port}", f"--namespace={SYSTEM}")
    host.records_port = port
    eventually(lambda: published(seen), "it says where it is", 60)
    yield from to_its_end(host)


def published(cluster):
    return (cluster.get("v1", "ConfigMap", "hangar-records", SYSTEM) or {}).get("data")


@pytest.fixture
def teams(seen, unique):
    """Two namespaces, an operator in each."""
    names = [f"{unique}-a", f"{unique}-b"]
    for name in names:
        seen.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        allow(seen, name, *EVERYTHING, resources=("configmaps", "secrets"))
        seen.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "password", "namespace": name}})
        seen.create(operators.manifest("reader", name, f"get=/api/v1/namespaces/{name}/secrets/password", "wait", "--", "tick=3600000"))
    yield names
    for name in names:
        seen.delete(*OPERATOR, "reader", name)
        seen.delete("v1", "Namespace", name)


def run(command, kubeconfig, *arguments, env=None):
    return subprocess.run([str(BINARY), command, *arguments, f"--kubeconfig={kubeconfig}", f"--host-namespace={SYSTEM}"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120, env={**os.environ, **(env or {})})


def timeline(kubeconfig, namespace, *flags, **options):
    return run("timeline", kubeconfig, "reader", "-n", namespace, *flags, **options)


def answered(kubeconfig, namespace):
    """The timeline, once the operator has read its Secret."""
    def look():
        done = timeline(kubeconfig, namespace)
        return done.stdout if "<- answer" in done.stdout else None
    return eventually(look, "its turns are shown", 120)


def find_host(cluster, who):
    users.let(cluster, who, SYSTEM, ["get"], ["configmaps"], names=["hangar-records"])


def ask(host, path, body, token=None, method="POST", shown=None):
    context = ssl._create_unverified_context()
    if shown:
        context.load_cert_chain(*shown)
    connection = http.client.HTTPSConnection("127.0.0.1", host.records_port, context=context, timeout=60)
    try:
        connection.request(method, path, json.dumps(body) if isinstance(body, dict) else body,
                           {"Authorization": f"Bearer {token}"} if token else {})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def test_a_user_with_a_token_sees_his_namespace_alone(seen, showing, teams, tmp_path):
    mine, others = teams
    kubeconfig = users.with_token(seen, tmp_path, "viewer", mine)
    find_host(seen, f"{mine}:viewer")
    users.let(seen, f"{mine}:viewer", mine, ["get"], ["operators"])

    shown = answered(kubeconfig, mine)
    assert "Module sha256:" in shown and "-> get secrets" in shown and "Records go back to" in shown
    refused = timeline(kubeconfig, others)
    assert refused.returncode == 1 and not refused.stdout
    assert f'user "system:serviceaccount:{mine}:viewer" may not get operators.hangar.dev "reader" in namespace "{others}"' in refused.stderr
    # Whether there is such an operator is not told either.
    nobody = run("timeline", kubeconfig, "nobody", "-n", others)
    assert nobody.returncode == 1 and "may not get operators.hangar.dev" in nobody.stderr
    nobody = run("timeline", kubeconfig, "reader", "-n", mine, "--turns=1001")
    assert nobody.returncode == 1 and "1 to 1000" in nobody.stderr


def test_a_user_with_a_certificate_sees_what_his_groups_may(seen, showing, teams, tmp_path):
    mine, others = teams
    member = users.with_certificate(seen, tmp_path, "jane", "somebody", f"{mine}-developers")
    stranger = users.with_certificate(seen, tmp_path, "john", "somebody")
    find_host(seen, f"group:{mine}-developers")
    find_host(seen, "john")
    users.let(seen, f"group:{mine}-developers", mine, ["get"], ["operators"])

    assert "Module sha256:" in answered(member, mine)
    refused = timeline(member, others)
    assert refused.returncode == 1 and 'user "jane" may not get operators.hangar.dev "reader"' in refused.stderr
    refused = timeline(stranger, mine)
    assert refused.returncode == 1 and 'user "john" may not get operators.hangar.dev "reader"' in refused.stderr


def test_names_of_secrets_are_for_who_may_get_them(seen, showing, teams, tmp_path):
    mine, _ = teams
    kubeconfig = users.with_token(seen, tmp_path, "viewer", mine)
    find_host(seen, f"{mine}:viewer")
    users.let(seen, f"{mine}:viewer", mine, ["get"], ["operators"])

    shown = answered(kubeconfig, mine)
    assert f"-> get secrets {mine}/(withheld): 200" in shown and "password" not in shown
    assert "password" not in timeline(kubeconfig, mine, "-o", "json").stdout
    assert f"-> get secrets {mine}/password: 200" in answered(seen.kubeconfig, mine)
    users.let(seen, f"{mine}:viewer", mine, ["get"], ["secrets"], names=["password"])
    # The API server's answer to that question is believed for ten seconds.
    eventually(lambda: f"-> get secrets {mine}/password: 200" in timeline(kubeconfig, mine).stdout, "now he may", 60)


def test_nobody_is_told_anything_without_proof_of_who_he_is(seen, showing, teams, tmp_path):
    mine, _ = teams
    question = {"namespace": mine, "name": "reader"}
    answered(seen.kubeconfig, mine)
    for path in ("/v1/turns", "/v1/writes"):
        status, words = ask(showing, path, question)
        assert status == 401 and "bearer token" in words
        status, words = ask(showing, path, question, token="no.such.token")
        assert status == 401 and "does not know this token" in words
    try:
        assert ask(showing, "/v1/turns", question, token="x" * 20000)[0] in (401, 431)
    except (http.client.RemoteDisconnected, ConnectionError):
        pass  # It is still being sent when it is refused.
    # Of another audience: it was made for somebody else.
    other = seen.kubectl("create", "token", "default", "--namespace", mine, "--audience=elsewhere").strip()
    assert ask(showing, "/v1/turns", question, token=other)[0] == 401
    # Signed by somebody else, in the administrator's name.
    key, certificate = tmp_path / "k.pem", tmp_path / "c.pem"
    users.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                  "-subj", "/O=system:masters/CN=admin", "-keyout", str(key), "-out", str(certificate))
    with pytest.raises((ssl.SSLError, ConnectionError)):
        ask(showing, "/v1/turns", question, shown=(certificate, key))

    # And the question is looked at, once it is known whose it is.
    admin = tuple(seen.env[name] for name in ("HANGAR_CP_CERT", "HANGAR_CP_KEY"))
    assert ask(showing, "/v1/turns", question, shown=admin)[0] == 200
    assert ask(showing, "/v1/turns", "{}", shown=admin)[0] == 400
    assert ask(showing, "/v1/turns", "not json", shown=admin)[0] == 400
    try:
        assert ask(showing, "/v1/turns", "x" * 20000, shown=admin)[0] == 413
    except (http.client.RemoteDisconnected, ConnectionError):
        pass  # It is still being sent when it is refused.
    assert ask(showing, "/v1/turns", None, shown=admin, method="GET")[0] == 405
    assert ask(showing, "/metrics", question, shown=admin)[0] == 404


def test_who_asks_too_often_is_put_off_and_nobody_else_is(seen, showing, teams, tmp_path):
    mine, _ = teams
    answered(seen.kubeconfig, mine)
    eager = users.certificate_of(seen, tmp_path, "eager")
    patient = users.certificate_of(seen, tmp_path, "patient")
    question = {"namespace": mine, "name": "reader"}
    context = ssl._create_unverified_context()
    context.load_cert_chain(*eager)
    connection = http.client.HTTPSConnection("127.0.0.1", showing.records_port, context=context, timeout=60)

    def status():
        connection.request("POST", "/v1/turns", json.dumps(question))
        answer = connection.getresponse()
        answer.read()
        return answer.status
    assert status() == 403
    deadline = time.monotonic() + 120
    while status() != 429:
        assert time.monotonic() < deadline, "it may ask as often as it likes"
    assert ask(showing, "/v1/turns", question, shown=patient)[0] == 403
    eventually(lambda: status() == 403, "it is answered again", 30)


def test_the_host_is_found_by_its_address(seen, showing, teams, tmp_path):
    mine, _ = teams
    answered(seen.kubeconfig, mine)
    authority = tmp_path / "ca.crt"
    authority.write_text(published(seen)["ca.crt"])
    address = f"--host-address=https://127.0.0.1:{showing.records_port}"

    # Without the right to read the ConfigMap, too.
    kubeconfig = users.with_token(seen, tmp_path, "viewer", mine)
    users.let(seen, f"{mine}:viewer", mine, ["get"], ["operators"])
    found = timeline(kubeconfig, mine, address, f"--host-ca={authority}")
    assert found.returncode == 0 and "Module sha256:" in found.stdout, found.stderr
    # A token goes to nobody who does not prove that it is the host.
    unknown = timeline(kubeconfig, mine, address)
    assert unknown.returncode == 1 and "certificate" in unknown.stderr
    assert timeline(kubeconfig, mine, "--host-address=http://127.0.0.1").returncode == 1

    lost = timeline(kubeconfig, mine)
    assert lost.returncode == 1 and "find the host" in lost.stderr and "--host-address" in lost.stderr
    elsewhere = subprocess.run([str(BINARY), "timeline", "reader", "-n", mine, f"--kubeconfig={seen.kubeconfig}", "--host-namespace=default"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
    assert elsewhere.returncode == 1 and "no host in namespace default shows its records" in elsewhere.stderr
    acting = users.with_token(seen, tmp_path, "actor", mine, **{"as": "jane"})
    assert "acts as another user" in timeline(acting, mine).stderr


def test_the_host_is_found_by_a_port_forward(seen, teams, tmp_path):
    """kubectl is another program here: it does what kubectl does, and says what it was asked for."""
    mine, _ = teams
    port = free_port()
    # A namespace of its own: another host is published in the other one.
    place = f"system-{mine}"
    seen.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": place}})
    host = Host(seen.kubeconfig, tmp_path / "host", f"--records-bind-address=127.0.0.1:{port}", f"--namespace={place}",
                f"--pod={place}/hangar-0")
    try:
        eventually(lambda: seen.get("v1", "ConfigMap", "hangar-records", place), "it says where it is", 60)
        bin_directory = tmp_path / "bin"
        bin_directory.mkdir()
        script = bin_directory / "kubectl"
        script.write_text(f"""#!/usr/bin/env python3
import socket, sys, threading, time
open({str(tmp_path / "asked")!r}, "w").write(" ".join(sys.argv[1:]))
listener = socket.create_server(("127.0.0.1", 0))
print("Forwarding from 127.0.0.1:%d -> {port}" % listener.getsockname()[1], flush=True)
def copy(source, target):
    while data := source.recv(65536):
        target.sendall(data)
    target.shutdown(socket.SHUT_WR)
while True:
    client, _ = listener.accept()
    print("Handling connection for x", flush=True)
    server = socket.create_connection(("127.0.0.1", {port}))
    for pair in ((client, server), (server, client)):
        threading.Thread(target=copy, args=pair, daemon=True).start()
""")
        script.chmod(script.stat().st_mode | stat.S_IXUSR)
        env = {"PATH": f"{bin_directory}:{os.environ['PATH']}"}

        def look():
            return subprocess.run([str(BINARY), "timeline", "reader", "-n", mine, f"--kubeconfig={seen.kubeconfig}", f"--host-namespace={place}"],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120, env={**os.environ, **env})
        done = eventually(lambda: (done := look()).returncode == 0 and done, "it is reached", 120)
        assert "Module sha256:" in done.stdout
        assert (tmp_path / "asked").read_text() == (
            f"--kubeconfig={seen.kubeconfig} --namespace={place} port-forward --address=127.0.0.1 pod/hangar-0 :{port}")

        script.write_text("#!/bin/sh\necho 'error: pods \"hangar-0\" is forbidden' >&2\nexit 1\n")
        refused = look()
        assert refused.returncode == 1 and 'kubectl has ended: error: pods "hangar-0" is forbidden' in refused.stderr
        env["PATH"] = str(tmp_path)
        missing = look()
        assert missing.returncode == 1 and "kubectl, which is not on PATH" in missing.stderr
    finally:
        host.stop()
        seen.delete("v1", "Namespace", place)


def test_a_host_that_does_not_lead_says_so(seen, showing, teams, tmp_path):
    mine, _ = teams
    port = free_port()
    place = f"standby-{mine}"
    seen.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": place}})
    seen.request("POST", f"/apis/coordination.k8s.io/v1/namespaces/{place}/leases", {"metadata": {"name": "hangar"}, "spec": {
        "holderIdentity": "somebody", "leaseDurationSeconds": 3600,
        "acquireTime": "2100-01-01T00:00:00.000000Z", "renewTime": "2100-01-01T00:00:00.000000Z"}})
    host = Host(seen.kubeconfig, tmp_path / "host", f"--records-bind-address=127.0.0.1:{port}", f"--records-url=https://127.0.0.1:{port}",
                f"--namespace={place}", "--leader-elect")
    host.records_port = port
    try:
        def look():
            try:
                return ask(host, "/v1/turns", {}, token="x")
            except OSError:
                return None
        status, words = eventually(look, "it listens", 60)
        assert status == 503 and "does not lead" in words
        assert seen.get("v1", "ConfigMap", "hangar-records", place) is None
    finally:
        host.stop()
        seen.delete("v1", "Namespace", place)


def test_a_namespace_can_be_deleted_while_no_host_runs(seen, tmp_path, unique):
    """Nothing of this is an aggregated API, which would have to answer for that."""
    namespace, place = f"gone-{unique}", f"system-{unique}"
    for name in (namespace, place):
        seen.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    port = free_port()
    host = Host(seen.kubeconfig, tmp_path / "host", f"--records-bind-address=127.0.0.1:{port}", f"--records-url=https://127.0.0.1:{port}",
                f"--namespace={place}")
    try:
        eventually(lambda: seen.get("v1", "ConfigMap", "hangar-records", place), "it says where it is", 60)
        seen.create(operators.manifest("reader", namespace, "wait", "--", "tick=3600000"))
    finally:
        host.stop()
    for name in (namespace, place):
        seen.delete("v1", "Namespace", name)
    for name in (namespace, place):
        eventually(lambda name=name: seen.get("v1", "Namespace", name) is None, f"namespace {name} is gone", 90)


@pytest.mark.parametrize("flags", [["--records-bind-address=9444"], ["--records-bind-address=:9444", "--recorder-bytes=0"],
                                   ["--records-url=http://h"]])
def test_a_setting_that_is_wrong_is_named(flags):
    done = subprocess.run([str(BINARY), "host", *flags], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=30)
    assert done.returncode != 0 and flags[0].split("=")[0].strip("-") in done.stderr
