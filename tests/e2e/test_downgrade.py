"""A host of an older version takes over from this one, on the same cluster and cache directory, and gives back to it.

`tests/downgrade/run.sh` runs this; HANGAR_OLDER_BIN_DIR names the programs of the older version. The CRDs stay those of this version, as
docs/operating/lifecycle.md says.
"""
import os
import pathlib
import subprocess

import pytest

import flights
import operators
import workflows
from airways import airway, flight, instance
from cluster import ApiError, eventually, is_ready, when_compiled
from conftest import COMPILED
from host import BINARY, Host, free_port
from webhooks import CONFIGURATION, authorities_of, wait_registered, webhook_flags

OLDER = pathlib.Path(os.environ["HANGAR_OLDER_BIN_DIR"]) / "hangar"
GROUP = "downgrade.hangar.dev"
AIRWAY = ("yoke.cd/v1alpha1", "Airway")
PLANE, GUARD = (f"{GROUP}/v1", "Plane"), (f"{GROUP}/v1", "Guard")
CRD = ("apiextensions.k8s.io/v1", "CustomResourceDefinition")
# The namespace of the hosts: of the Lease, and of the Secret with the webhooks' certificate.
HOSTS = "default"
# More than this test makes, so that no revision is removed in it.
REVISIONS = 20
SOMEBODY = {"Impersonate-User": "somebody", "Impersonate-Group": "system:masters"}


class Hosts(Host):
    """One host after the other, of any version, with the same flags and cache directory."""

    program = BINARY

    def start(self, wait=True):
        self._command[0] = str(self.program)
        super().start(wait)

    def hand_over_to(self, program, meanwhile):
        assert self.stop() == 0, f"{self.program} did not end cleanly:\n{self.tail()}"
        meanwhile()
        self.program = program
        self.start()


def uids(cluster, namespace):
    """What has to outlive a change of the version: (kind, name) -> uid."""
    places = [(kind, namespace, None) for kind in (
        ("v1", "ConfigMap"), ("v1", "Secret"), PLANE, GUARD, flights.FLIGHT, operators.OPERATOR, workflows.WORKFLOW, workflows.REVISION)]
    places += [(AIRWAY, None, None), (CRD, None, None), (("v1", "Secret"), HOSTS, None), (workflows.REVISION, HOSTS, None)]
    places += [((CONFIGURATION[0], kind), None, "hangar.dev/kept-by") for kind in (
        CONFIGURATION[1], "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")]
    return {(kind[1], one["metadata"]["name"]): one["metadata"]["uid"]
            for kind, place, selector in places for one in cluster.list(*kind, place, selector)}


