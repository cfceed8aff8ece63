// Package v1beta1 is as much of a cloud provider's database API as the app example needs: an object
// that asks for a database, and the name of the secret that its controller writes when there is one.
package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// SchemeGroupVersion is the API that the types of this package belong to.
var SchemeGroupVersion = schema.GroupVersion{Group: "database.gcp.crossplane.io", Version: "v1beta1"}

// CloudSQLInstance asks for a database. It is cluster scoped.
type CloudSQLInstance struct {
	metav1.TypeMeta
	metav1.ObjectMeta `json:"metadata"`
	Spec              CloudSQLInstanceSpec `json:"spec"`
}

// CloudSQLInstanceSpec is the database, and where its credentials go.
type CloudSQLInstanceSpec struct {
	ForProvider CloudSQLInstanceParameters `json:"forProvider"`
	ResourceSpec
}

// CloudSQLInstanceParameters describe the database.
type CloudSQLInstanceParameters struct {
	DatabaseVersion string   `json:"databaseVersion"`
	Region          string   `json:"region"`
	Settings        Settings `json:"settings"`
}

// Settings are those of the machine under the database.
type Settings struct {
	Tier string `json:"tier"`
}

// ResourceSpec is what all resources of the provider have in common.
type ResourceSpec struct {
	WriteConnectionSecretToReference *SecretReference `json:"writeConnectionSecretToRef,omitempty"`
}

// SecretReference names a secret that the provider writes.
type SecretReference struct {
	Name      string `json:"name"`
	Namespace string `json:"namespace"`
}
