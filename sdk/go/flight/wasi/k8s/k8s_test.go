package k8s_test

import (
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hangar.dev/sdk/go/flight"
	"hangar.dev/sdk/go/flight/wasi/k8s"
	"hangar.dev/sdk/go/flight/wasi/k8s/k8stest"
)

func job(namespace string) *batchv1.Job {
	return &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Name: "one", Namespace: namespace},
	}
}

func TestLookupResourceLooksWhereTheHostWillPutTheObject(t *testing.T) {
	t.Setenv("YOKE_NAMESPACE", "release-namespace")
	k8stest.Use(t, k8stest.Cluster{Objects: []flight.Resource{job("own"), job("release-namespace"), job("default")}})
	tests := map[string]struct{ namespace, want string }{
		"own namespace": {"own", "own"},
		"none":          {"", "release-namespace"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			asked := job(test.namespace)

			found, err := k8s.LookupResource(asked)

			if err != nil || found == asked || found.Namespace != test.want {
				t.Errorf("found %+v, %v, want the one in %s", found, err, test.want)
			}
			if asked.Namespace != test.namespace {
				t.Errorf("changed the namespace of what was asked for to %q", asked.Namespace)
			}
		})
	}
}

func TestARefusedLookupHasTheErrorOfItsState(t *testing.T) {
	tests := map[k8s.State]func(error) bool{
		k8s.StateFeatureNotGranted: k8s.IsErrFeatureNotGranted,
		k8s.StateNotFound:          k8s.IsErrNotFound,
		k8s.StateUnauthenticated:   k8s.IsErrUnauthenticated,
		k8s.StateForbidden:         k8s.IsErrForbidden,
	}
	asked := k8s.ResourceIdentifier{Name: "one", Namespace: "own", Kind: "Job", ApiVersion: "batch/v1"}
	for state := range tests {
		k8stest.Use(t, k8stest.Cluster{Refused: map[k8s.ResourceIdentifier]k8s.State{asked: state}})

		found, err := k8s.LookupResource(job("own"))

		if found != nil {
			t.Errorf("%s: found %+v", state, found)
		}
		for other, predicate := range tests {
			if got := predicate(err); got != (other == state) {
				t.Errorf("%s: predicate of %s = %v", state, other, got)
			}
		}
	}
}
