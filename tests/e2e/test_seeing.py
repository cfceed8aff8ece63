"""Records from anywhere: a host shows them to users of the cluster, and to each what the API server lets him get."""
import concurrent.futures
import http.client
import json
import os
import re
import signal
import ssl
import stat
import subprocess
import termios
import time

import pytest

import airways
import operators
import users
import workflows
from cluster import ROOT, eventually, is_ready
from conftest import COMPILED
from host import BINARY, Host, free_port, to_its_end
from operators import EVERYTHING, OPERATOR, allow, copier, create_ring_object, nonce, send_nonce
from shown import SYSTEM, published, records_cluster, showing_host
from terminals import Screen


@pytest.fixture(scope="module")
def seen():
    made = records_cluster()
    yield made
    made.close()


@pytest.fixture(scope="module")
def showing(seen, tmp_path_factory):
    """A host that shows its records, and publishes their address in a ConfigMap."""
    yield from to_its_end(showing_host(seen, tmp_path_factory.mktemp("host")))


@pytest.fixture
def teams(seen, unique):
    """Two namespaces with an operator in each."""
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
    # The refusal does not tell whether there is such an operator.
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
    # The host caches the API server's decision for ten seconds.
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
        pass  # The host refuses it while it is still being sent.
    # A token for another audience.
    other = seen.kubectl("create", "token", "default", "--namespace", mine, "--audience=elsewhere").strip()
    assert ask(showing, "/v1/turns", question, token=other)[0] == 401
    # A certificate in the administrator's name, signed by an unknown authority.
    key, certificate = tmp_path / "k.pem", tmp_path / "c.pem"
    users.openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                  "-subj", "/O=system:masters/CN=admin", "-keyout", str(key), "-out", str(certificate))
    with pytest.raises((ssl.SSLError, ConnectionError)):
        ask(showing, "/v1/turns", question, shown=(certificate, key))

    # The host parses a request of an authenticated user.
    admin = tuple(seen.env[name] for name in ("HANGAR_CP_CERT", "HANGAR_CP_KEY"))
    assert ask(showing, "/v1/turns", question, shown=admin)[0] == 200
    assert ask(showing, "/v1/turns", "{}", shown=admin)[0] == 400
    assert ask(showing, "/v1/turns", "not json", shown=admin)[0] == 400
    try:
        assert ask(showing, "/v1/turns", "x" * 20000, shown=admin)[0] == 413
    except (http.client.RemoteDisconnected, ConnectionError):
        pass  # The host refuses it while it is still being sent.
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


def test_the_service_accounts_of_a_namespace_ask_as_one(seen, showing, teams, tmp_path):
    mine, others = teams
    answered(seen.kubeconfig, mine)
    tokens = []
    for index in range(20):
        seen.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": f"many-{index}", "namespace": mine}})
        tokens.append(seen.kubectl("create", "token", f"many-{index}", "--namespace", mine).strip())
    other = seen.kubectl("create", "token", "default", "--namespace", others).strip()
    question = {"namespace": mine, "name": "reader"}

    # Each of them stays below the rate of one user.
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        statuses = list(pool.map(lambda token: ask(showing, "/v1/turns", question, token)[0], tokens * 20))

    assert 429 in statuses and set(statuses) <= {403, 429}, set(statuses)
    assert ask(showing, "/v1/turns", question, other)[0] == 403


