package main

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	kind     = "TestResource"
	resource = "testresources"
)

var groupVersion = schema.GroupVersion{Group: "amurant.io", Version: "v1"}

// TestResource is a number that goes around.
type TestResource struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec TestResourceSpec `json:"spec"`
}

// TestResourceSpec is the number, and when it was copied.
type TestResourceSpec struct {
	Nonce     int64            `json:"nonce"`
	UpdatedAt metav1.MicroTime `json:"updated_at"`
}

// DeepCopyObject makes it a runtime.Object.
func (in *TestResource) DeepCopyObject() runtime.Object {
	out := &TestResource{TypeMeta: in.TypeMeta, Spec: in.Spec}
	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return out
}

// TestResourceList is the answer to a list request.
type TestResourceList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`

	Items []TestResource `json:"items"`
}

// DeepCopyObject makes it a runtime.Object.
func (in *TestResourceList) DeepCopyObject() runtime.Object {
	out := &TestResourceList{TypeMeta: in.TypeMeta, Items: make([]TestResource, len(in.Items))}
	in.ListMeta.DeepCopyInto(&out.ListMeta)
	for i := range in.Items {
		out.Items[i] = *in.Items[i].DeepCopyObject().(*TestResource)
	}
	return out
}

func addToScheme(scheme *runtime.Scheme) {
	scheme.AddKnownTypes(groupVersion, &TestResource{}, &TestResourceList{})
	metav1.AddToGroupVersion(scheme, groupVersion)
}
