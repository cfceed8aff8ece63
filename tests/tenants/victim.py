"""The tenant under attack: an operator, a workflow and an Airway's instance, each of which answers a question.

A question is a number. The operator is asked by a change of ConfigMap `question`, the workflow by a signal, the instance by
its spec; each answers with a ConfigMap. A round asks all three and waits for all three answers, so a lost answer is a round
that never ends. It also has the host review a further instance, as a dry run.
"""
import gzip
import itertools
import pathlib
import secrets
import threading
import time

import operators
import workflows
from airways import OPEN_SCHEMA, flight
from cluster import KINDS, ApiError, condition, eventually, is_ready
from stage import NAMESPACE, config_map, make_namespace

GREETING = ("tenants.hangar.dev/v1", "Greeting")
KINDS[GREETING] = ("/apis/tenants.hangar.dev/v1", "greetings", True)
CONFIG_MAP = ("v1", "ConfigMap")
# Seconds after which an answer counts as lost. Far more than any tenant may have to wait: the benchmark measures
# long waits.
PATIENCE = 120


class Answers(threading.Thread):
    """The content of a namespace's ConfigMaps, and when it came, by a watch of its own."""

    def __init__(self, cluster, namespace):
        super().__init__(daemon=True)
        self._cluster, self._path = cluster, cluster.path(*CONFIG_MAP, namespace)
        self._version = cluster.request("GET", self._path)["metadata"]["resourceVersion"]
        self._changed = threading.Condition()
        self._seen = {}
        self.start()

    def run(self):
        while True:
            try:
                for event in self._cluster.watch(self._path, self._version):
                    self._version = event["object"]["metadata"].get("resourceVersion", self._version)
                    with self._changed:
                        self._seen[event["object"]["metadata"].get("name")] = (event["object"].get("data", {}), time.monotonic())
                        self._changed.notify_all()
            except OSError:
                time.sleep(0.1)

    def when(self, name, key, value, deadline):
        """The time at which that ConfigMap had that content, or None."""
        def said():
            data, at = self._seen.get(name, ({}, None))
            return at if data.get(key) == value else None
        with self._changed:
            self._changed.wait_for(said, max(0, deadline - time.monotonic()))
            return said()


