// Package v1 has the Go types of the example's resource.
package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// GroupVersion of the example's resource.
var GroupVersion = schema.GroupVersion{Group: "examples.hangar.dev", Version: "v1"}

// AddToScheme makes the types known to clients.
func AddToScheme(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion, &Memo{}, &MemoList{})
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}

// Memo is a text that its controller keeps in a ConfigMap.
type Memo struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   MemoSpec   `json:"spec,omitempty"`
	Status MemoStatus `json:"status,omitempty"`
}

// MemoSpec is the desired state.
type MemoSpec struct {
	Text string `json:"text"`
	// Seconds after which the controller looks at the memo again, as if it had changed.
	RevisitSeconds int64 `json:"revisitSeconds,omitempty"`
}

// MemoStatus is the observed state.
type MemoStatus struct {
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Words of the text.
	Words int64 `json:"words"`
	// How often the controller looked at the memo because its time had come.
	Visits int64 `json:"visits,omitempty"`
}

// MemoList is a list of memos.
type MemoList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Memo `json:"items"`
}

// DeepCopyObject returns a copy that shares no memory with the original.
func (m *Memo) DeepCopyObject() runtime.Object { return m.deepCopy() }

func (m *Memo) deepCopy() *Memo {
	out := *m
	m.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return &out
}

// DeepCopyObject returns a copy that shares no memory with the original.
func (l *MemoList) DeepCopyObject() runtime.Object {
	out := *l
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = make([]Memo, len(l.Items))
	for i := range l.Items {
		out.Items[i] = *l.Items[i].deepCopy()
	}
	return &out
}
