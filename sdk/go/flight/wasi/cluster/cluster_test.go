package cluster

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

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

		if object != nil || err == nil {
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

func TestARefusalIsAnErrorOfItsType(t *testing.T) {
	const words = "the host's words"
	tests := map[State]error{
		StateFeatureNotGranted: ErrorClusterAccessNotGranted,
		StateNotFound:          ErrorNotFound(words),
		StateUnauthenticated:   ErrorUnauthenticated(words),
		StateForbidden:         ErrorForbidden(words),
	}
	for state, want := range tests {
		useHost(t, &scriptedHost{state: state, document: words})

		_, err := GetRestMapping("apps", "Deployment")

		if err != want {
			t.Errorf("%s: error %#v, want %#v", state, err, want)
		}
		for other, target := range tests {
			if got := errors.Is(err, target); got != (other == state) {
				t.Errorf("errors.Is(%s, %s) = %v", state, other, got)
			}
		}
	}
	useHost(t, &scriptedHost{state: StateError, document: words})
	if _, err := GetRestMapping("apps", "Deployment"); err == nil || err.Error() != words {
		t.Errorf("error %v, want %q", err, words)
	}
}

func TestAnErrorWithoutWordsStillSpeaks(t *testing.T) {
	tests := map[State]string{
		StateFeatureNotGranted: "access to the cluster has not been granted for this flight invocation",
		StateError:             "error",
		StateNotFound:          "not found",
		State(77):              "unknown state 77",
	}
	for state, want := range tests {
		useHost(t, &scriptedHost{state: state})
		if _, err := GetRestMapping("", "Secret"); err == nil || err.Error() != want {
			t.Errorf("error in state %d is %q, want %q", uint32(state), err, want)
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