def test_the_host_is_found_by_its_address(seen, showing, teams, tmp_path):
    mine, _ = teams
    answered(seen.kubeconfig, mine)
    authority = tmp_path / "ca.crt"
    authority.write_text(published(seen)["ca.crt"])
    address = f"--host-address=https://127.0.0.1:{showing.records_port}"

    # The address suffices without the right to read the ConfigMap.
    kubeconfig = users.with_token(seen, tmp_path, "viewer", mine)
    users.let(seen, f"{mine}:viewer", mine, ["get"], ["operators"])
    found = timeline(kubeconfig, mine, address, f"--host-ca={authority}")
    assert found.returncode == 0 and "Module sha256:" in found.stdout, found.stderr
    # The command sends its token only to a server that proves that it is the host.
    unknown = timeline(kubeconfig, mine, address)
    assert unknown.returncode == 1 and "certificate" in unknown.stderr
    assert timeline(kubeconfig, mine, "--host-address=http://127.0.0.1").returncode == 1

    lost = timeline(kubeconfig, mine)
    assert lost.returncode == 1 and "find the host" in lost.stderr and "--host-address" in lost.stderr
    elsewhere = subprocess.run([str(BINARY), "timeline", "reader", "-n", mine, f"--kubeconfig={seen.kubeconfig}", "--host-namespace=default"],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
    assert elsewhere.returncode == 1 and "no host in namespace default shows its records" in elsewhere.stderr
    acting = users.with_token(seen, tmp_path, "actor", mine, **{"as": "jane"})
    assert "impersonates another user" in timeline(acting, mine).stderr


def test_the_host_is_found_by_a_port_forward(seen, teams, tmp_path):
    """A script takes the place of kubectl: it forwards a port and stores its arguments."""
    mine, _ = teams
    port = free_port()
    # A namespace of its own, because the other one has the address of another host.
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
        assert refused.returncode == 1 and 'kubectl has exited: error: pods "hangar-0" is forbidden' in refused.stderr
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
    """An aggregated API would have to answer before a namespace can be deleted; the records are not one."""
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


# Why -------------------------------------------------------------------------------------------------


@pytest.fixture
def chain(seen, unique):
    """Three namespaces: an operator copies the nonce of the first to the second, another operator from there to the third."""
    seen.apply_crds(ROOT / "examples/ring/testresources.yaml")
    seen.learn(*operators.TEST_RESOURCES, "testresources")
    names = [f"{unique}-{index}" for index in range(3)]
    for name in names:
        seen.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        create_ring_object(seen, name)
    copier(seen, names[0], names[1])
    copier(seen, names[1], names[2])
    for number in (1, 2):  # An operator may find the first when it starts; the second is an event for both.
        send_nonce(seen, names[0], number)
        eventually(lambda number=number: nonce(seen, names[2]) == number, "the nonce arrives", 120)
    yield names
    for name in names:
        seen.delete(*OPERATOR, "copier", name)
        seen.delete("v1", "Namespace", name)


def why(kubeconfig, namespace, *flags):
    return run("why", kubeconfig, "testresource.amurant.io/run", "-n", namespace, *flags)


def test_why_shows_each_what_he_may_get(seen, showing, chain, tmp_path):
    first, second, third = chain
    whole = eventually(lambda: (done := why(seen.kubeconfig, third).stdout).count("of operator") > 1 and done, "all is recorded", 60)
    assert f"of operator {second}/copier" in whole and f"of operator {first}/copier" in whole

    kubeconfig = users.with_token(seen, tmp_path, "viewer", third)
    find_host(seen, f"{third}:viewer")
    refused = why(kubeconfig, third)
    assert refused.returncode == 1
    assert f'may not get testresources.amurant.io "run" in namespace "{third}"' in refused.stderr

    users.let(seen, f"{third}:viewer", third, ["get"], ["testresources"])
    stranger = "<- a turn that you may not see"
    shown = eventually(lambda: (done := why(kubeconfig, third)).returncode == 0 and done.stdout, "he may see the object", 60)
    assert stranger in shown and "update testresources.amurant.io" in shown
    assert first not in shown and second not in shown
    told = why(kubeconfig, third, "-o", "json").stdout
    assert first not in told and second not in told

    users.let(seen, f"{third}:viewer", second, ["get"], ["operators"])
    shown = eventually(lambda: f"of operator {second}/copier" in (done := why(kubeconfig, third).stdout) and done, "now he may see that one", 60)
    # A turn that the user may not see led to it. The change of the first namespace's object is in the second operator's record.
    assert stranger in shown and f"{first}/copier" not in shown
    drawn = why(kubeconfig, third, "-o", "mermaid").stdout
    assert "a turn that you may not see" in drawn and f"{first}/copier" not in drawn


def test_why_follows_writes_from_anywhere(seen, showing, chain, tmp_path):
    first, _, third = chain
    with open(tmp_path / "told", "wb") as told:
        follower = subprocess.Popen([str(BINARY), "why", "testresource.amurant.io/run", "-n", third, "--follow",
                                     f"--kubeconfig={seen.kubeconfig}", f"--host-namespace={SYSTEM}"], stdout=told, stderr=subprocess.PIPE)
    try:
        eventually(lambda: "testresources" in (tmp_path / "told").read_text(), "the first write is told", 60)
        send_nonce(seen, first, 2)
        eventually(lambda: nonce(seen, third) == 2, "the nonce arrives", 60)
        version = seen.get(*operators.TEST_RESOURCES, "run", third)["metadata"]["resourceVersion"]
        eventually(lambda: version in (tmp_path / "told").read_text(), "the next one is told", 60)
    finally:
        follower.kill()
        follower.wait()


# Top -------------------------------------------------------------------------------------------------


def top(kubeconfig, *flags):
    return run("top", kubeconfig, *flags)


def guests(kubeconfig, *flags):
    done = top(kubeconfig, "-o", "json", *flags)
    return {(one["namespace"], one["name"]): one for one in json.loads(done.stdout)["guests"]} if done.returncode == 0 else {}


def test_top_is_a_table_of_what_operators_cost(seen, showing, teams):
    mine, others = teams
    answered(seen.kubeconfig, mine)
    shown = top(seen.kubeconfig)
    assert shown.returncode == 0 and "\x1b" not in shown.stdout, shown.stderr
    head, *rows = shown.stdout.splitlines()
    assert head.split() == ["KIND", "NAMESPACE", "NAME", "STATE", "CPU", "TURNS", "CALLS", "WRITTEN", "MEMORY", "DISK", "RESTARTS"]
    assert {tuple(row.split()[:3]) for row in rows} >= {("operator", mine, "reader"), ("operator", others, "reader")}

    one = eventually(lambda: (found := guests(seen.kubeconfig).get((mine, "reader"))) and found["turns"] > 1 and found, "its turns are counted", 60)
    assert one["cpuMicroseconds"] > 0 and one["requests"] >= 1 and one["phase"] in ("Running", "Asleep", "Starting")
    assert one["memoryBytes"] + one["diskBytes"] > 0 and one["restarts"] == 0
    # The bytes that an operator writes are counted, and the restarts of one that fails.
    allow(seen, others, *EVERYTHING, resources=("testresources",))
    body = json.dumps({"metadata": {"name": "made"}, "data": {"key": "x" * 500}})
    seen.create(operators.manifest("writer", others, f"request=POST,/api/v1/namespaces/{others}/configmaps,{body}", "wait"))
    seen.create(operators.manifest("failing", others, "trap"))
    eventually(lambda: guests(seen.kubeconfig).get((others, "writer"), {}).get("writtenBytes", 0) > 500, "what it wrote is counted", 60)
    eventually(lambda: guests(seen.kubeconfig).get((others, "failing"), {}).get("restarts", 0) > 0, "its restarts are counted", 60)
    by_written = top(seen.kubeconfig, "-n", others, "--sort=written").stdout.splitlines()
    assert by_written[1].split()[2] == "writer"
    for name in ("writer", "failing"):
        seen.delete(*OPERATOR, name, others)
    assert top(seen.kubeconfig, "--window=2h").returncode == 2 and top(seen.kubeconfig, "--sort=age").returncode == 2


def test_top_has_the_namespaces_that_its_reader_may_list(seen, showing, teams, tmp_path):
    mine, others = teams
    answered(seen.kubeconfig, mine)
    kubeconfig = users.with_certificate(seen, tmp_path, f"{mine}-jane")
    find_host(seen, f"{mine}-jane")
    none = top(kubeconfig)
    assert none.returncode == 1
    assert f'user "{mine}-jane" may not list operators.hangar.dev in all namespaces, nor in any that has one' in none.stderr

    users.let(seen, f"{mine}-jane", mine, ["list"], ["operators"])
    shown = eventually(lambda: guests(kubeconfig), "now there is one", 60)
    assert set(shown) == {(mine, "reader")}
    assert set(guests(kubeconfig, "-n", mine)) == {(mine, "reader")}
    refused = top(kubeconfig, "-n", others)
    assert refused.returncode == 1 and f'may not list operators.hangar.dev in namespace "{others}"' in refused.stderr


def test_top_reads_no_file_for_somebody_who_may_list_nothing(seen, showing, teams, tmp_path):
    mine, _ = teams
    answered(seen.kubeconfig, mine)
    stranger = users.certificate_of(seen, tmp_path, "stranger")
    # A reader of this file would wait for ever.
    newest = showing.directory / "cache" / "recorder" / "turns-999999999.rec"
    os.mkfifo(newest)
    try:
        for question in ({"seconds": 3600}, {"seconds": 3600, "namespace": mine}):
            status, text = ask(showing, "/v1/top", question, shown=stranger)
            assert status == 403 and "may not list operators.hangar.dev" in text, text
    finally:
        # Releases a waiting reader.
        os.close(os.open(newest, os.O_RDWR | os.O_NONBLOCK))
        newest.unlink()


def test_top_reads_local_files_too(seen, showing, teams):
    mine, _ = teams
    answered(seen.kubeconfig, mine)
    done = subprocess.run([str(BINARY), "top", f"--recorder-directory={showing.directory / 'cache' / 'recorder'}", "--window=1h"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60, env={"PATH": os.environ["PATH"]})
    assert done.returncode == 0 and f"operator  {mine}" in done.stdout, done.stderr


def test_top_stays_on_a_terminal_and_obeys_its_keys(seen, showing, teams):
    mine, others = teams
    answered(seen.kubeconfig, mine)
    screen = Screen(f"--kubeconfig={seen.kubeconfig}", f"--host-namespace={SYSTEM}", "--sort=name")
    try:
        screen.shows("sort (name)")
        screen.shows(f"{mine}  ")
        assert "\x1b[?1049h" in screen.seen
        assert " 0 guests" not in screen.seen, "the first screen has what was found already"
        screen.press("/" + mine)
        screen.shows(f"/{mine}")
        screen.press("\r")
        screen.shows(f"filter ({mine})")
        assert others not in screen.drawn()
        eventually(lambda: f"{mine}" in screen.marked(), "the one that is left is marked", 30)
        screen.press("\r")
        screen.shows(f"{mine}/reader")
        screen.shows("Module sha256:")
        screen.press("\x1b")
        screen.shows(f"filter ({mine})")
        screen.press("\x1b")
        screen.shows(f"{others}  ")
        screen.press("s")
        screen.shows("sort (cpu)")
        screen.press("\x1b[B")
        screen.press("\x1b[A")
        before = screen.drawn().split(":", 2)[:3]
        eventually(lambda: screen.drawn().split(":", 2)[:3] != before, "it is drawn again by itself", 30)
        screen.press("q")
        assert screen.process.wait(30) == 0
        assert screen.drawn().endswith("\x1b[?25h\x1b[?1049l")
        assert termios.tcgetattr(screen.slave) == screen.before
    finally:
        screen.close()


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_top_leaves_the_terminal_as_it_was(seen, showing, teams, end):
    mine, _ = teams
    answered(seen.kubeconfig, mine)
    screen = Screen(f"--kubeconfig={seen.kubeconfig}", f"--host-namespace={SYSTEM}")
    try:
        screen.shows("enter: turns")
        screen.process.send_signal(end)
        assert screen.process.wait(30) == 0
        assert screen.drawn().endswith("\x1b[?25h\x1b[?1049l")
        assert termios.tcgetattr(screen.slave) == screen.before
    finally:
        screen.close()


# Flights ---------------------------------------------------------------------------------------------


@pytest.fixture
def aircraft(seen, showing, unique):
    """An Airway, and an instance of it that creates a ConfigMap."""
    kind, plural, namespace = f"Craft{unique}", f"craft{unique}s", f"{unique}-air"
    seen.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    manifest = airways.airway(plural, kind, airways.flight("behave"), mode="dynamic", clusterAccess=True,
                              resourceAccessMatchers=["Secret"])
    seen.apply(manifest)
    seen.learn("e2e.hangar.dev/v1", kind, plural)
    name = manifest["metadata"]["name"]
    eventually(lambda: is_ready(seen.get("yoke.cd/v1alpha1", "Airway", name)), "the Airway is ready", COMPILED)
    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "made"}, "data": {"step": "1"}}
    seen.create(airways.instance(kind, "one", {"behaviour": "raw", "stdout": json.dumps([made])}, namespace))
    eventually(lambda: seen.get("v1", "ConfigMap", "made", namespace), "it is made", 60)
    yield kind, f"{plural}.e2e.hangar.dev/one", namespace
    seen.delete("e2e.hangar.dev/v1", kind, "one", namespace)
    eventually(lambda: seen.get("e2e.hangar.dev/v1", kind, "one", namespace) is None, "the instance is gone", 60)
    seen.delete("yoke.cd/v1alpha1", "Airway", name)
    seen.delete("v1", "Namespace", namespace)


