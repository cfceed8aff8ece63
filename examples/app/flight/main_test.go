package main

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hangar.dev/sdk/go/flight"
	"hangar.dev/sdk/go/flight/wasi/k8s"
	"hangar.dev/sdk/go/flight/wasi/k8s/k8stest"
)

const appYAML = `
apiVersion: examples.com/v1
kind: App
metadata: {name: shop, namespace: default}
spec: {image: "nginx:stable"}
`

func secret() flight.Resource {
	return &corev1.Secret{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"},
		ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "default"},
	}
}

func deployment(available corev1.ConditionStatus) flight.Resource {
	return &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apps/v1", Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "default"},
		Status: appsv1.DeploymentStatus{
			Conditions: []appsv1.DeploymentCondition{{Type: appsv1.DeploymentAvailable, Status: available}},
		},
	}
}

func TestTheDeploymentComesAfterTheSecret(t *testing.T) {
	t.Setenv("YOKE_NAMESPACE", "default")
	tests := map[string]struct {
		live      []flight.Resource
		wantKinds []string
		wantMsg   string
	}{
		"nothing yet": {
			wantKinds: []string{"App", "CloudSQLInstance"},
			wantMsg:   "Waiting for connection secret to be created",
		},
		"the secret exists": {
			live:      []flight.Resource{secret()},
			wantKinds: []string{"App", "CloudSQLInstance", "Deployment"},
			wantMsg:   "waiting for application to become ready",
		},
		"the deployment is not available": {
			live:      []flight.Resource{secret(), deployment(corev1.ConditionFalse)},
			wantKinds: []string{"App", "CloudSQLInstance", "Deployment"},
			wantMsg:   "waiting for application to become ready",
		},
		"the deployment is available": {
			live:      []flight.Resource{secret(), deployment(corev1.ConditionTrue)},
			wantKinds: []string{"App", "CloudSQLInstance", "Deployment"},
			wantMsg:   "application deployed and ready",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			k8stest.Use(t, k8stest.Cluster{Objects: test.live})
			var output bytes.Buffer

			if err := run(strings.NewReader(appYAML), &output); err != nil {
				t.Fatal(err)
			}

			var resources []struct {
				Kind   string
				Status json.RawMessage
			}
			if err := json.Unmarshal(output.Bytes(), &resources); err != nil {
				t.Fatal(err)
			}
			var kinds []string
			for _, resource := range resources {
				kinds = append(kinds, resource.Kind)
			}
			if !slices.Equal(kinds, test.wantKinds) {
				t.Errorf("emitted %v, want %v", kinds, test.wantKinds)
			}
			var status struct{ Msg string }
			if err := json.Unmarshal(resources[0].Status, &status); err != nil || status.Msg != test.wantMsg {
				t.Errorf("status says %s (%v), want %q", resources[0].Status, err, test.wantMsg)
			}
		})
	}
}

func TestASecretThatIsRefusedFailsTheFlight(t *testing.T) {
	k8stest.Use(t, k8stest.Cluster{Refused: map[k8s.ResourceIdentifier]k8s.State{
		{Name: "shop", Namespace: "default", Kind: "Secret", ApiVersion: "v1"}: k8s.StateForbidden,
	}})
	var output bytes.Buffer

	err := run(strings.NewReader(appYAML), &output)

	if !k8s.IsErrForbidden(err) || output.Len() != 0 {
		t.Errorf("error %v, output %q", err, output.String())
	}
}
