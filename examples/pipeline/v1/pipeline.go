// Package v1 is the custom resource of the pipeline example.
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Pipeline runs three Jobs, each after the one before it has completed.
type Pipeline struct {
	metav1.TypeMeta
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Image string `json:"image,omitempty" description:"Image of the steps. Default: busybox:stable."`
		One   Step   `json:"one,omitzero" description:"The first step."`
		Two   Step   `json:"two,omitzero" description:"The second step, run when the first has completed."`
		Three Step   `json:"three,omitzero" description:"The third step, run when the second has completed."`
	} `json:"spec,omitzero"`
	Status struct {
		Msg string `json:"msg" description:"What the pipeline is doing, in words."`
	} `json:"status,omitzero"`
}

// Step is the work of one Job.
type Step struct {
	Command      []string          `json:"command,omitempty" description:"Command of the step. Default: true."`
	NodeSelector map[string]string `json:"nodeSelector,omitempty" description:"Labels of the nodes that the step may run on."`
	Deadline     *int64            `json:"activeDeadlineSeconds,omitempty" description:"Seconds after which the step has failed."`
}
