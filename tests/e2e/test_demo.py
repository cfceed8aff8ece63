"""`hangar demo` from an installation: it shows everything, removes everything, and leaves other clusters and hosts alone."""
import json
import os
import pty
import re
import signal
import subprocess
import urllib.request

import pytest

import consoles
import terminals
import users
from airways import GUESTS
from cluster import ROOT, Cluster, eventually
from host import BINARY, free_port

# What the demonstration may not leave behind, and must not change.
WATCHED = ("namespaces", "customresourcedefinitions", "clusterroles", "clusterrolebindings", "mutatingwebhookconfigurations",
           "validatingwebhookconfigurations", "validatingadmissionpolicies", "validatingadmissionpolicybindings", "apiservices", "persistentvolumes")
SHOWN = ("1. 100 operators, asleep", "It took", "2. An Airway", "pipeline nightly says: all jobs have completed", "3. A workflow",
         "healthChecking -> ready on HEALTH_CHECK_PASSED", "That is it\n  100 operators, an Airway and a workflow run in one host")


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """`make install` of the programs under test."""
    root = tmp_path_factory.mktemp("installed")
    subprocess.run(["make", "-C", ROOT, "--old-file=build", "install", f"BIN={BINARY.parent}", f"GUESTS={GUESTS}", f"DESTDIR={root}", "PREFIX=/usr"],
                   check=True, stdout=subprocess.DEVNULL)
    yield root / "usr"
    # As large as the programs.
    for program in (root / "usr/bin").iterdir():
        program.unlink()


@pytest.fixture(scope="module")
def bare():
    """A cluster that has nothing of hangar, and simulated nodes."""
    made = Cluster("--with-kcm", "--with-scheduler", "--with-kwok=1")
    yield made
    made.close()


