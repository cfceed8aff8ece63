// A Deployment and a Service from an image and a number of replicas. If there is a ConfigMap of the
// instance's name with a key "replicas", it overrules the spec: this tests the modes.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"

	"hangar.dev/sdk/go/flight/wasi/cluster"
	"hangar.dev/tests/guests/flights/internal/object"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	var instance struct {
		Metadata struct{ Name, Namespace string }
		Spec     struct {
			Image    string
			Replicas int32
			Labels   map[string]string
		}
	}
	if err := json.NewDecoder(os.Stdin).Decode(&instance); err != nil {
		return fmt.Errorf("failed to decode stdin into a backend: %w", err)
	}

	replicas := instance.Spec.Replicas
	config, err := cluster.Lookup[struct{ Data map[string]string }](cluster.ResourceIdentifier{
		Name: instance.Metadata.Name, Namespace: instance.Metadata.Namespace, Kind: "ConfigMap", ApiVersion: "v1",
	})
	switch {
	case err == nil && config.Data["replicas"] != "":
		value, err := strconv.ParseInt(config.Data["replicas"], 10, 32)
		if err != nil {
			return fmt.Errorf("configmap %s: %w", instance.Metadata.Name, err)
		}
		replicas = int32(value)
	case err != nil && !cluster.IsErrNotFound(err) && !cluster.IsErrFeatureNotGranted(err):
		return fmt.Errorf("failed to lookup configmap: %w", err)
	}

	labels := map[string]string{"app": instance.Metadata.Name}
	deployment := object.Workload("Deployment", instance.Metadata.Name, instance.Spec.Image, labels)
	deployment["spec"].(object.Map)["replicas"] = replicas
	service := object.New("v1", "Service", instance.Metadata.Name)
	service["spec"] = object.Map{
		"selector": labels,
		"ports":    []any{object.Map{"name": "http", "protocol": "TCP", "port": 80, "targetPort": 80}},
	}
	for _, resource := range []object.Map{deployment, service} {
		if len(instance.Spec.Labels) > 0 {
			resource["metadata"].(object.Map)["labels"] = instance.Spec.Labels
		}
	}
	return json.NewEncoder(os.Stdout).Encode([]object.Map{deployment, service})
}