def test_runs_of_flights_are_turns(seen, showing, aircraft, tmp_path):
    kind, name, namespace = aircraft
    shown = eventually(lambda: (done := run("timeline", seen.kubeconfig, name, "-n", namespace)).returncode == 0 and done.stdout, "its run is shown", 60)
    assert f"<- added {kind}.e2e.hangar.dev {namespace}/one@" in shown and "; completed" in shown
    assert f"-> patch configmaps {namespace}/made: 201 in" in shown

    # From an object of the flight back to the creator of the instance.
    told = eventually(lambda: (done := run("why", seen.kubeconfig, "configmap/made", "-n", namespace)).returncode == 0 and done.stdout, "it is told", 60)
    assert "which was written from here" in told and f"of airway {namespace}/{name}" in told and f"<- added {kind}.e2e.hangar.dev" in told

    made = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}}
    seen.patch("e2e.hangar.dev/v1", kind, "one", {"spec": {"stdout": json.dumps([made])}}, namespace)
    eventually(lambda: seen.get("v1", "ConfigMap", "made", namespace) is None, "it is pruned", 60)
    eventually(lambda: f"-> delete configmaps {namespace}/made: 200" in run("timeline", seen.kubeconfig, name, "-n", namespace).stdout, "that is recorded", 30)
    seen.patch("e2e.hangar.dev/v1", kind, "one", {"spec": {"behaviour": "raw", "exitCode": 1}}, namespace)
    eventually(lambda: "; failed" in run("timeline", seen.kubeconfig, name, "-n", namespace).stdout, "a run that fails is recorded", 60)

    seen.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "password", "namespace": namespace}})
    lookup = {"apiVersion": "v1", "kind": "Secret", "name": "password", "namespace": namespace}
    seen.patch("e2e.hangar.dev/v1", kind, "one", {"spec": {"behaviour": "lookup", "lookup": lookup, "exitCode": 0}}, namespace)
    eventually(lambda: f"-> get secrets {namespace}/password: 200 in" in run("timeline", seen.kubeconfig, name, "-n", namespace).stdout, "its lookup is recorded", 60)
    row = eventually(lambda: guests(seen.kubeconfig, "--window=1h").get((namespace, name)), "it is in the table", 30)
    assert row["contract"] == "airway" and row["turns"] >= 3 and row["cpuMicroseconds"] > 0 and row["writtenBytes"] > 0
    cost = json.loads(run("top", seen.kubeconfig, "--cost", "-n", namespace, "-o", "json").stdout)["rows"]
    assert sum(one["writtenBytes"] for one in cost) > 0 and sum(one["readBytes"] for one in cost) > 0

    kubeconfig = users.with_token(seen, tmp_path, "viewer", namespace)
    find_host(seen, f"{namespace}:viewer")
    users.let(seen, f"{namespace}:viewer", namespace, ["get", "list"], ["operators"])
    refused = run("timeline", kubeconfig, name, "-n", namespace)
    assert refused.returncode == 1 and f'may not get {name.replace("/one", "")} "one" in namespace "{namespace}"' in refused.stderr
    assert top(kubeconfig, "-n", namespace).returncode == 0 and not guests(kubeconfig, "-n", namespace)
    users.let(seen, f"{namespace}:viewer", namespace, ["get", "list"], [name.partition(".")[0]], groups=("e2e.hangar.dev",))
    eventually(lambda: run("timeline", kubeconfig, name, "-n", namespace).returncode == 0, "now he may", 60)
    # The name of the Secret stays withheld.
    assert f"-> get secrets {namespace}/(withheld): 200 in" in run("timeline", kubeconfig, name, "-n", namespace).stdout
    eventually(lambda: (namespace, name) in guests(kubeconfig, "-n", namespace, "--window=1h"), "it is in his table", 60)


