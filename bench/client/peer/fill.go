package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// Number of requests at a time. They share one HTTP/2 connection.
const fillers = 16

// fill creates the missing ones of `count` objects.
func fill(ctx context.Context, config *rest.Config, namespace string, count int) error {
	client, err := kubernetes.NewForConfig(forWriting(config))
	if err != nil {
		return err
	}
	if err := makeNamespace(ctx, client, namespace); err != nil {
		return err
	}
	return each(count, func(number int) error {
		var err error
		if number%2 == 0 {
			_, err = client.CoreV1().ConfigMaps(namespace).Create(ctx, configMap(number), metav1.CreateOptions{})
		} else {
			_, err = client.CoreV1().Pods(namespace).Create(ctx, pod(number), metav1.CreateOptions{})
		}
		return unlessThere(err)
	})
}

// crowd creates the missing ones of the namespaces, and of that many Pods and Secrets in each.
func crowd(ctx context.Context, config *rest.Config, namespaces, pods, secrets int) error {
	client, err := kubernetes.NewForConfig(forWriting(config))
	if err != nil {
		return err
	}
	name := func(number int) string { return fmt.Sprintf("crowd-%03d", number) }
	err = each(namespaces, func(number int) error { return makeNamespace(ctx, client, name(number)) })
	if err != nil {
		return err
	}
	return each(namespaces*(pods+secrets), func(number int) error {
		namespace, index := name(number%namespaces), number/namespaces
		var err error
		if index < pods {
			_, err = client.CoreV1().Pods(namespace).Create(ctx, watched(pod(index), index), metav1.CreateOptions{})
		} else {
			_, err = client.CoreV1().Secrets(namespace).Create(ctx, watched(secret(index), index-pods), metav1.CreateOptions{})
		}
		return unlessThere(err)
	})
}

// watched gives one of a hundred objects the label that the benchmark selects.
func watched[T metav1.Object](object T, index int) T {
	if index%100 == 0 {
		labels := object.GetLabels()
		labels["example.com/watched"] = "true"
		object.SetLabels(labels)
	}
	return object
}

func makeNamespace(ctx context.Context, client kubernetes.Interface, name string) error {
	_, err := client.CoreV1().Namespaces().Create(ctx,
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	if err := unlessThere(err); err != nil {
		return err
	}
	// Without a controller manager the account does not exist, and the API server refuses pods
	// without it.
	_, err = client.CoreV1().ServiceAccounts(name).Create(ctx,
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, metav1.CreateOptions{})
	return unlessThere(err)
}

func unlessThere(err error) error {
	if errors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// touch changes one value of each of `count` ConfigMaps.
func touch(ctx context.Context, config *rest.Config, namespace string, count int) error {
	client, err := kubernetes.NewForConfig(forWriting(config))
	if err != nil {
		return err
	}
	patch := fmt.Appendf(nil, `{"data":{"stamp":"%d"}}`, time.Now().UnixNano())
	return each(count, func(number int) error {
		_, err := client.CoreV1().ConfigMaps(namespace).Patch(ctx, configMap(2*number).Name, types.MergePatchType, patch, metav1.PatchOptions{})
		return err
	})
}

func forWriting(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.ContentType = "application/vnd.kubernetes.protobuf"
	config.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	return config
}

// each calls work for 0 to count-1 and returns the first error.
func each(count int, work func(number int) error) error {
	var (
		next   atomic.Int64
		group  sync.WaitGroup
		first  error
		failed sync.Once
	)
	for range fillers {
		group.Go(func() {
			for number := int(next.Add(1) - 1); number < count; number = int(next.Add(1) - 1) {
				if err := work(number); err != nil {
					failed.Do(func() { first = err })
					next.Store(int64(count))
				}
			}
		})
	}
	group.Wait()
	return first
}

// configMap is a configuration file of 0.7 to 2.7 KB, with another content in each.
func configMap(number int) *corev1.ConfigMap {
	random := rand.New(rand.NewPCG(uint64(number), 1))
	var properties strings.Builder
	for properties.Len() < 500+random.IntN(2000) {
		fmt.Fprintf(&properties, "service.%d.endpoint=https://backend-%d.example.com:8443/v%d\n",
			random.IntN(1000), random.IntN(1000), random.IntN(9))
	}
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Name:        fmt.Sprintf("settings-%05d", number),
			Labels:      labels(number),
			Annotations: map[string]string{"example.com/revision": fmt.Sprint(random.IntN(100000))},
		},
		Data: map[string]string{"application.properties": properties.String(), "level": "info"},
	}
}

// pod is as a chart with two containers, probes and resources makes it: 2 to 3 KB once the API server has
// filled in its defaults.
func pod(number int) *corev1.Pod {
	random := rand.New(rand.NewPCG(uint64(number), 2))
	never := false
	container := func(name string, port int32) corev1.Container {
		return corev1.Container{
			Name: name, Image: fmt.Sprintf("registry.example.com/team-%d/%s:1.%d.%d", number%20, name, random.IntN(50), random.IntN(50)),
			Args:  []string{"--config=/etc/settings/application.properties", fmt.Sprintf("--shard=%d", number)},
			Ports: []corev1.ContainerPort{{Name: name, ContainerPort: port}},
			Env: []corev1.EnvVar{
				{Name: "LOG_LEVEL", Value: "info"},
				{Name: "POD_NAME", ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.name"}}},
			},
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("128Mi")},
				Limits:   corev1.ResourceList{"memory": resource.MustParse("256Mi")},
			},
			ReadinessProbe: &corev1.Probe{ProbeHandler: corev1.ProbeHandler{
				HTTPGet: &corev1.HTTPGetAction{Path: "/readyz", Port: intstr.FromInt32(port)}}},
			VolumeMounts: []corev1.VolumeMount{{Name: "settings", MountPath: "/etc/settings"}},
		}
	}
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("web-%05d", number), Labels: labels(number),
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "apps/v1", Kind: "ReplicaSet", Name: fmt.Sprintf("web-%03d", number/10),
				UID: types.UID(fmt.Sprintf("8f86f3ec-31a7-4163-8764-%012d", number/10)),
			}},
		},
		Spec: corev1.PodSpec{
			AutomountServiceAccountToken: &never,
			Containers:                   []corev1.Container{container("web", 8080), container("metrics", 9090)},
			Volumes: []corev1.Volume{{Name: "settings", VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{
				LocalObjectReference: corev1.LocalObjectReference{Name: fmt.Sprintf("settings-%05d", number-1)}}}}},
		},
	}
}

// secret has the size of a certificate with its key, 2 to 5 KB.
func secret(number int) *corev1.Secret {
	random := rand.New(rand.NewPCG(uint64(number), 3))
	bytes := func(count int) []byte {
		out := make([]byte, count)
		for index := range out {
			out[index] = "abcdefghijklmnopqrstuvwxyz0123456789+/"[random.IntN(38)]
		}
		return out
	}
	return &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("certificate-%05d", number), Labels: labels(number)},
		Type:       corev1.SecretTypeOpaque,
		Data:       map[string][]byte{"tls.crt": bytes(1000 + random.IntN(2000)), "tls.key": bytes(300 + random.IntN(1400))},
	}
}

func labels(number int) map[string]string {
	return map[string]string{
		"app.kubernetes.io/name": "web", "app.kubernetes.io/instance": fmt.Sprintf("web-%03d", number/10),
		"app.kubernetes.io/part-of": fmt.Sprintf("team-%d", number%20),
	}
}