class World:
    """One of each, made under the first host. `goes_on` changes all of it: each number once, in their order."""

    def __init__(self, cluster, namespace, host):
        self.cluster, self.namespace, self.host = cluster, namespace, host
        for kind in (PLANE, GUARD):
            cluster.learn(*kind, f"{kind[1].lower()}s")
            mode = "static" if kind == GUARD else "standard"
            when_compiled(lambda: cluster.create(airway(f"{kind[1].lower()}s", kind[1], flight("behave"), group=GROUP, mode=mode, historyCapSize=REVISIONS)))
            eventually(lambda: is_ready(cluster.get(*AIRWAY, f"{kind[1].lower()}s.{GROUP}")), f"the Airway of {kind[1]} is Ready", COMPILED)
            wait_registered(cluster, HOSTS, f"{kind[1].lower()}s.{GROUP}")
            when_compiled(lambda: cluster.create(instance(kind[1], kind[1].lower(), {"behaviour": "basic", "data": {"round": "0"}}, namespace, GROUP)))
        flights.allow(cluster, namespace, *operators.EVERYTHING)
        self.flights = flights.Flights(cluster, namespace)
        when_compiled(lambda: self.flights.create("web", "basic", does={"data": {"round": "0"}}, historyCapSize=REVISIONS))
        cluster.create(operators.manifest("watcher", namespace, f"watch={namespace}", sleep={"after": "0s"}))
        workflows.allow(cluster, namespace, ("", "configmaps"))
        workflows.module(cluster, namespace, "machine", workflows.bundle("responder"))
        cluster.create(workflows.workflow("responder", namespace, "machine", input={"answer": "answer"}))
        self.run = workflows.reaches(cluster, namespace, "responder", "waiting", COMPILED)["run"]

    def data(self, name):
        return (self.cluster.get("v1", "ConfigMap", name, self.namespace) or {}).get("data")

    def change(self, kind, number):
        """By somebody who waits until the webhooks answer."""
        when_compiled(lambda: self.cluster.patch(*kind, kind[1].lower(), {"spec": {"data": {"round": number}}}, self.namespace))

    def ask(self, number):
        """The machine answers only a number larger than all that it remembers."""
        workflows.signal(self.cluster, self.namespace, "responder", f"ask-{number}", {"type": "ASK", "number": number})

    def goes_on(self, number):
        """`ask` has asked this number."""
        cluster, namespace, text = self.cluster, self.namespace, str(number)
        for kind in (PLANE, GUARD):
            self.change(kind, text)
            eventually(lambda: self.data(kind[1].lower()) == {"round": text}, f"the {kind[1]} has its new resource", 60)
            eventually(lambda: is_ready(cluster.get(*kind, kind[1].lower(), namespace)), f"the {kind[1]} is Ready", 60)
        self.refuses_what_it_has_to()
        when_compiled(lambda: self.flights.behave("web", "basic", data={"round": text}))
        eventually(lambda: self.data("web") == {"round": text}, "the Flight has its new resource", 60)
        self.flights.ready("web")

        operators.create_config_map(cluster, f"seen-{number}", namespace)
        # Each host starts it again, so this is on its list (added) or a change.
        seen = {f"added seen-{number}", f"changed seen-{number}"}
        eventually(lambda: seen & set(operators.lines(self.host, "watcher", namespace)), "the operator sees what is new", COMPILED)
        eventually(lambda: operators.phase(cluster.get(*operators.OPERATOR, "watcher", namespace)) == "Asleep", "and sleeps again", 60)

        eventually(lambda: self.data("answer") == {"number": text}, "the workflow answers", COMPILED)
        assert workflows.reaches(cluster, namespace, "responder", "waiting")["run"] == self.run, "it did not start again"
        assert self.host.metrics().get("hangar_loop_exceptions_total", 0) == 0

    def refuses_what_it_has_to(self):
        with pytest.raises(ApiError, match="why not"):
            self.cluster.create(instance("Plane", "refused", {"behaviour": "basic", "exitCode": 1, "stderr": "why not"}, self.namespace, GROUP))
        with pytest.raises(ApiError, match="cannot modify flight sub-resources"):
            self.cluster.request("PATCH", self.cluster.path("v1", "ConfigMap", self.namespace, "guard") + "?dryRun=All", {"data": {"round": "forged"}},
                                 "application/merge-patch+json", SOMEBODY)

    def is_deleted(self):
        self.flights.delete("web")
        self.flights.goes("web")
        for kind in (PLANE, GUARD):
            self.cluster.delete(*AIRWAY, f"{kind[1].lower()}s.{GROUP}")
        for kind in (PLANE, GUARD):
            eventually(lambda: self.cluster.get(*AIRWAY, f"{kind[1].lower()}s.{GROUP}") is None, f"the Airway of {kind[1]} is gone", 60)
        assert not [name for name in ("plane", "guard", "web") if self.data(name)], "what was made went with it"


def is_protected(world):
    """A policy comes into force a moment after its Airway is Ready."""
    try:
        world.refuses_what_it_has_to()
    except (AssertionError, pytest.fail.Exception):
        world.cluster.delete(*PLANE, "refused", world.namespace)
        return False
    return True


def reads_the_records(program, host, namespace):
    """The table of turns, or the words that say which versions of the files the program reads."""
    done = subprocess.run([str(program), "timeline", "watcher", "-n", namespace, f"--module-cache-dir={host.directory / 'cache'}"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
    return done.returncode == 0 or "reads versions" in done.stderr


@pytest.fixture
def host(own_cluster, tmp_path):
    one = Hosts(own_cluster.kubeconfig, tmp_path / "host", "--leader-elect",
                *webhook_flags(free_port(), HOSTS, features="airways,flights,operators,workflows"))
    yield one
    if one.process.poll() is None:
        one.kill()


def test_an_older_host_goes_on_and_gives_back(own_cluster, own_namespace, host):
    for name in ("hangar-airways", "hangar-flights"):
        wait_registered(own_cluster, HOSTS, name)
    world = World(own_cluster, own_namespace, host)
    eventually(lambda: is_protected(world), "webhooks and policies are in force", 60)
    world.ask(1)
    world.goes_on(1)

    for number, program in ((2, OLDER), (3, BINARY)):
        before, authorities = uids(own_cluster, own_namespace), authorities_of(own_cluster, HOSTS)
        # The workflow has work to do when the other host starts.
        host.hand_over_to(program, meanwhile=lambda number=number: world.ask(number))
        world.goes_on(number)
        after = uids(own_cluster, own_namespace)
        assert {key: after.get(key) for key in before} == before, f"{program} made something again"
        assert authorities_of(own_cluster, HOSTS) == authorities, "what trusted the webhooks still does"
        assert reads_the_records(program, host, own_namespace)

    world.is_deleted()
    assert host.stop() == 0