def test_an_airway_shows_the_runs_of_its_instances(seen, showing, aircraft, unique, tmp_path):
    kind, name, namespace = aircraft
    plural, other = name.partition("/")[0], f"{unique}-other"
    airway = f"airways.yoke.cd/{plural}"
    seen.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": other}})
    seen.create(airways.instance(kind, "two", {"behaviour": "raw", "stdout": "[]"}, other))

    def shown(kubeconfig, *flags):
        return run("timeline", kubeconfig, airway, *flags).stdout

    def heads(text):
        """(instance, time) of each turn."""
        return [(line.split()[1], line.split()[0]) for line in text.splitlines() if ": ran " in line]
    both = [f"{namespace}/one", f"{other}/two"]
    text = eventually(lambda: (said := shown(seen.kubeconfig)) and {one for one, _ in heads(said)} >= set(both) and said, "both are shown", 60)
    times = [time for _, time in heads(text)]
    assert times == sorted(times) and f"-> patch configmaps {namespace}/made: 201 in" in text
    slowest = json.loads(shown(seen.kubeconfig, "--slowest", "-o", "json"))["turns"]
    took = [one.get("waitedMicroseconds", 0) + one["ranMicroseconds"] for one in slowest]
    assert took == sorted(took, reverse=True) and {f'{one["namespace"]}/{one["name"].partition("/")[2]}' for one in slowest} == set(both)
    assert {one for one, _ in heads(shown(seen.kubeconfig, "-n", other))} == {both[1]}

    # A user of one namespace sees its instances alone, and needs no right to the Airway.
    kubeconfig = users.with_token(seen, tmp_path, "viewer", namespace)
    who = f"{namespace}:viewer"
    find_host(seen, who)
    refused = run("timeline", kubeconfig, airway, "-n", namespace)
    assert refused.returncode == 1 and f"nor {plural} in namespace" in refused.stderr
    users.let(seen, who, namespace, ["get"], [plural.partition(".")[0]], groups=("e2e.hangar.dev",))
    eventually(lambda: {one for one, _ in heads(shown(kubeconfig, "-n", namespace))} == {both[0]}, "he sees his own", 60)
    assert run("timeline", kubeconfig, airway, "-n", other).returncode == 1
    refused = run("timeline", kubeconfig, airway)
    assert refused.returncode == 1 and "with -n a namespace may be named" in refused.stderr
    # With that to the Airway, he may ask about all, and still sees his own.
    rbac, role = "/apis/rbac.authorization.k8s.io/v1", f"{unique}-airways"
    seen.request("POST", f"{rbac}/clusterroles", {"metadata": {"name": role}, "rules": [{"apiGroups": ["yoke.cd"], "resources": ["airways"], "verbs": ["get"]}]})
    seen.request("POST", f"{rbac}/clusterrolebindings", {"metadata": {"name": role}, "subjects": [users.subject_of(who)],
                                                         "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}})
    eventually(lambda: {one for one, _ in heads(shown(kubeconfig))} == {both[0]}, "he sees his own of all", 60)

    seen.delete("e2e.hangar.dev/v1", kind, "two", other)
    seen.delete("v1", "Namespace", other)


def test_a_run_of_a_flight_tells_what_it_ran_for(seen, showing, aircraft):
    kind, name, namespace = aircraft

    def shown(words):
        return eventually(lambda: words in (said := run("timeline", seen.kubeconfig, name, "-n", namespace).stdout) and said, f"{words} is shown", 60)

    changed = seen.patch("v1", "ConfigMap", "made", {"data": {"step": "2", "mine": "x"}}, namespace)["metadata"]["resourceVersion"]
    shown(f"<- modified ConfigMap {namespace}/made@{changed}\n")
    eventually(lambda: seen.get("v1", "ConfigMap", "made", namespace)["data"]["step"] == "1", "it is as its flight wants it", 60)
    # From what was corrected back to who had changed it.
    told = eventually(lambda: f"<- modified ConfigMap {namespace}/made@{changed}\n" in (said := run("why", seen.kubeconfig, "configmap/made", "-n", namespace).stdout)
                      and said, "it is told", 60)
    assert "which was written from here" in told and "<- by " in told.partition(f"made@{changed}\n")[2], told

    lookup = {"apiVersion": "v1", "kind": "Secret", "name": "password", "namespace": namespace}
    seen.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "password", "namespace": namespace}})
    edited = seen.patch("e2e.hangar.dev/v1", kind, "one", {"spec": {"behaviour": "lookup", "lookup": lookup}}, namespace)["metadata"]["resourceVersion"]
    shown(f"<- modified {kind}.e2e.hangar.dev {namespace}/one@{edited}\n")
    shown(f"-> get secrets {namespace}/password: 200 in")
    changed = seen.patch("v1", "Secret", "password", {"stringData": {"key": "other"}}, namespace)["metadata"]["resourceVersion"]
    shown(f"<- modified Secret {namespace}/password@{changed}\n")

    seen.patch("e2e.hangar.dev/v1", kind, "one", {"spec": {"behaviour": "raw", "exitCode": 1}}, namespace)
    shown("<- retry\n")
    seen.delete("e2e.hangar.dev/v1", kind, "one", namespace)
    shown(f"<- deleted {kind}.e2e.hangar.dev {namespace}/one@")


