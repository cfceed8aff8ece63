"""Requests of operators to other servers: a Go program with its own http.Client, built by `hangar build go`, and an https server."""
import http.server
import json
import ssl
import subprocess
import threading

import pytest

from airways import GUESTS
from cluster import KINDS, ApiError, eventually
from confined import mounting
from conftest import COMPILED
from host import BINARY, Host, to_its_end
from operators import OPERATOR, events_of, lines

POLICY = ("hangar.dev/v1alpha1", "TenantPolicy")
KINDS[POLICY] = ("/apis/hangar.dev/v1alpha1", "tenantpolicies", False)
LABEL = "kubernetes.io/metadata.name"
MIB = 1024 * 1024
AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt"

# One line for each argument "METHOD URL [BODY]": the status with what the server says, or the error. "MANY URL COUNT": so many at a time.
MAIN = r"""package main

import (
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"
)

func ask(client *http.Client, method, url, body string) string {
	request, err := http.NewRequest(method, url, strings.NewReader(body))
	if err != nil {
		return "error " + err.Error()
	}
	request.Header.Set("Authorization", "Bearer of-the-guest")
	answer, err := client.Do(request)
	if err != nil {
		return "error " + err.Error()
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return "error " + err.Error()
	}
	return fmt.Sprintf("%d location=%q own=%q %s", answer.StatusCode, answer.Header.Get("Location"), answer.Header.Get("X-Own"), text)
}

func main() {
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	client := &http.Client{Transport: &http.Transport{}, CheckRedirect: stay}
	blind := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	for _, step := range os.Args[1:] {
		parts := append(strings.SplitN(step, " ", 3), "")
		if parts[0] == "MANY" {
			// So many at a time. Nobody waits for them.
			count, _ := strconv.Atoi(parts[2])
			for range count {
				go ask(client, "POST", parts[1], "")
			}
		} else if parts[0] == "BLIND" {
			fmt.Println(ask(blind, "GET", parts[1], ""))
		} else {
			fmt.Println(ask(client, parts[0], parts[1], parts[2]))
		}
	}
	fmt.Println("done")
	for {
		time.Sleep(time.Hour)
	}
}
"""

pytestmark = pytest.mark.xdist_group("outbound")


class Server(http.server.ThreadingHTTPServer):
    """Answers with what it was asked; `asked` has the paths."""
    daemon_threads = True

    def __init__(self, certificate, key, address="127.0.0.1", port=0):
        super().__init__((address, port), Answers)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.socket = context.wrap_socket(self.socket, server_side=True)
        self.asked = []
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.serve_forever, daemon=True)
        self.thread.start()

    def handle_error(self, request, address):
        pass  # Clients go before a slow answer comes.


class Answers(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
        self.server.asked.append(self.path)
        status, text, location = 200, json.dumps({"method": self.command, "body": body, "authorization": self.headers.get("Authorization"),
                                                  "host": self.headers.get("Host").split(":")[0]}), None
        if self.path == "/large":
            text = "x" * (8 * MIB + 1)
        elif self.path == "/slow":
            self.server.ended.wait()
        elif self.path == "/redirect":
            status, location = 302, "/elsewhere"
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.send_header("X-Own", "kept")
        self.send_header("Hangar-Error", "forged")
        if location:
            self.send_header("Location", location)
        self.end_headers()
        self.wfile.write(text.encode())

    do_GET = do_POST = answer

    def log_message(self, *arguments):
        pass


@pytest.fixture(scope="module")
def cluster(own_cluster):
    return own_cluster


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    directory = tmp_path_factory.mktemp("certificate")
    key, made = directory / "key.pem", directory / "certificate.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj", "/CN=acme",
                    "-addext", "subjectAltName=DNS:acme.example.org,DNS:other.example.org", "-keyout", key, "-out", made], check=True,
                   stderr=subprocess.DEVNULL)
    return made, key


@pytest.fixture(scope="module")
def server(certificate):
    made = Server(*certificate)
    yield made
    made.ended.set()
    made.shutdown()
    made.server_close()


@pytest.fixture(scope="module")
def host(cluster, certificate, tmp_path_factory):
    """A host that knows the server's names and trusts its certificate, and may reach loopback where a policy allows private addresses."""
    directory = tmp_path_factory.mktemp("outbound")
    names = "127.0.0.1 localhost acme.example.org other.example.org untrusted.example.org\n10.9.8.7 intranet.example.org\n"
    yield from to_its_end(start_host(cluster, directory, certificate, names))


