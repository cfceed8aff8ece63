// A flight: a ConfigMap with a text, which may come from another ConfigMap that need not exist yet.
package main

import (
	"encoding/json"
	"fmt"
	"os"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hangar.dev/sdk/go/flight"
	"hangar.dev/sdk/go/flight/wasi/k8s"
)

// Greeting is the custom resource.
type Greeting struct {
	metav1.TypeMeta
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Text string `json:"text,omitempty"`
		From string `json:"from,omitempty" description:"Name of a ConfigMap whose key text is used instead."`
	} `json:"spec"`
	Status struct {
		Msg string `json:"msg"`
	} `json:"status,omitzero"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	var greeting Greeting
	if err := json.NewDecoder(os.Stdin).Decode(&greeting); err != nil {
		return fmt.Errorf("failed to decode stdin into a greeting: %w", err)
	}

	text := greeting.Spec.Text
	if from := greeting.Spec.From; from != "" {
		source, err := k8s.Lookup[corev1.ConfigMap](k8s.ResourceIdentifier{
			Name:       from,
			Namespace:  flight.Namespace(),
			Kind:       "ConfigMap",
			ApiVersion: "v1",
		})
		if k8s.IsErrNotFound(err) {
			// The host remembers the lookup: the ConfigMap's creation evaluates the flight again.
			greeting.Status.Msg = "waiting for configmap " + from
			return flight.Write(os.Stdout, flight.Resources{&greeting})
		}
		if err != nil {
			return fmt.Errorf("failed to lookup configmap %s: %w", from, err)
		}
		text = source.Data["text"]
	}

	greeting.Status.Msg = "greeting"
	return flight.Write(os.Stdout, flight.Resources{
		&greeting,
		&corev1.ConfigMap{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{Name: greeting.Name},
			Data:       map[string]string{"text": text},
		},
	})
}