# Workflows -------------------------------------------------------------------------------------------


@pytest.fixture
def order(seen, showing, unique):
    """The namespace of a workflow that creates a ConfigMap, waits for a second one, and creates a third."""
    namespace = f"{unique}-flow"
    seen.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    workflows.allow(seen, namespace)
    workflows.module(seen, namespace, "conductor", workflows.bundle(workflows.CONDUCTOR))
    go = {"apiVersion": "v1", "kind": "ConfigMap", "name": "go", "jsonPath": "{.data.now}"}
    seen.create(workflows.workflow("order", namespace, "conductor", input={"rounds": [
        [makes("made")], [{"type": "WAIT_FOR", "params": go}], [makes("late")]]}))
    eventually(lambda: [one["type"] for one in workflows.status(seen, namespace, "order").get("outbox", [])] == ["WAIT_FOR"], "it waits", COMPILED)
    yield namespace
    seen.delete(*workflows.WORKFLOW, "order", namespace)
    seen.delete("v1", "Namespace", namespace)


def makes(name):
    return {"type": "APPLY", "params": {"manifest": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}}}


def test_steps_of_workflows_are_turns(seen, showing, order, tmp_path):
    def shown(words):
        return eventually(lambda: words in (said := run("timeline", seen.kubeconfig, "workflow/order", "-n", order).stdout) and said, f"{words} is shown", 60)

    own = f"StatefulWorkflow.workflows.example.com {order}/order@"
    text = shown("<- action K8S_RESOURCE_CREATED of APPLY#1: answer to patch configmaps")
    assert f"<- added {own}" in text and "<- host PROVISION\n" in text and "Module sha256:" in text
    assert f"-> patch configmaps {order}/made: 201 in" in text
    assert f"-> patch statefulworkflows.workflows.example.com {order}/order/status: 200 in" in text
    assert f"-> get configmaps {order}/go: 404 in" in text

    # From an object of the workflow back to the creator of the workflow.
    told = run("why", seen.kubeconfig, "configmap/made", "-n", order).stdout
    assert "which was written from here" in told and f"of workflow {order}/order" in told and "<- host PROVISION\n" in told
    assert f"<- added {own}" in told and "<- by " in told.partition(f"<- added {own}")[2], told

    workflows.signal(seen, order, "order", "one", "HURRY")
    signalled = shown("<- signal HURRY")
    assert f"<- signal HURRY: modified {own}" in signalled

    seen.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "go", "namespace": order}, "data": {"now": "yes"}})
    workflows.reaches(seen, order, "order", "done")
    late = shown("; completed")
    assert "<- WAIT_FOR#2 continues" in late and f"-> patch configmaps {order}/late: 201 in" in late
    # The turn that checked the condition again leads to the one that asked for the wait.
    told = run("why", seen.kubeconfig, "configmap/late", "-n", order).stdout
    assert "<- WAIT_FOR#2 continues" in told and "<- action CONDITION_MET of WAIT_FOR#2" in told and f"<- added {own}" in told, told

    name = "statefulworkflows.workflows.example.com/order"
    row = eventually(lambda: guests(seen.kubeconfig, "--window=1h").get((order, name)), "it is in the table", 30)
    assert row["contract"] == "workflow" and row["turns"] >= 5 and row["cpuMicroseconds"] > 0 and row["requests"] >= 5 and row["writtenBytes"] > 0
    assert any(line.split()[:3] == ["workflow", order, "order"] for line in top(seen.kubeconfig, "--window=1h").stdout.splitlines())

    kubeconfig = users.with_token(seen, tmp_path, "viewer", order)
    find_host(seen, f"{order}:viewer")
    users.let(seen, f"{order}:viewer", order, ["get", "list"], ["operators", "configmaps"], groups=("hangar.dev", ""))
    refused = run("timeline", kubeconfig, "workflow/order", "-n", order)
    assert refused.returncode == 1 and f'may not get statefulworkflows.workflows.example.com "order" in namespace "{order}"' in refused.stderr
    assert not guests(kubeconfig, "-n", order, "--window=1h")
    assert f"{order}/order" not in run("why", kubeconfig, "configmap/made", "-n", order).stdout
    users.let(seen, f"{order}:viewer", order, ["get", "list"], ["statefulworkflows"], groups=("workflows.example.com",))
    eventually(lambda: run("timeline", kubeconfig, "workflow/order", "-n", order).returncode == 0, "now he may", 60)
    eventually(lambda: (order, name) in guests(kubeconfig, "-n", order, "--window=1h"), "it is in his table", 60)