def with_ctrl_c():
    """A shell in the background has the signal ignored for all that it starts, and bash then cannot trap it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture
def demo(installed, bare, tmp_path):
    """Starts the command, with a terminal as its standard input if there are keys for it."""
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    tools = os.path.dirname(bare.env["HANGAR_CP_KUBECTL"])

    def start(*arguments, kubeconfig=bare.kubeconfig, stdin=subprocess.DEVNULL, path=f"{tools}:/usr/bin:/bin"):
        environment = {"PATH": path, "HOME": str(tmp_path), "TMPDIR": str(temporary), "KUBECONFIG": str(kubeconfig)}
        output = open(tmp_path / "output", "w+")
        process = subprocess.Popen([installed / "bin/hangar", "demo", *arguments], stdin=stdin, stdout=output, stderr=output, env=environment,
                                   start_new_session=True, preexec_fn=with_ctrl_c)
        process.said = lambda: (tmp_path / "output").read_text()
        started.append((process, output))
        return process
    started = []
    yield start
    for process, output in started:
        if process.poll() is None:
            process.terminate()
            process.wait(120)
        output.close()
    assert list(temporary.iterdir()) == [] or any(process.returncode not in (0, 130) for process, _ in started)


def state_of(cluster):
    listed = cluster.kubectl("get", ",".join(WATCHED), "-o", 'go-template={{range .items}}{{.kind}}/{{.metadata.name}} {{.metadata.uid}}{{"\\n"}}{{end}}')
    # The API server makes one for each group of CustomResourceDefinitions, and removes it at its leisure.
    return sorted(line for line in listed.splitlines() if not re.match("APIService/v.*(hangar|yoke|example|amurant)", line))


def ended(process, seconds=600):
    process.wait(seconds)
    return process.returncode, process.said()


def hosts_of(process):
    """The processes of its hosts, which have sessions of their own."""
    listed = subprocess.run(["ps", "-eo", "pid=,args="], check=True, stdout=subprocess.PIPE, text=True).stdout
    return [line for line in listed.splitlines() if f"{process.args[0]} host " in line]


def test_it_shows_all_with_the_rights_that_it_names_and_leaves_nothing(bare, installed, demo, tmp_path):
    bare.kubectl("create", "-f", str(installed / "share/hangar/demo/rights.yaml"))
    bare.kubectl("create", "clusterrolebinding", "presenter", "--clusterrole=hangar-demo", "--user=presenter")
    before = state_of(bare)

    process = demo(kubeconfig=users.with_certificate(bare, tmp_path, "presenter"))
    code, said = ended(process)

    assert code == 0, said
    assert [text for text in SHOWN if text not in said] == []
    assert "forbidden" not in said
    assert state_of(bare) == before
    assert hosts_of(process) == []


def test_without_a_right_it_says_which_and_changes_nothing(bare, demo, tmp_path):
    bare.kubectl("create", "clusterrole", "onlooker", "--verb=get,list", "--resource=leases.coordination.k8s.io,namespaces,customresourcedefinitions.apiextensions.k8s.io")
    bare.kubectl("create", "clusterrolebinding", "onlooker", "--clusterrole=onlooker", "--user=onlooker")
    before = state_of(bare)

    code, said = ended(demo(kubeconfig=users.with_certificate(bare, tmp_path, "onlooker")))

    assert code == 1 and "rights are not enough" in said and "clusterroles" in said, said
    assert state_of(bare) == before


def test_after_ctrl_c_nothing_is_left(bare, demo):
    before = state_of(bare)
    process = demo()
    eventually(lambda: bare.kubectl("get", "airways.yoke.cd", "--ignore-not-found", "-o", "name") if "2. An Airway" in process.said() else None,
               "it has made an Airway", 300)
    os.killpg(process.pid, signal.SIGINT)
    code, said = ended(process)

    assert code == 130, said
    assert state_of(bare) == before, said
    assert hosts_of(process) == []


def test_what_a_killed_one_has_left_is_removed(bare, demo):
    before = state_of(bare)
    process = demo()
    eventually(lambda: "pipeline.examples.com/nightly created" in process.said(), "it has made a pipeline", 300)
    process.kill()
    process.wait()
    eventually(lambda: hosts_of(process) == [], "its host ends, too", 60)
    assert state_of(bare) != before

    code, said = ended(demo("--clean"))
    assert code == 0, said
    assert state_of(bare) == before, said
    code, said = ended(demo("--clean"))
    assert code == 0 and "no remains of a demonstration" in said, said


def test_on_a_cluster_of_its_own_it_ends_with_how_to_open_the_console(installed, tmp_path):
    """As `make demo` runs it, on a terminal."""
    cluster = Cluster("--with-kcm", "--with-scheduler", "--with-kwok=3")
    terminal = terminals.Terminal()
    tools = os.path.dirname(cluster.env["HANGAR_CP_KUBECTL"])
    environment = {"PATH": f"{tools}:/usr/bin:/bin", "HOME": str(tmp_path), "KUBECONFIG": str(cluster.kubeconfig), "HANGAR_DEMO_PORT": str(free_port())}
    (tmp_path / "state").mkdir()
    process = subprocess.Popen([installed / "share/hangar/demo/show.sh", "--hangar", installed / "bin/hangar", "--state", tmp_path / "state", "--own-cluster"],
                               stdin=terminal.side, stdout=terminal.side, stderr=terminal.side, env=environment, start_new_session=True, preexec_fn=with_ctrl_c)
    try:
        eventually(lambda: process.poll() is not None or "Press Enter to end it." in terminal.shown(), "it has shown everything", 600)
        lines = [line.strip() for line in terminal.shown().splitlines()]
        (exported,) = [line for line in lines if line.startswith("export KUBECONFIG=")]
        (console,) = [line for line in lines if line.startswith("hangar console ")]
        # As a person would, in another terminal, but without a browser.
        opened = subprocess.Popen(["bash", "-c", f"{exported}\nexec {console.replace('console', 'console --no-open')}"], stdout=subprocess.PIPE,
                                  text=True, env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)})
        try:
            port, key = re.search(r"http://127\.0\.0\.1:(\d+)/#key=([0-9a-f]{64})", opened.stdout.readline()).groups()

            def answer(path):
                asked = urllib.request.Request(f"http://127.0.0.1:{port}{path}", headers={consoles.KEY_HEADER: key})
                with urllib.request.urlopen(asked, timeout=60) as found:
                    return json.load(found)
            assert len(answer("/api/cluster/apis/hangar.dev/v1alpha1/operators")["items"]) == 100
            assert len(answer("/api/top?window=600")["guests"]) > 100, "the host shows its records"
        finally:
            opened.terminate()
            opened.wait(60)
            opened.stdout.close()
        terminal.press("\n")
        assert process.wait(120) == 0, terminal.shown()
    finally:
        if process.poll() is None:
            process.terminate()
            process.wait(120)
        terminal.close()
        cluster.close()


def elsewhere(cluster, path):
    """A kubeconfig by whose address the cluster is not on this machine."""
    config = json.loads(cluster.kubectl("config", "view", "--raw", "--flatten", "-o", "json"))
    place = config["clusters"][0]["cluster"]
    place |= {"server": place["server"].replace("127.0.0.1", "0.0.0.0"), "tls-server-name": "localhost"}
    path.write_text(json.dumps(config))
    return path


def test_it_asks_before_it_changes_a_cluster_elsewhere(bare, demo, tmp_path):
    before = state_of(bare)
    kubeconfig = elsewhere(bare, tmp_path / "elsewhere.json")

    code, said = ended(demo(kubeconfig=kubeconfig))
    assert code == 2 and "not on this machine: give --yes" in said, said

    controller, terminal = pty.openpty()
    os.write(controller, b"n\n")
    code, said = ended(demo(kubeconfig=kubeconfig, stdin=terminal))
    os.close(controller)
    os.close(terminal)
    assert code == 1 and "Use it? [y/N]" in said and "nothing was changed" in said, said
    assert state_of(bare) == before


def test_it_does_not_disturb_a_host_or_objects_of_others(bare, demo):
    before = state_of(bare)
    bare.create({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "hangar", "namespace": "default"},
                 "spec": {"holderIdentity": "node-7-\x1b[31mboot_12", "leaseDurationSeconds": 15}})
    code, said = ended(demo())
    assert code == 1 and "node-7-[31mboot_12 has the Lease default/hangar" in said, said
    bare.kubectl("delete", "lease", "hangar")

    # A label alone makes nothing the demonstration's.
    bare.kubectl("create", "namespace", "theirs")
    bare.kubectl("label", "namespace", "theirs", "hangar-demo=ring")
    bare.apply_crds(ROOT / "deploy/crds/airways.yoke.cd.yaml")
    theirs = {"apiVersion": "yoke.cd/v1alpha1", "kind": "Airway", "metadata": {"name": "others.example.org"}, "spec": {
        "wasmUrls": {"flight": "oci://registry.example.org/other:v1"},
        "template": {"group": "example.org", "scope": "Namespaced", "names": {"plural": "others", "singular": "other", "kind": "Other"},
                     "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}]}}}
    eventually(lambda: bare.create(theirs), "the API server serves Airways")
    code, said = ended(demo())
    assert code == 1 and "airways.yoke.cd -/others.example.org" in said, said
    code, said = ended(demo("--clean"))
    assert code == 0 and "no remains of a demonstration" in said, said
    assert bare.get("yoke.cd/v1alpha1", "Airway", "others.example.org") is not None

    bare.kubectl("delete", "namespace", "theirs")
    bare.kubectl("delete", "airway", "others.example.org")
    bare.kubectl("delete", "customresourcedefinition", "airways.yoke.cd")
    assert state_of(bare) == before


def test_it_says_what_is_missing(demo, installed, tmp_path):
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("bash", "dirname", "realpath", "env"):
        (tools / name).symlink_to(f"/usr/bin/{name}")
    code, said = ended(demo(path=str(tools)))
    assert code == 1 and "kubectl is not in PATH. Install it" in said, said

    code, said = ended(demo("--directory", str(tmp_path)))
    assert code == 1 and f"--directory: there is no {tmp_path}/show.sh" in said, said

    alone = tmp_path / "bin"
    alone.mkdir()
    os.link(installed / "bin/hangar", alone / "hangar")
    done = subprocess.run([alone / "hangar", "demo"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    assert done.returncode == 1 and f"there is no {tmp_path}/share/hangar/demo/show.sh" in done.stdout
