package flight_test

import (
	"bytes"
	"os"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"hangar.dev/sdk/go/flight"
)

type custom struct {
	metav1.TypeMeta
	metav1.ObjectMeta `json:"metadata"`
}

var (
	_ flight.Resource = (*custom)(nil)
	_ flight.Resource = (*corev1.Secret)(nil)
	_ flight.Resource = (*unstructured.Unstructured)(nil)
)

func namespace(name string) flight.Resource {
	return &unstructured.Unstructured{Object: map[string]any{"kind": "Namespace", "metadata": map[string]any{"name": name}}}
}

func TestWriteResources(t *testing.T) {
	tests := map[string]struct {
		answer flight.Resources
		want   string
	}{
		"nil is an empty list, not null": {nil, "[]\n"},
		"empty":                          {flight.Resources{}, "[]\n"},
		"one":                            {flight.Resources{namespace("a")}, `[{"kind":"Namespace","metadata":{"name":"a"}}]` + "\n"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var output bytes.Buffer
			if err := flight.Write(&output, test.answer); err != nil {
				t.Fatal(err)
			}
			if got := output.String(); got != test.want {
				t.Errorf("wrote %q, want %q", got, test.want)
			}
		})
	}
}

func TestWriteStagesAsArraysOfArrays(t *testing.T) {
	var output bytes.Buffer
	stages := flight.Stages{{namespace("a")}, nil}

	if err := flight.Write(&output, stages); err != nil {
		t.Fatal(err)
	}

	want := `[[{"kind":"Namespace","metadata":{"name":"a"}}],[]]` + "\n"
	if got := output.String(); got != want {
		t.Errorf("wrote %q, want %q", got, want)
	}
}

func TestReleaseComesFromTheEnvironmentThenFromTheArguments(t *testing.T) {
	t.Setenv("YOKE_RELEASE", "examples.com.Pipeline.default.nightly")
	if got, want := flight.Release(), "examples.com.Pipeline.default.nightly"; got != want {
		t.Errorf("Release() = %q, want %q", got, want)
	}

	t.Setenv("YOKE_RELEASE", "")
	if got, want := flight.Release(), os.Args[0]; got != want {
		t.Errorf("Release() = %q, want %q", got, want)
	}
}

func TestNamespacePrefersTheReleasesOwnVariable(t *testing.T) {
	t.Setenv("YOKE_NAMESPACE", "")
	t.Setenv("NAMESPACE", "fallback")
	if got := flight.Namespace(); got != "fallback" {
		t.Errorf("Namespace() = %q, want fallback", got)
	}

	t.Setenv("YOKE_NAMESPACE", "production")
	if got := flight.Namespace(); got != "production" {
		t.Errorf("Namespace() = %q, want production", got)
	}
}