# Rights ----------------------------------------------------------------------------------------------


def rights(kubeconfig, name, namespace, *flags):
    return run("rights", kubeconfig, name, "-n", namespace, *flags)


def rules(kubeconfig, name, namespace, *flags):
    """All printed rules, as {(kind, namespace, group, resource): verbs}; empty before the first turn of the guest."""
    done = rights(kubeconfig, name, namespace, "-o", "json", *flags)
    if done.returncode != 0:
        return {}
    roles = [one for one in json.loads(done.stdout)["items"] if one["kind"] in ("Role", "ClusterRole")]
    return {(role["kind"], role["metadata"].get("namespace"), group, resource): rule["verbs"]
            for role in roles for rule in role["rules"] for group in rule["apiGroups"] for resource in rule["resources"]}


@pytest.fixture
def wide(seen, showing, unique):
    """An operator that copies a ConfigMap, and has more rights than it needs."""
    namespace = f"{unique}-wide"
    seen.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
    allow(seen, namespace, *EVERYTHING, resources=("configmaps", "secrets"))
    seen.create(operators.manifest("mirror", namespace, wasm="label_mirror", env=[{"name": "NAMESPACE", "value": namespace}],
                                   sleep={"after": "0s"}))
    seen.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
        "name": "source", "namespace": namespace, "labels": {"mirror-to": "copy"}}, "data": {"step": "0"}})
    copied(seen, namespace, 0)
    yield namespace
    for one in seen.request("GET", seen.path(*OPERATOR, namespace))["items"]:
        seen.delete(*OPERATOR, one["metadata"]["name"], namespace)
    seen.delete("v1", "Namespace", namespace)


