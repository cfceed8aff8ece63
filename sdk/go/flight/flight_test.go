package flight_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"

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
		"a nil resource is left out":     {flight.Resources{nil, (*corev1.Secret)(nil), namespace("a")}, `[{"kind":"Namespace","metadata":{"name":"a"}}]` + "\n"},
		"only nil resources":             {flight.Resources{(*corev1.Secret)(nil)}, "[]\n"},
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

// Flights that move from this package to encoding/json, or the other way, keep their output.
func TestWriteWritesWhatTheStandardLibraryWrites(t *testing.T) {
	replicas := int32(0)
	answer := flight.Resources{
		&appsv1.Deployment{
			TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
			ObjectMeta: metav1.ObjectMeta{Name: "<&>\u2028", Labels: map[string]string{"b": "\u00e9", "a": ""}},
			Spec: appsv1.DeploymentSpec{
				Replicas: &replicas,
				Strategy: appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{
					MaxSurge: new(intstr.FromString("25%")), MaxUnavailable: new(intstr.FromInt32(0)),
				}},
				Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{
					Name:      "main",
					Args:      []string{},
					Env:       []corev1.EnvVar{{Name: "EMPTY"}},
					Resources: corev1.ResourceRequirements{Limits: corev1.ResourceList{"cpu": resource.MustParse("100m")}},
				}}}},
			},
		},
		&corev1.Secret{
			Data:       map[string][]byte{"key": {0, 255}},
			ObjectMeta: metav1.ObjectMeta{CreationTimestamp: metav1.Unix(1, 0), ManagedFields: []metav1.ManagedFieldsEntry{{FieldsV1: &metav1.FieldsV1{Raw: []byte(`{"f:a":{}}`)}}}},
		},
		&custom{},
		namespace("a"),
	}
	var want bytes.Buffer
	if err := json.NewEncoder(&want).Encode([]flight.Resource(answer)); err != nil {
		t.Fatal(err)
	}

	var output bytes.Buffer
	if err := flight.Write(&output, answer); err != nil {
		t.Fatal(err)
	}

	if got := output.String(); got != want.String() {
		t.Errorf("wrote\n%s\nwant\n%s", got, want.String())
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

	t.Setenv("YOKE_RELEASE", "default/nightly")
	if got, want := flight.Release(), "nightly"; got != want {
		t.Errorf("Release() = %q, want %q", got, want)
	}

	t.Setenv("YOKE_RELEASE", "")
	if got, want := flight.Release(), filepath.Base(os.Args[0]); got != want {
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

func TestTheContractAndTheHostHaveVersionsOfTheirOwn(t *testing.T) {
	t.Setenv("YOKE_VERSION", "v0.20.12")
	t.Setenv("HANGAR_VERSION", "0.1.0")
	if got := flight.YokeVersion(); got != "v0.20.12" {
		t.Errorf("YokeVersion() = %q, want v0.20.12", got)
	}
	if got := flight.HangarVersion(); got != "0.1.0" {
		t.Errorf("HangarVersion() = %q, want 0.1.0", got)
	}
}

func TestJSONEncodeWithErrorWritesAndKeepsTheError(t *testing.T) {
	failed := errors.New("the flight's own error")
	broken := errors.New("no room")
	tests := map[string]struct {
		before  error
		writing error
		want    []error
		text    string
	}{
		"nothing went wrong":    {nil, nil, nil, ""},
		"the flight failed":     {failed, nil, []error{failed}, "the flight's own error"},
		"writing failed":        {nil, broken, []error{broken}, "no room"},
		"both failed, in order": {failed, broken, []error{failed, broken}, "the flight's own error\nno room"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			output := &brokenWriter{err: test.writing}

			err := flight.JSONEncodeWithError(output, namespace("a"), test.before)

			if got, want := output.written.String(), `{"kind":"Namespace","metadata":{"name":"a"}}`+"\n"; got != want {
				t.Errorf("wrote %q, want %q", got, want)
			}
			if (err == nil) != (len(test.want) == 0) || err != nil && err.Error() != test.text {
				t.Errorf("error %q, want %q", err, test.text)
			}
			for _, want := range test.want {
				if !errors.Is(err, want) {
					t.Errorf("error %v is not %v", err, want)
				}
			}
		})
	}
}

// brokenWriter accepts every byte, and fails with the error if it has one.
type brokenWriter struct {
	written bytes.Buffer
	err     error
}

func (writer *brokenWriter) Write(data []byte) (int, error) {
	writer.written.Write(data)
	return len(data), writer.err
}
