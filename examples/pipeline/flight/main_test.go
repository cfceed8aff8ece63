package main

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hangar.dev/sdk/go/flight/wasi/k8s"
	"hangar.dev/sdk/go/flight/wasi/k8s/k8stest"
)

const pipelineYAML = `
apiVersion: examples.com/v1
kind: Pipeline
metadata: {name: nightly, namespace: default}
`

func TestJobsRunInSequence(t *testing.T) {
	t.Setenv("YOKE_NAMESPACE", "default")
	tests := map[string]struct {
		live      map[string]batchv1.JobConditionType
		wantNames []string
		wantMsg   string
	}{
		"nothing yet": {
			wantNames: []string{"nightly", "nightly-one"},
			wantMsg:   "waiting for job nightly-one to complete",
		},
		"first is running": {
			live:      map[string]batchv1.JobConditionType{"nightly-one": ""},
			wantNames: []string{"nightly", "nightly-one"},
			wantMsg:   "waiting for job nightly-one to complete",
		},
		"first has completed": {
			live:      map[string]batchv1.JobConditionType{"nightly-one": batchv1.JobComplete},
			wantNames: []string{"nightly", "nightly-one", "nightly-two"},
			wantMsg:   "waiting for job nightly-two to complete",
		},
		"second has failed": {
			live:      map[string]batchv1.JobConditionType{"nightly-one": batchv1.JobComplete, "nightly-two": batchv1.JobFailed},
			wantNames: []string{"nightly", "nightly-one", "nightly-two"},
			wantMsg:   "job nightly-two failed",
		},
		"all have completed": {
			live: map[string]batchv1.JobConditionType{
				"nightly-one": batchv1.JobComplete, "nightly-two": batchv1.JobComplete, "nightly-three": batchv1.JobComplete,
			},
			wantNames: []string{"nightly", "nightly-one", "nightly-two", "nightly-three"},
			wantMsg:   "all jobs have completed",
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var cluster k8stest.Cluster
			for name, condition := range test.live {
				job := &batchv1.Job{
					TypeMeta:   metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
					ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
				}
				if condition != "" {
					job.Status.Conditions = []batchv1.JobCondition{{Type: condition, Status: corev1.ConditionTrue}}
				}
				cluster.Objects = append(cluster.Objects, job)
			}
			k8stest.Use(t, cluster)
			var output bytes.Buffer

			if err := run(strings.NewReader(pipelineYAML), &output); err != nil {
				t.Fatal(err)
			}

			var resources []struct {
				Metadata struct{ Name string }
				Status   struct{ Msg string }
			}
			if err := json.Unmarshal(output.Bytes(), &resources); err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, resource := range resources {
				names = append(names, resource.Metadata.Name)
			}
			if !slices.Equal(names, test.wantNames) {
				t.Errorf("emitted %v, want %v", names, test.wantNames)
			}
			if got := resources[0].Status.Msg; got != test.wantMsg {
				t.Errorf("status says %q, want %q", got, test.wantMsg)
			}
		})
	}
}

func TestALookupThatIsRefusedFailsTheFlight(t *testing.T) {
	t.Setenv("YOKE_NAMESPACE", "default")
	k8stest.Use(t, k8stest.Cluster{Refused: map[k8s.ResourceIdentifier]k8s.State{
		{Name: "nightly-one", Namespace: "default", Kind: "Job", ApiVersion: "batch/v1"}: k8s.StateForbidden,
	}})
	var output bytes.Buffer

	err := run(strings.NewReader(pipelineYAML), &output)

	if !k8s.IsErrForbidden(err) || output.Len() != 0 {
		t.Errorf("error %v, output %q", err, output.String())
	}
}