def copied(cluster, namespace, step):
    def is_there():
        return ((cluster.get("v1", "ConfigMap", "copy", namespace) or {}).get("data") or {}).get("step") == str(step)
    if step:
        cluster.patch("v1", "ConfigMap", "source", {"data": {"step": str(step)}}, namespace)
    eventually(is_there, f"step {step} is copied", 120)


def test_a_role_of_what_was_used_takes_the_place_of_a_wide_one(seen, showing, wide):
    copied(seen, wide, 1)
    where = ("Role", wide, "", "configmaps")
    used = eventually(lambda: {"watch", "create", "patch"} <= set((found := rules(seen.kubeconfig, "mirror", wide)).get(where, [])) and found,
                      "its use is recorded", 60)
    assert list(used) == [where] and not {"delete", "update"} & set(used[where])
    printed = rights(seen.kubeconfig, "mirror", wide)
    assert printed.returncode == 0 and not printed.stderr
    assert f"# What operator {wide}/mirror has used" in printed.stdout and "# Records go back to 2" in printed.stdout
    assert f"# It asked as ServiceAccount {wide}/default." in printed.stdout
    assert f"#   RoleBinding {wide}/default-configmaps-secrets gives Role default-configmaps-secrets to ServiceAccount default\n" in printed.stdout
    assert "#     secrets: unused get, list, watch, create, update, patch, delete\n" in printed.stdout
    assert "#     configmaps: unused " in printed.stdout and "Refused" not in printed.stdout

    seen.kubectl("apply", "-f", "-", stdin=printed.stdout)
    seen.request("DELETE", f"/apis/rbac.authorization.k8s.io/v1/namespaces/{wide}/rolebindings/default-configmaps-secrets")
    can = ["auth", "can-i", "--namespace", wide, f"--as=system:serviceaccount:{wide}:default"]
    assert seen.kubectl(*can, "patch", "configmaps").strip() == "yes"
    with pytest.raises(subprocess.CalledProcessError):
        seen.kubectl(*can, "get", "secrets")
    copied(seen, wide, 2)
    # The role also has the rights that a restart needs.
    seen.patch(*OPERATOR, "mirror", {"spec": {"env": [{"name": "NAMESPACE", "value": wide}, {"name": "AGAIN", "value": "1"}]}}, wide)
    copied(seen, wide, 3)
    assert "Refused" not in rights(seen.kubeconfig, "mirror", wide).stdout
    # Another operator with the same ServiceAccount sends a request beyond the role.
    seen.create(operators.manifest("beyond", wide, f"request=DELETE,/api/v1/namespaces/{wide}/configmaps/copy,",
                                   f"get=/api/v1/namespaces/{wide}/configmaps/copy", "wait"))
    refused = eventually(lambda: "Refused:" in (said := rights(seen.kubeconfig, "beyond", wide).stdout) and said, "its request was refused", 120)
    assert re.search(rf"^#   delete configmaps in namespace {wide}: (\d+) of \1 requests, last at .*; not in these roles$", refused, re.M), refused
    assert seen.get("v1", "ConfigMap", "copy", wide) is not None
    assert f"the rights that they use are not listed: {wide}/mirror." in refused
    assert "delete" not in rules(seen.kubeconfig, "beyond", wide).get(where, [])


