// A flight for benchmarks, as large as flights that use the types of k8s.io/api. Builds of it with
// different values of main.variant (-ldflags "-X main.variant=...") are modules with different digests
// and the same cost.
package main

import (
	"fmt"
	"os"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/yaml"

	"hangar.dev/sdk/go/flight"
	"hangar.dev/sdk/go/flight/wasi/k8s"
)

var variant = "none"

// heavy is the custom resource.
type heavy struct {
	metav1.TypeMeta
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Image    string `json:"image"`
		Replicas int32  `json:"replicas"`
		Secret   string `json:"secret,omitempty"`
	} `json:"spec"`
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run() error {
	var instance heavy
	if err := yaml.NewYAMLToJSONDecoder(os.Stdin).Decode(&instance); err != nil {
		return fmt.Errorf("failed to decode stdin: %w", err)
	}
	labels := map[string]string{"app": instance.Name, "variant": variant}

	var environment []corev1.EnvFromSource
	if instance.Spec.Secret != "" {
		secret, err := k8s.Lookup[corev1.Secret](k8s.ResourceIdentifier{
			Name: instance.Spec.Secret, Namespace: instance.Namespace, Kind: "Secret", ApiVersion: "v1",
		})
		if err != nil {
			return fmt.Errorf("failed to lookup secret: %w", err)
		}
		environment = []corev1.EnvFromSource{{
			SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: secret.Name}},
		}}
	}

	return flight.Write(os.Stdout, flight.Resources{
		&appsv1.Deployment{
			TypeMeta:   metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.Identifier(), Kind: "Deployment"},
			ObjectMeta: metav1.ObjectMeta{Name: instance.Name, Labels: labels},
			Spec: appsv1.DeploymentSpec{
				Replicas: &instance.Spec.Replicas,
				Selector: &metav1.LabelSelector{MatchLabels: labels},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: labels},
					Spec: corev1.PodSpec{
						Containers: []corev1.Container{{Name: "main", Image: instance.Spec.Image, EnvFrom: environment}},
					},
				},
			},
		},
		&corev1.Service{
			TypeMeta:   metav1.TypeMeta{APIVersion: corev1.SchemeGroupVersion.Identifier(), Kind: "Service"},
			ObjectMeta: metav1.ObjectMeta{Name: instance.Name, Labels: labels},
			Spec: corev1.ServiceSpec{
				Selector: labels,
				Ports:    []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080)}},
			},
		},
	})
}
