// A later version of the flight of a backend: a DaemonSet, and a rule of its own about replicas. Tests
// replace backend by it, to see one module's resources replaced by another's and to see a refusal.
package main

import (
	"encoding/json"
	"fmt"
	"os"

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
		Metadata struct{ Name string }
		Spec     struct {
			Image    string
			Replicas int32
		}
	}
	if err := json.NewDecoder(os.Stdin).Decode(&instance); err != nil {
		return fmt.Errorf("failed to decode stdin into a backend: %w", err)
	}
	if instance.Spec.Replicas%2 == 0 {
		return fmt.Errorf("replicas must be odd but got %d", instance.Spec.Replicas)
	}
	labels := map[string]string{"app": instance.Metadata.Name}
	return json.NewEncoder(os.Stdout).Encode(object.Workload("DaemonSet", instance.Metadata.Name, instance.Spec.Image, labels))
}
