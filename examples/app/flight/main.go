// The flight of an App: a database first, then, once the provider has written its connection secret,
// the Deployment that reads it. No pod ever starts without its database.
package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/yaml"

	databasev1beta1 "hangar.dev/examples/app/database/v1beta1"
	v1 "hangar.dev/examples/app/v1"
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
	var app v1.App
	if err := yaml.NewYAMLToJSONDecoder(input).Decode(&app); err != nil {
		return fmt.Errorf("failed to decode stdin into App instance: %w", err)
	}

	resources := flight.Resources{&app}

	database := makeDatabase(&app)
	resources = append(resources, database)

	secret, err := k8s.Lookup[corev1.Secret](k8s.ResourceIdentifier{
		Name:       database.Spec.WriteConnectionSecretToReference.Name,
		Namespace:  database.Spec.WriteConnectionSecretToReference.Namespace,
		ApiVersion: "v1",
		Kind:       "Secret",
	})
	if err != nil {
		if k8s.IsErrNotFound(err) {
			// The host remembers the lookup: the secret's creation evaluates the flight again.
			app.Status.Msg = "Waiting for connection secret to be created"
			return json.NewEncoder(output).Encode(resources)
		}
		return fmt.Errorf("failed to fetch connection secret: %w", err)
	}

	deployment := makeDeployment(&app, secret)
	resources = append(resources, deployment)

	live, err := k8s.LookupResource(deployment)
	if err != nil && !k8s.IsErrNotFound(err) {
		return fmt.Errorf("failed to lookup deployment: %w", err)
	}

	if isAvailable(live) {
		app.Status.Msg = "application deployed and ready"
	} else {
		app.Status.Msg = "waiting for application to become ready"
	}
	return json.NewEncoder(output).Encode(resources)
}

func isAvailable(deployment *appsv1.Deployment) bool {
	return deployment != nil && slices.ContainsFunc(deployment.Status.Conditions, func(condition appsv1.DeploymentCondition) bool {
		return condition.Type == appsv1.DeploymentAvailable && condition.Status == corev1.ConditionTrue
	})
}

func makeDatabase(app *v1.App) *databasev1beta1.CloudSQLInstance {
	return &databasev1beta1.CloudSQLInstance{
		TypeMeta: metav1.TypeMeta{
			APIVersion: databasev1beta1.SchemeGroupVersion.Identifier(),
			Kind:       "CloudSQLInstance",
		},
		ObjectMeta: metav1.ObjectMeta{Name: app.Name},
		Spec: databasev1beta1.CloudSQLInstanceSpec{
			ForProvider: databasev1beta1.CloudSQLInstanceParameters{
				DatabaseVersion: cmp.Or(app.Spec.Database.Version, "POSTGRES_17"),
				Region:          cmp.Or(app.Spec.Database.Region, "us-central1"),
				Settings:        databasev1beta1.Settings{Tier: cmp.Or(app.Spec.Database.Tier, "db-f1-micro")},
			},
			ResourceSpec: databasev1beta1.ResourceSpec{
				WriteConnectionSecretToReference: &databasev1beta1.SecretReference{
					Name:      app.Name,
					Namespace: app.Namespace,
				},
			},
		},
	}
}

func makeDeployment(app *v1.App, secret *corev1.Secret) *appsv1.Deployment {
	labels := map[string]string{"app.kubernetes.io/name": app.Name}
	return &appsv1.Deployment{
		TypeMeta: metav1.TypeMeta{
			APIVersion: appsv1.SchemeGroupVersion.Identifier(),
			Kind:       "Deployment",
		},
		ObjectMeta: metav1.ObjectMeta{Name: app.Name},
		Spec: appsv1.DeploymentSpec{
			Replicas: app.Spec.Replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec: corev1.PodSpec{
					Containers: []corev1.Container{{
						Name:  "app",
						Image: app.Spec.Image,
						EnvFrom: []corev1.EnvFromSource{{
							SecretRef: &corev1.SecretEnvSource{
								LocalObjectReference: corev1.LocalObjectReference{Name: secret.Name},
							},
						}},
					}},
				},
			},
		},
	}
}