def test_rights_are_shown_as_far_as_the_user_may_read(seen, showing, teams, tmp_path):
    mine, _ = teams
    answered(seen.kubeconfig, mine)
    kubeconfig = users.with_token(seen, tmp_path, "viewer", mine)
    find_host(seen, f"{mine}:viewer")
    refused = rights(kubeconfig, "reader", mine)
    assert refused.returncode == 1 and f'may not get operators.hangar.dev "reader" in namespace "{mine}"' in refused.stderr

    users.let(seen, f"{mine}:viewer", mine, ["get"], ["operators"])
    shown = eventually(lambda: (done := rights(kubeconfig, "reader", mine, "--names")).returncode == 0 and done.stdout, "now he may", 60)
    # The output has neither the rights of the ServiceAccount nor the name of the Secret.
    assert "# What else it has was not read: ClusterRoleBindings: " in shown
    assert f"# What else it has was not read: RoleBindings of namespace {mine}: " in shown
    assert "password" not in shown and rules(kubeconfig, "reader", mine) == {("Role", mine, "", "secrets"): ["get"]}
    by_name = json.loads(rights(seen.kubeconfig, "reader", mine, "--names", "--role=reader", "-o", "json").stdout)["items"]
    assert [one["metadata"]["name"] for one in by_name] == ["reader", "reader"]
    assert by_name[0]["rules"] == [{"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["password"], "verbs": ["get"]}]
    assert rights(seen.kubeconfig, "reader", mine, "--role=a/b").returncode == 2
    assert rights(seen.kubeconfig, "nobody", mine).returncode == 1


def test_rights_of_a_workflow_are_its_accounts(seen, showing, order):
    name = "workflow/order"
    where = ("Role", order, "", "configmaps")
    eventually(lambda: set(rules(seen.kubeconfig, name, order).get(where, [])) == {"get", "create", "patch"}, "its steps are recorded", 60)
    printed = rights(seen.kubeconfig, name, order).stdout
    # The host writes the workflow's status, which is not a right of its ServiceAccount.
    assert f"What workflow {order}/order has used" in printed and "resources:\n  - statefulworkflows" not in printed
    assert "statefulworkflows" not in json.dumps(list(rules(seen.kubeconfig, name, order)))