def start_host(cluster, directory, certificate, names, *flags):
    """A host for which /etc/hosts has these names."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "hosts").write_text(names)
    mounts = (f"mount --bind {directory / 'hosts'} /etc/hosts && "
              f"{{ [ ! -e {AUTHORITIES} ] || mount --bind {certificate[0]} {AUTHORITIES}; }}")
    return Host(cluster.kubeconfig, directory / "host", "--outbound-address-allow-list=127.0.0.0/8", *flags,
                env={"SSL_CERT_FILE": str(certificate[0]), "NO_PROXY": "*", "no_proxy": "*"},
                inside=mounting(mounts))


@pytest.fixture(scope="module")
def asker(tmp_path_factory):
    source = tmp_path_factory.mktemp("asker")
    (source / "go.mod").write_text("module example.com/asker\n\ngo 1.24\n")
    (source / "main.go").write_text(MAIN)
    done = subprocess.run([str(BINARY), "build", "go", ".", "-o", str(GUESTS / "asker.wasm")], cwd=source, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr


@pytest.fixture
def policy(cluster, host, namespace):
    made = []

    def apply(name, **outbound):
        made.append(f"{namespace}-{name}")
        cluster.apply({"apiVersion": POLICY[0], "kind": POLICY[1], "metadata": {"name": made[-1]},
                       "spec": {"namespaceSelector": {"matchLabels": {LABEL: namespace}}, "outbound": outbound}})
        present = len(cluster.request("GET", "/apis/hangar.dev/v1alpha1/tenantpolicies")["items"])
        eventually(lambda: host.metrics()["hangar_tenant_policies"] == present, "the host knows the policy", 30)
        return made[-1]

    yield apply
    for name in made:
        cluster.delete(*POLICY, name)


@pytest.fixture
def ask(host, namespace, operator, asker):
    """Runs the program with these steps and returns its lines."""
    def run(*steps):
        operator("asker", *steps, wasm="asker", limits={"memory": "256Mi"})
        said = eventually(lambda: (lambda all_lines: all_lines if "done" in all_lines else None)(lines(host, "asker", namespace)),
                          "all requests are answered", COMPILED)
        assert said[-1] == "done"
        return said[:-1]
    return run


def refusals(cluster, namespace):
    return [event["message"] for event in events_of(cluster, "asker", namespace) if event["reason"] == "RequestRefused"]


def test_a_server_that_a_policy_lists_is_asked_and_no_other(cluster, host, namespace, policy, ask, server):
    port = server.server_port
    name = policy("servers", hosts=[f"acme.example.org:{port}"], privateAddresses=True)
    server.asked.clear()

    got, posted, redirected, plain, blind, other, other_port = ask(
        f"GET https://acme.example.org:{port}/a?b=c", f"POST https://ACME.example.org:{port}/b some text",
        f"GET https://acme.example.org:{port}/redirect", f"GET http://acme.example.org:{port}/c", f"BLIND https://acme.example.org:{port}/d",
        f"GET https://other.example.org:{port}/e", "GET https://acme.example.org/f")

    assert got.startswith('200 location="" own="kept" ')
    assert json.loads(got.split(" ", 3)[3]) == {"method": "GET", "body": "", "authorization": "Bearer of-the-guest", "host": "acme.example.org"}
    assert json.loads(posted.split(" ", 3)[3])["body"] == "some text"
    assert redirected.startswith('302 location="/elsewhere"')
    assert "only https" in plain
    assert "InsecureSkipVerify" in blind
    assert f"hangar: requests to other.example.org:{port} are not allowed here: TenantPolicy {name} does not list it" in other
    assert f"hangar: requests to acme.example.org are not allowed here: TenantPolicy {name} does not list it" in other_port
    assert server.asked == ["/a?b=c", "/b", "/redirect"]
    told = eventually(lambda: refusals(cluster, namespace), "an Event says so", 60)
    assert told == [f"requests to other.example.org:{port} are not allowed here: TenantPolicy {name} does not list it: it allows acme.example.org:{port}"]
    metrics = host.metrics()
    assert metrics[f'hangar_operator_outbound_requests_total{{namespace="{namespace}",result="answered"}}'] == 3
    assert metrics[f'hangar_operator_outbound_requests_total{{namespace="{namespace}",result="refused"}}'] == 2


def test_without_a_policy_no_server_is_asked(cluster, namespace, ask, server):
    server.asked.clear()
    [said] = ask(f"GET https://acme.example.org:{server.server_port}/")
    assert "no TenantPolicy lists servers for this namespace" in said
    assert server.asked == []
    eventually(lambda: refusals(cluster, namespace), "an Event says so", 60)


def test_private_addresses_need_the_policy_and_the_host(namespace, policy, ask, server):
    port = server.server_port
    policy("public", hosts=[f"acme.example.org:{port}"])
    server.asked.clear()
    [said] = ask(f"GET https://acme.example.org:{port}/")
    assert f"requests to acme.example.org:{port} are not allowed here: its address is private" in said
    assert server.asked == []


def test_a_policy_does_not_reach_further_than_the_host_allows(namespace, policy, ask):
    policy("private", hosts=["intranet.example.org"], privateAddresses=True)
    [said] = ask("GET https://intranet.example.org/")
    assert "requests to intranet.example.org are not allowed here: its address is private" in said


def test_answers_that_are_large_late_or_of_somebody_else_are_errors(namespace, policy, ask, server):
    port = server.server_port
    policy("servers", hosts=[f"*.example.org:{port}"], privateAddresses=True)
    large, slow, untrusted, again = ask(
        f"GET https://acme.example.org:{port}/large", f"GET https://acme.example.org:{port}/slow", f"GET https://untrusted.example.org:{port}/",
        f"GET https://acme.example.org:{port}/")
    assert "a body of more than 8388608 bytes" in large
    assert "timed out" in slow
    assert untrusted.startswith("error ") and "hangar: " in untrusted
    assert again.startswith("200 ")


def test_a_policy_that_cannot_be_meant_is_refused(cluster, namespace, policy):
    for hosts in (["https://acme.example.org"], ["*"], ["acme.example.org/path"], ["a,b"]):
        with pytest.raises(ApiError, match="spec.outbound.hosts"):
            policy("wrong", hosts=hosts)
