package apis_test

import (
	"reflect"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hangar.dev/sdk/go/apis"
)

type everything struct {
	Number   int
	Time     metav1.Time
	Quantity resource.Quantity
	Pointer  *int
	Map      map[string][]int
	Any      any
	Array    [2]*int
	None     *int
	NoMap    map[string]int
	hidden   string
}

func TestDeepCopyIsEqualAndSharesNothing(t *testing.T) {
	made := func() everything {
		return everything{
			Number:   1,
			Time:     metav1.NewTime(time.Unix(1, 2)),
			Quantity: resource.MustParse("100m"),
			Pointer:  new(2),
			Map:      map[string][]int{"a": {1, 2}},
			Any:      map[string]any{"list": []any{"x", 1.5}},
			Array:    [2]*int{new(3), nil},
			hidden:   "kept",
		}
	}
	original := made()

	copied := apis.DeepCopy(original)

	if !reflect.DeepEqual(copied, original) {
		t.Fatalf("copied %+v, want %+v", copied, original)
	}
	*copied.Pointer, *copied.Array[0], copied.Map["a"][0] = 0, 0, 0
	copied.Map["b"] = nil
	copied.Any.(map[string]any)["list"].([]any)[0] = "changed"
	if !reflect.DeepEqual(original, made()) {
		t.Errorf("a change of the copy changed the original: %+v", original)
	}
}

func TestDeepCopyOfAResourceIsThatOfItsGenerator(t *testing.T) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "a", Labels: map[string]string{"b": "c"}, CreationTimestamp: metav1.Now()},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Args: []string{}}}},
	}

	copied := apis.DeepCopy(pod)

	if copied == pod || !reflect.DeepEqual(copied, pod.DeepCopy()) {
		t.Errorf("copied %+v, want another %+v", copied, pod)
	}
}

func TestDeepCopyOfAnInterfaceKeepsItsType(t *testing.T) {
	if got := apis.DeepCopy[any](map[string]any{"a": nil}); !reflect.DeepEqual(got, map[string]any{"a": nil}) {
		t.Errorf("copied %#v", got)
	}
	if got := apis.DeepCopy[any](nil); got != nil {
		t.Errorf("copied %#v, want nil", got)
	}
}

func TestWhatHasNoJSONFormCannotBeCopied(t *testing.T) {
	for name, value := range map[string]any{"function": func() {}, "channel": make(chan int)} {
		t.Run(name, func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("copied")
				}
			}()
			apis.DeepCopy(value)
		})
	}
}
