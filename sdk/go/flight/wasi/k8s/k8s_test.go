package k8s

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hangar.dev/sdk/go/flight/wasi/internal/host"
)

// scriptedHost gives one answer and remembers the question.
type scriptedHost struct {
	state    State
	document string
	err      error

	identifier ResourceIdentifier
	mapping    [2]string
}

func (script *scriptedHost) Lookup(name, namespace, kind, apiVersion string) (uint32, []byte, error) {
	script.identifier = ResourceIdentifier{Name: name, Namespace: namespace, Kind: kind, ApiVersion: apiVersion}
	return uint32(script.state), []byte(script.document), script.err
}

func (script *scriptedHost) RestMapping(groupOrAPIVersion, kind string) (uint32, []byte, error) {
	script.mapping = [2]string{groupOrAPIVersion, kind}
	return uint32(script.state), []byte(script.document), script.err
}

func useHost(t *testing.T, script *scriptedHost) {
	previous := host.Current
	host.Current = script
	t.Cleanup(func() { host.Current = previous })
}

func TestLookupDecodesTheObject(t *testing.T) {
	script := &scriptedHost{document: `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"db"},"data":{"user":"YWRtaW4="}}`}
	useHost(t, script)
	asked := ResourceIdentifier{Name: "db", Namespace: "prod", Kind: "Secret", ApiVersion: "v1"}

	secret, err := Lookup[corev1.Secret](asked)

	if err != nil {
		t.Fatal(err)
	}
	if secret.Name != "db" || string(secret.Data["user"]) != "admin" {
		t.Errorf("decoded %+v", secret)
	}
	if script.identifier != asked {
		t.Errorf("asked for %s, want %s", script.identifier, asked)
	}
}

func TestLookupResourceAsksForWhereTheHostWillPutTheObject(t *testing.T) {
	t.Setenv("YOKE_NAMESPACE", "release-namespace")
	tests := map[string]struct{ namespace, want string }{
		"own namespace": {"own", "own"},
		"none":          {"", "release-namespace"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			script := &scriptedHost{document: `{}`}
			useHost(t, script)
			job := &batchv1.Job{
				TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
				ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: test.namespace},
			}

			if _, err := LookupResource(job); err != nil {
				t.Fatal(err)
			}

			want := ResourceIdentifier{Name: "one", Namespace: test.want, Kind: "Job", ApiVersion: "batch/v1"}
			if script.identifier != want {
				t.Errorf("asked for %+v, want %+v", script.identifier, want)
			}
		})
	}
}

func TestEveryStateHasOnePredicate(t *testing.T) {
	predicates := map[State]func(error) bool{
		StateFeatureNotGranted: IsErrFeatureNotGranted,
		StateNotFound:          IsErrNotFound,
		StateUnauthenticated:   IsErrUnauthenticated,
		StateForbidden:         IsErrForbidden,
	}
	for state := StateFeatureNotGranted; state <= StateForbidden+1; state++ {
		useHost(t, &scriptedHost{state: state, document: "the host's words"})

		object, err := Lookup[corev1.Secret](ResourceIdentifier{})

		if object != nil || err == nil || err.Error() != "the host's words" {
			t.Errorf("%s: Lookup = %v, %v", state, object, err)
		}
		wrapped := fmt.Errorf("look up the secret: %w", err)
		for other, predicate := range predicates {
			if got, want := predicate(wrapped), other == state; got != want {
				t.Errorf("%s: predicate of %s = %v", state, other, got)
			}
		}
	}
}

func TestAnErrorWithoutWordsStillSpeaks(t *testing.T) {
	tests := map[State]string{
		StateFeatureNotGranted: "access to the cluster has not been granted for this flight invocation",
		StateNotFound:          "not found",
		State(77):              "unknown state 77",
	}
	for state, want := range tests {
		if got := (&Error{State: state}).Error(); got != want {
			t.Errorf("Error() of %d = %q, want %q", uint32(state), got, want)
		}
	}
}

func TestABrokenAnswerIsAnError(t *testing.T) {
	t.Run("document", func(t *testing.T) {
		useHost(t, &scriptedHost{document: `{"metadata":`})
		_, err := Lookup[corev1.Secret](ResourceIdentifier{Name: "db", Namespace: "prod", Kind: "Secret", ApiVersion: "v1"})
		if err == nil || !strings.HasPrefix(err.Error(), "decode v1 Secret prod/db: ") {
			t.Errorf("error %v", err)
		}
	})
	t.Run("buffer", func(t *testing.T) {
		broken := errors.New("host returned a buffer that was not allocated for it")
		useHost(t, &scriptedHost{err: broken})
		if _, err := GetRestMapping("apps/v1", "Deployment"); !errors.Is(err, broken) {
			t.Errorf("error %v", err)
		}
	})
}

func TestGetRestMappingDecodesTheHostsFieldNames(t *testing.T) {
	script := &scriptedHost{document: `{"Group":"apps","Version":"v1","Kind":"Deployment","Resource":"deployments","Namespaced":true}`}
	useHost(t, script)

	mapping, err := GetRestMapping("apps/v1", "Deployment")

	want := RestMapping{Group: "apps", Version: "v1", Kind: "Deployment", Resource: "deployments", Namespaced: true}
	if err != nil || *mapping != want {
		t.Errorf("GetRestMapping = %+v, %v", mapping, err)
	}
	if script.mapping != [2]string{"apps/v1", "Deployment"} {
		t.Errorf("asked for %v", script.mapping)
	}
}

func TestWithoutAHostNothingIsGranted(t *testing.T) {
	if _, err := Lookup[corev1.Secret](ResourceIdentifier{}); !IsErrFeatureNotGranted(err) {
		t.Errorf("Lookup: %v", err)
	}
	if _, err := GetRestMapping("", "Secret"); !IsErrFeatureNotGranted(err) {
		t.Errorf("GetRestMapping: %v", err)
	}
}