class Victim:
    # The victim's private objects.
    
    def __init__(self, stage, patience=PATIENCE):
        self.stage, self.cluster, self.patience = stage, stage.cluster, patience
        self.namespace = "victim"
        # A word in all private objects.
        self.mark = f"mark-{secrets.token_hex(8)}"
        self._numbers = itertools.count(1)
        self._operators = itertools.count(1)
        # Words of the API server about reviews that it did not get. The victim tries again, as a user would.
        self.unanswered_reviews = []
        cluster, namespace = self.cluster, self.namespace
        stage.add_tenant(namespace)
        operators.allow(cluster, namespace, *operators.EVERYTHING)
        cluster.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "private", "namespace": namespace},
                        "stringData": {self.mark: self.mark}})
        cluster.create(config_map("private", namespace, **{self.mark: self.mark}))
        self.module = gzip.compress(private_module(self.mark))
        cluster.create(config_map("module", namespace, {"module.wasm.gz": self.module}))
        cluster.create(config_map("machine", namespace, **{"machine.js": f"// {self.mark}\n{workflows.bundle('responder')}"}))
        cluster.create(config_map("question", namespace, number="0"))
        # Other objects of the cluster; the host's cache has them, too.
        make_namespace(cluster, "bulk")
        for index in range(40):
            cluster.create(config_map(f"bulk-{index:02}", "bulk", text=self.mark + "x" * 300_000))
            cluster.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"bulk-{index:02}", "namespace": "bulk"},
                            "stringData": {"text": self.mark + "x" * 300_000}})
        self._make_airway()
        self.answers = Answers(cluster, namespace)
        cluster.create(self.operator_manifest("answers", f"answer={namespace},question,operator-answer"))
        self._make_watcher_of_the_cluster()
        cluster.create(workflows.workflow("answers", namespace, "machine", input={"answer": "workflow-answer"}))
        cluster.create({"apiVersion": GREETING[0], "kind": GREETING[1], "metadata": {"name": "airway-answer", "namespace": namespace},
                        "spec": {"text": "0"}})
        self.settle()

    def operator_manifest(self, name, *steps, module="module", **spec):
        return {"apiVersion": operators.OPERATOR[0], "kind": operators.OPERATOR[1], "metadata": {"name": name, "namespace": self.namespace},
                "spec": {"module": {"configMap": {"name": module}}, "args": list(steps), **spec}}

    def _make_airway(self):
        """The administrator's Airway: tenants may create instances of it."""
        greeting = gzip.compress(pathlib.Path(flight("greeting_cpp")).read_bytes())
        self.cluster.create(config_map("greeting", NAMESPACE, {"flight.wasm.gz": greeting}))
        self.cluster.create({
            "apiVersion": "yoke.cd/v1alpha1", "kind": "Airway", "metadata": {"name": "greetings.tenants.hangar.dev"},
            "spec": {"wasmUrls": {"flight": f"configmap://{NAMESPACE}/greeting"}, "template": {
                "group": "tenants.hangar.dev", "scope": "Namespaced", "names": {"plural": "greetings", "singular": "greeting", "kind": "Greeting"},
                "versions": [{"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": OPEN_SCHEMA}}]}}})
        eventually(lambda: is_ready(self.cluster.get("yoke.cd/v1alpha1", "Airway", "greetings.tenants.hangar.dev")), "the Airway is ready", PATIENCE)

    def _make_watcher_of_the_cluster(self):
        """An operator that may watch all namespaces, and does: from here on the host's cache has them."""
        rbac = "/apis/rbac.authorization.k8s.io/v1"
        self.cluster.request("POST", f"{rbac}/clusterroles", {"metadata": {"name": "looks"}, "rules": [
            {"apiGroups": [""], "resources": ["namespaces", "configmaps"], "verbs": ["get", "list", "watch"]}]})
        self.cluster.request("POST", f"{rbac}/clusterrolebindings", {
            "metadata": {"name": "looks"}, "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "looks"},
            "subjects": [{"kind": "ServiceAccount", "name": "looks", "namespace": self.namespace}]})
        self.cluster.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "looks", "namespace": self.namespace}})
        self.cluster.create(self.operator_manifest("looks", "stream=/api/v1/namespaces?watch=true", serviceAccountName="looks",
                                                   limits={"logBytes": "1Ki"}))

    def settle(self):
        """Waits until all three work; also on a host that has just started."""
        eventually(lambda: self.cluster.get(*CONFIG_MAP, "operator-answer", self.namespace), "the operator answers", PATIENCE)
        eventually(lambda: operators.phase(self.cluster.get(*operators.OPERATOR, "looks", self.namespace)) in ("Running", "Asleep"),
                   "the other operator looks", PATIENCE)
        eventually(lambda: workflows.status(self.cluster, self.namespace, "answers").get("value") == "waiting", "the workflow waits", PATIENCE)
        eventually(lambda: self.cluster.get(*CONFIG_MAP, "airway-answer", self.namespace), "the instance is evaluated", PATIENCE)
        if self.stage.webhook_port:
            eventually(self._is_reviewed, "the host reviews instances", PATIENCE)
        for _ in range(2):
            self.round()

    def round(self):
        """Asks all three and returns how long each took, in seconds."""
        number = next(self._numbers)
        asked = {}
        asked["operator"] = time.monotonic()
        self.cluster.patch(*CONFIG_MAP, "question", {"data": {"number": str(number)}}, self.namespace)
        asked["workflow"] = time.monotonic()
        workflows.signal(self.cluster, self.namespace, "answers", f"ask-{number}", {"type": "ASK", "number": number})
        asked["airway"] = time.monotonic()
        self.cluster.patch(*GREETING, "airway-answer", {"spec": {"text": str(number)}}, self.namespace)
        took = {}
        for part, key in (("operator", "number"), ("workflow", "number"), ("airway", "text")):
            answered = self.answers.when(f"{part}-answer", key, str(number), asked[part] + self.patience)
            assert self.stage.is_alive(), f"the host ended while the {part} was asked:\n{self.stage.host.tail()}"
            assert answered, f"question {number} to the {part} was not answered within {self.patience} s"
            took[part] = answered - asked[part]
        if self.stage.webhook_port:
            took["review"] = self.review()
        return took

    def review(self):
        """Asks the API server whether it would accept another instance; it asks the host. Returns how long that took, in seconds."""
        began = time.monotonic()
        while True:
            try:
                self.cluster.request("POST", f"{self.cluster.path(*GREETING, self.namespace)}?dryRun=All", {
                    "apiVersion": GREETING[0], "kind": GREETING[1], "metadata": {"name": "proposed", "namespace": self.namespace},
                    "spec": {"text": "would it be accepted?"}})
                return time.monotonic() - began
            except ApiError as error:
                # A refusal has another status: an accepted object of these fields is the victim's right.
                assert error.status >= 500 or error.status == 429, f"a review refused the victim's instance: {error}"
                self.unanswered_reviews.append(str(error))
                assert self.stage.is_alive(), f"the host ended while it was asked for a review:\n{self.stage.host.tail()}"
                assert time.monotonic() - began < self.patience, f"no review of the victim's instance within {self.patience} s: {error}"
                time.sleep(0.1)

    def _is_reviewed(self):
        """The API server does ask the host: otherwise every review would be answered at once."""
        def answered():
            return sum(value for name, value in self.stage.host.metrics().items() if name.startswith("hangar_admission_reviews_total"))
        before = answered()
        self.review()
        return answered() > before

    def begins_spare(self):
        """An operator that sleeps for a day, for removes(); one that waits for nothing would be completed. Returns its name."""
        name = f"spare-{next(self._operators)}"
        self.cluster.create(self.operator_manifest(name, "sleep=86400000"))
        eventually(lambda: operators.phase(self.cluster.get(*operators.OPERATOR, name, self.namespace)) in ("Running", "Asleep"),
                   f"operator {name} of the victim runs", PATIENCE)
        assert not self._is_unknown(name), f"the host says that it does not run {name}"
        return name

    def removes(self, name):
        """Deletes an operator. Returns the seconds until the host has it no more."""
        began = time.monotonic()
        self.cluster.delete(*operators.OPERATOR, name, self.namespace)
        while not self._is_unknown(name):
            assert self.stage.is_alive(), f"the host ended while an operator was deleted:\n{self.stage.host.tail()}"
            assert time.monotonic() - began < self.patience, f"operator {name} of the victim was not removed within {self.patience} s"
            time.sleep(0.01)
        return time.monotonic() - began

    def sees_removals(self):
        """An older host does not tell which operators it runs."""
        return self._is_unknown("nobody")

    def _is_unknown(self, name):
        """The host runs no operator of that name."""
        status, text = self.stage.host.get(f"/metrics/operators/{self.namespace}/{name}")
        return status == 404 and "no such operator" in text

    def begins_something_new(self, binary=None):
        """An operator of a module that was never run before is fetched, compiled, begins, prints and goes. `binary`: a module
        that others want, too."""
        name = f"new-{next(self._operators)}"
        module = gzip.compress(binary or private_module(f"{self.mark} {name}"), compresslevel=1)
        self.cluster.create(config_map(name, self.namespace, {"module.wasm.gz": module}))
        self.cluster.create(self.operator_manifest(name, f"print={name}", module=name))
        try:
            eventually(lambda: operators.phase(self.cluster.get(*operators.OPERATOR, name, self.namespace)) == "Completed",
                       f"operator {name} of the victim has run", PATIENCE)
        finally:
            self.cluster.delete(*operators.OPERATOR, name, self.namespace)
            self.cluster.delete(*CONFIG_MAP, name, self.namespace)

    def restarts(self):
        return [self.cluster.get(*operators.OPERATOR, name, self.namespace)["status"].get("restarts", 0) for name in ("answers", "looks")]

    def trouble(self):
        """The problems in its statuses."""
        kinds = ((operators.OPERATOR, "answers"), (workflows.WORKFLOW, "answers"), (GREETING, "airway-answer"))
        seen = {kind[1]: condition(self.cluster.get(*kind, name, self.namespace), "Stalled") for kind, name in kinds}
        return {kind: one["message"] for kind, one in seen.items() if one.get("status") == "True"}


def private_module(mark):
    """The puppet with a section of its own, so that no other tenant has a module of that digest."""
    text = mark.encode()
    return pathlib.Path(flight(operators.BEHAVE)).read_bytes() + bytes([0, len(text) + 1, len(text)]) + text
