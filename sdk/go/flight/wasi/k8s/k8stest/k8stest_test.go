package k8stest_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hangar.dev/sdk/go/flight"
	"hangar.dev/sdk/go/flight/wasi/k8s"
	"hangar.dev/sdk/go/flight/wasi/k8s/k8stest"
)

func secret(namespace string) *corev1.Secret {
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: "db", Namespace: namespace},
		Data:       map[string][]byte{"namespace": []byte(namespace)},
	}
}

func TestLookupFindsTheObjectOfTheNamespace(t *testing.T) {
	k8stest.Use(t, k8stest.Cluster{Objects: []flight.Resource{secret("prod"), secret("default")}})
	tests := map[string]struct{ namespace, want string }{
		"named":                    {"prod", "prod"},
		"none means default":       {"", "default"},
		"nothing in the namespace": {"test", ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			found, err := k8s.Lookup[corev1.Secret](k8s.ResourceIdentifier{
				Name: "db", Namespace: test.namespace, Kind: "Secret", ApiVersion: "v1",
			})
			if test.want == "" {
				if !k8s.IsErrNotFound(err) {
					t.Errorf("error %v, want one that is not found", err)
				}
				return
			}
			if err != nil || string(found.Data["namespace"]) != test.want {
				t.Errorf("found %v, %v, want the one in %s", found, err, test.want)
			}
		})
	}
}

func TestARefusalComesBeforeTheObject(t *testing.T) {
	asked := k8s.ResourceIdentifier{Name: "db", Namespace: "prod", Kind: "Secret", ApiVersion: "v1"}
	k8stest.Use(t, k8stest.Cluster{
		Objects: []flight.Resource{secret("prod")},
		Refused: map[k8s.ResourceIdentifier]k8s.State{asked: k8s.StateForbidden},
	})

	if _, err := k8s.Lookup[corev1.Secret](asked); !k8s.IsErrForbidden(err) {
		t.Errorf("error %v, want one that is forbidden", err)
	}
}

func TestMappingsByGroupAndByVersion(t *testing.T) {
	want := k8s.RestMapping{Version: "v1", Kind: "Secret", Resource: "secrets", Namespaced: true}
	k8stest.Use(t, k8stest.Cluster{Mappings: []k8s.RestMapping{want}})

	for _, asked := range []string{"", "/v1"} {
		if got, err := k8s.GetRestMapping(asked, "Secret"); err != nil || *got != want {
			t.Errorf("mapping of %q: %+v, %v", asked, got, err)
		}
	}
	if _, err := k8s.GetRestMapping("v1", "Secret"); err == nil {
		t.Error("v1 is a version of the core group, not a group")
	}
}

func TestTheClusterIsGoneAfterTheTest(t *testing.T) {
	t.Run("uses a cluster", func(t *testing.T) { k8stest.Use(t, k8stest.Cluster{}) })

	if _, err := k8s.Lookup[corev1.Secret](k8s.ResourceIdentifier{}); !k8s.IsErrFeatureNotGranted(err) {
		t.Errorf("error %v, want one of a host that grants nothing", err)
	}
}
