// Package v1 is the custom resource of the app example.
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// App is a web application that needs a database before it can start.
type App struct {
	metav1.TypeMeta
	metav1.ObjectMeta `json:"metadata"`
	Spec              struct {
		Image    string   `json:"image" description:"Image of the application."`
		Replicas *int32   `json:"replicas,omitempty" description:"Number of pods. Default: 1."`
		Database Database `json:"database,omitzero" description:"The database that the application needs."`
	} `json:"spec"`
	Status struct {
		Msg string `json:"msg" description:"What the application is waiting for, in words."`
	} `json:"status,omitzero"`
}

// Database is what the application needs from its database.
type Database struct {
	Version string `json:"version,omitempty" description:"Database engine and version. Default: POSTGRES_17."`
	Region  string `json:"region,omitempty" description:"Region of the database. Default: us-central1."`
	Tier    string `json:"tier,omitempty" description:"Machine type of the database. Default: db-f1-micro."`
}
