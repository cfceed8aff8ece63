// The flight of a Pipeline: three Jobs in sequence. A Job is emitted once the one before it has
// completed; its change of status is what evaluates the flight again.
package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	v1 "hangar.dev/examples/pipeline/v1"
	"hangar.dev/sdk/go/flight"
	"hangar.dev/sdk/go/flight/wasi/k8s"
)

func main() {
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(input io.Reader, output io.Writer) error {
	var pipeline v1.Pipeline
	if err := yaml.NewYAMLToJSONDecoder(input).Decode(&pipeline); err != nil {
		return fmt.Errorf("failed to decode stdin into pipeline: %w", err)
	}

	// The pipeline is part of the flight's own answer: so a flight sets the status of its instance.
	resources := flight.Resources{&pipeline}

	for _, job := range []*batchv1.Job{
		makeJob(&pipeline, "one", pipeline.Spec.One),
		makeJob(&pipeline, "two", pipeline.Spec.Two),
		makeJob(&pipeline, "three", pipeline.Spec.Three),
	} {
		resources = append(resources, job)

		ok, err := hasJobCompleted(&pipeline, job)
		if err != nil {
			return fmt.Errorf("failed to check job completion for %s: %w", job.Name, err)
		}
		if !ok {
			return json.NewEncoder(output).Encode(resources)
		}
	}

	pipeline.Status.Msg = "all jobs have completed"
	return json.NewEncoder(output).Encode(resources)
}

// hasJobCompleted reports whether the next Job may start, and if not says why in the status.
func hasJobCompleted(pipeline *v1.Pipeline, job *batchv1.Job) (ok bool, err error) {
	live, err := k8s.LookupResource(job)
	if err != nil && !k8s.IsErrNotFound(err) {
		return false, fmt.Errorf("failed to lookup job %s: %w", job.Name, err)
	}
	if isJobStatus(live, batchv1.JobFailed) {
		pipeline.Status.Msg = fmt.Sprintf("job %s failed", job.Name)
		return false, nil
	}
	if !isJobStatus(live, batchv1.JobComplete) {
		pipeline.Status.Msg = fmt.Sprintf("waiting for job %s to complete", job.Name)
		return false, nil
	}
	return true, nil
}

func isJobStatus(job *batchv1.Job, conditionType batchv1.JobConditionType) bool {
	return job != nil && slices.ContainsFunc(job.Status.Conditions, func(condition batchv1.JobCondition) bool {
		return condition.Type == conditionType && condition.Status == corev1.ConditionTrue
	})
}

func makeJob(pipeline *v1.Pipeline, name string, step v1.Step) *batchv1.Job {
	command := step.Command
	if len(command) == 0 {
		command = []string{"true"}
	}
	return &batchv1.Job{
		TypeMeta:   metav1.TypeMeta{APIVersion: batchv1.SchemeGroupVersion.Identifier(), Kind: "Job"},
		ObjectMeta: metav1.ObjectMeta{Name: pipeline.Name + "-" + name},
		Spec: batchv1.JobSpec{
			BackoffLimit:          new(int32), // a step that fails has failed
			ActiveDeadlineSeconds: step.Deadline,
			Template: corev1.PodTemplateSpec{
				Spec: corev1.PodSpec{
					RestartPolicy: corev1.RestartPolicyNever,
					NodeSelector:  step.NodeSelector,
					Containers: []corev1.Container{{
						Name:    "step",
						Image:   cmp.Or(pipeline.Spec.Image, "busybox:stable"),
						Command: command,
					}},
				},
			},
		},
	}
}
