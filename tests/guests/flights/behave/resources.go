package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"

	"hangar.dev/sdk/go/flight/wasi/cluster"
	"hangar.dev/tests/guests/flights/internal/object"
)

func basic(cr *instance) error {
	return emit(object.ConfigMap(cr.Metadata.Name, cr.Spec.Data))
}

// children emits several ConfigMaps and looks some of them up: in the mode subscription, only a change
// to those evaluates the flight again.
func children(cr *instance) error {
	var resources []any
	for _, name := range cr.Spec.Names {
		data := map[string]string{}
		if slices.Contains(cr.Spec.Lookups, name) {
			data["found"] = "true"
			_, err := cluster.Lookup[object.Map](cluster.ResourceIdentifier{
				Name: name, Namespace: os.Getenv("YOKE_NAMESPACE"), Kind: "ConfigMap", ApiVersion: "v1",
			})
			if cluster.IsErrNotFound(err) {
				data["found"] = "false"
			} else if err != nil {
				return fmt.Errorf("look up configmap %s: %w", name, err)
			}
		}
		for key, value := range cr.Spec.Data {
			data[key] = value
		}
		resources = append(resources, object.ConfigMap(name, data))
	}
	return emit(resources...)
}

func crossns(cr *instance) error {
	var resources []any
	for _, namespace := range cr.Spec.Namespaces {
		configMap := object.ConfigMap(cr.Metadata.Name, cr.Spec.Data)
		configMap["metadata"].(object.Map)["namespace"] = namespace
		resources = append(resources, configMap)
	}
	return emit(resources...)
}

// lookupTarget is the object to look up, and whether an error fails the flight or is only recorded.
type lookupTarget struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	Name       string `json:"name"`
	Namespace  string `json:"namespace"`
	Tolerate   bool   `json:"tolerate"`
}

// lookup emits a ConfigMap with the keys "outcome" (found, or the predicate that is true of the error),
// "message" (the error's text) and the data of the object that was found.
func lookup(cr *instance) error {
	target := cr.Spec.Lookup
	found, err := cluster.Lookup[struct {
		Data map[string]string `json:"data"`
	}](cluster.ResourceIdentifier{
		Name: target.Name, Namespace: target.Namespace, Kind: target.Kind, ApiVersion: target.APIVersion,
	})
	data := map[string]string{"outcome": outcome(err)}
	switch {
	case err == nil:
		for key, value := range found.Data {
			data[key] = value
		}
	case target.Tolerate || cluster.IsErrNotFound(err):
		data["message"] = err.Error()
	default:
		return fmt.Errorf("failed to lookup %s %s: %w", target.Kind, target.Name, err)
	}
	return emit(object.ConfigMap(cr.Metadata.Name, data))
}

func outcome(err error) string {
	switch {
	case err == nil:
		return "found"
	case cluster.IsErrNotFound(err):
		return "NotFound"
	case cluster.IsErrForbidden(err):
		return "Forbidden"
	case cluster.IsErrFeatureNotGranted(err):
		return "FeatureNotGranted"
	case cluster.IsErrUnauthenticated(err):
		return "Unauthenticated"
	}
	return "Error"
}

func restMapping(cr *instance) error {
	mapping, err := cluster.GetRestMapping(cr.Spec.APIVersion, cr.Spec.Kind)
	data := map[string]string{"outcome": outcome(err)}
	if err != nil {
		data["message"] = err.Error()
	} else {
		document, err := json.Marshal(mapping)
		if err != nil {
			return err
		}
		data["mapping"] = string(document)
	}
	return emit(object.ConfigMap(cr.Metadata.Name, data))
}

func status(cr *instance) error {
	self, err := withStatus(cr)
	if err != nil {
		return err
	}
	return emit(self, object.ConfigMap(cr.Metadata.Name, cr.Spec.Data))
}

func identity(cr *instance) error {
	self, err := withStatus(cr)
	if err != nil {
		return err
	}
	return emit(self)
}

func withStatus(cr *instance) (object.Map, error) {
	var self object.Map
	if err := json.Unmarshal(cr.text, &self); err != nil {
		return nil, fmt.Errorf("decode the instance: %w", err)
	}
	if len(cr.Spec.Status) > 0 {
		self["status"] = cr.Spec.Status
	}
	return self, nil
}

// stages emits resources that cannot be applied all at once: a CRD and an instance of it, a namespace
// and a ConfigMap in it, and after a Job a ConfigMap that must not exist before the Job is complete.
func stages(cr *instance) error {
	name := cr.Metadata.Name
	namespace := object.New("v1", "Namespace", name+"-stage")
	crd := object.New("apiextensions.k8s.io/v1", "CustomResourceDefinition", "staged.guests.hangar.dev")
	crd["spec"] = object.Map{
		"group": "guests.hangar.dev",
		"names": object.Map{"plural": "staged", "singular": "staged", "kind": "Staged"},
		"scope": "Cluster",
		"versions": []any{object.Map{
			"name": "v1", "served": true, "storage": true,
			"schema": object.Map{"openAPIV3Schema": object.Map{
				"type": "object", "x-kubernetes-preserve-unknown-fields": true,
			}},
		}},
	}
	custom := object.New("guests.hangar.dev/v1", "Staged", name)
	inside := object.ConfigMap(name+"-inside", cr.Spec.Data)
	inside["metadata"].(object.Map)["namespace"] = name + "-stage"

	return json.NewEncoder(os.Stdout).Encode([][]any{
		{namespace, crd, object.ConfigMap(name+"-first", cr.Spec.Data)},
		{custom, inside, makeJob(name + "-gate")},
		{object.ConfigMap(name+"-last", cr.Spec.Data)},
	})
}

func job(cr *instance) error {
	return emit(makeJob(cr.Metadata.Name))
}

func makeJob(name string) object.Map {
	job := object.New("batch/v1", "Job", name)
	job["spec"] = object.Map{
		"backoffLimit": 0,
		"template": object.Map{"spec": object.Map{
			"restartPolicy": "Never",
			"containers":    []any{object.Map{"name": "main", "image": "busybox:stable", "command": []string{"sleep", "1"}}},
		}},
	}
	return job
}

// neverReady emits a Deployment that no node will run.
func neverReady(cr *instance) error {
	labels := map[string]string{"app": cr.Metadata.Name}
	deployment := object.Workload("Deployment", cr.Metadata.Name, "registry.invalid/no-such-image:none", labels)
	pod := deployment["spec"].(object.Map)["template"].(object.Map)["spec"].(object.Map)
	pod["nodeSelector"] = map[string]string{"hangar.dev/no-such-node": "true"}
	return emit(deployment)
}
