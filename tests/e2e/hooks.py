"""An operator that has webhooks and nothing else: a controller-runtime program, built by `hangar build go`."""
import shutil
import subprocess

import pytest

from airways import GUESTS
from cluster import ROOT, ApiError, condition, eventually
from host import BINARY
from operators import OPERATOR, manifest, phase
from webhooks import allow_in_cluster

VALIDATING = ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration")
MUTATING = ("admissionregistration.k8s.io/v1", "MutatingWebhookConfiguration")

# No controller, no cache, no certificate.
MAIN = r"""package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log/zap"
	"sigs.k8s.io/controller-runtime/pkg/webhook"
	"sigs.k8s.io/controller-runtime/pkg/webhook/admission"
)

func reviewed(request admission.Request) (*corev1.ConfigMap, error) {
	object := &corev1.ConfigMap{}
	return object, json.Unmarshal(request.Object.Raw, object)
}

func validate(_ context.Context, request admission.Request) admission.Response {
	object, err := reviewed(request)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	switch object.Data["do"] {
	case "deny":
		return admission.Denied("this is not allowed")
	case "never":
		select {}
	case "slow":
		fmt.Println("waiting", object.Name)
		time.Sleep(4 * time.Second)
	case "large":
		return admission.Denied(strings.Repeat("x", 5<<20))
	case "panic":
		panic("oh")
	}
	fmt.Println("allowed", object.Name)
	return admission.Allowed("")
}

func mutate(_ context.Context, request admission.Request) admission.Response {
	object, err := reviewed(request)
	if err != nil {
		return admission.Errored(http.StatusBadRequest, err)
	}
	if object.Data == nil {
		object.Data = map[string]string{}
	}
	object.Data["mutated"] = "yes"
	after, err := json.Marshal(object)
	if err != nil {
		return admission.Errored(http.StatusInternalServerError, err)
	}
	return admission.PatchResponseFromRaw(request.Object.Raw, after)
}

// In v2, the text has another name.
func convert(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Request struct {
			UID               string           `json:"uid"`
			DesiredAPIVersion string           `json:"desiredAPIVersion"`
			Objects           []map[string]any `json:"objects"`
		} `json:"request"`
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	from, to := "text", "words"
	if strings.HasSuffix(asked.Request.DesiredAPIVersion, "/v1") {
		from, to = to, from
	}
	for _, object := range asked.Request.Objects {
		object["apiVersion"] = asked.Request.DesiredAPIVersion
		if spec, isMap := object["spec"].(map[string]any); isMap && spec[from] != nil {
			spec[to] = spec[from]
			delete(spec, from)
		}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": map[string]any{
		"uid": asked.Request.UID, "result": map[string]any{"status": "Success"}, "convertedObjects": asked.Request.Objects}})
}

func main() {
	ctrl.SetLogger(zap.New())
	manager, err := ctrl.NewManager(ctrl.GetConfigOrDie(), ctrl.Options{})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	server := manager.GetWebhookServer()
	server.Register("/validate", &webhook.Admission{Handler: admission.HandlerFunc(validate)})
	server.Register("/mutate", &webhook.Admission{Handler: admission.HandlerFunc(mutate)})
	server.Register("/convert", http.HandlerFunc(convert))
	server.Register("/nonsense", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "no review") }))
	if err := manager.Start(ctrl.SetupSignalHandler()); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
}
"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """The module `hooks` among the other guests."""
    source = tmp_path_factory.mktemp("hooks")
    for name in ("go.mod", "go.sum"):
        shutil.copy(ROOT / "examples/memo" / name, source / name)
    (source / "main.go").write_text(MAIN)
    done = subprocess.run([str(BINARY), "build", "go", ".", "-o", str(GUESTS / "hooks.wasm")], cwd=source, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr


def service(path):
    """As a project's manifests say it: a Service that does not exist here."""
    return {"service": {"namespace": "system", "name": "webhook-service", "path": path}}


def webhooks_of(namespace, *hooks):
    """Webhooks for ConfigMaps with the label `hook`, each with its path and its time."""
    return [{"name": f"{name}.hooks.hangar.dev", "clientConfig": service(path), "sideEffects": "None", "admissionReviewVersions": ["v1"],
             "failurePolicy": "Fail", "timeoutSeconds": seconds, "objectSelector": {"matchLabels": {"hook": name}},
             "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": namespace}},
             "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}]}
            for name, path, seconds in hooks]


def all_rights(cluster, namespace):
    group = "admissionregistration.k8s.io"
    allow_in_cluster(cluster, namespace, (group, "validatingwebhookconfigurations", f"hooks-{namespace}"),
           (group, "mutatingwebhookconfigurations", f"hooks-{namespace}"), ("apiextensions.k8s.io", "customresourcedefinitions", "notes.hooks.hangar.dev"))


@pytest.fixture
def configurations(cluster, namespace):
    """Both configurations, as their authors wrote them."""
    name = f"hooks-{namespace}"
    cluster.create({"apiVersion": VALIDATING[0], "kind": VALIDATING[1], "metadata": {"name": name}, "webhooks": webhooks_of(
        namespace, ("validate", "/validate", 10), ("quick", "/validate", 3), ("nonsense", "/nonsense", 10), ("unknown", "/unknown", 10))})
    cluster.create({"apiVersion": MUTATING[0], "kind": MUTATING[1], "metadata": {"name": name},
                    "webhooks": webhooks_of(namespace, ("mutate", "/mutate", 10))})
    yield name
    cluster.delete(*VALIDATING, name)
    cluster.delete(*MUTATING, name)


NAMED = [{"kind": VALIDATING[1]}, {"kind": MUTATING[1]}]


def run(cluster, namespace, *more):
    """Starts the operator, which answers the namespace's configurations, and waits until it sleeps."""
    named = [{**one, "name": f"hooks-{namespace}"} for one in NAMED] + list(more)
    cluster.create(manifest("hooks", namespace, wasm="hooks", webhooks=named, sleep={"after": "200ms"}, limits={"memory": "256Mi"}))
    return asleep(cluster, namespace)


def asleep(cluster, namespace):
    return eventually(lambda: (lambda o: o if phase(o) == "Asleep" else None)(cluster.get(*OPERATOR, "hooks", namespace)), "the operator sleeps", 600)


def webhooks_ready(cluster, namespace):
    return condition(cluster.get(*OPERATOR, "hooks", namespace), "WebhooksReady")


def make(cluster, namespace, name, hook, **data):
    return cluster.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": namespace, "labels": {"hook": hook}}, "data": data})


def refused(cluster, namespace, name, hook, **data):
    with pytest.raises(ApiError) as refusal:
        make(cluster, namespace, name, hook, **data)
    return str(refusal.value)
