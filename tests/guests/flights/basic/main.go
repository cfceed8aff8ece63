// The smallest useful flight: a ConfigMap that holds the instance's spec. It uses nothing but the
// standard library, so its module imports nothing but WASI and exports no malloc.
package main

import (
	"encoding/json"
	"fmt"
	"os"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	var instance struct {
		Metadata struct {
			Name string `json:"name"`
		} `json:"metadata"`
		Spec map[string]any `json:"spec"`
	}
	if err := json.NewDecoder(os.Stdin).Decode(&instance); err != nil {
		return fmt.Errorf("failed to decode stdin into an instance: %w", err)
	}

	data := map[string]string{}
	for key, value := range instance.Spec {
		data[key] = fmt.Sprint(value)
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{
		"apiVersion": "v1",
		"kind":       "ConfigMap",
		"metadata":   map[string]any{"name": instance.Metadata.Name},
		"data":       data,
	})
}
