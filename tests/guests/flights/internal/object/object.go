// Package object makes Kubernetes objects out of maps, for flights that should stay small: the types of
// k8s.io/api cost a module more than ten megabytes.
package object

// Map is an object, or a part of one.
type Map = map[string]any

// New returns an object with a name and nothing else.
func New(apiVersion, kind, name string) Map {
	return Map{"apiVersion": apiVersion, "kind": kind, "metadata": Map{"name": name}}
}

// ConfigMap returns a ConfigMap, without the field data if there is none.
func ConfigMap(name string, data map[string]string) Map {
	configMap := New("v1", "ConfigMap", name)
	if len(data) > 0 {
		configMap["data"] = data
	}
	return configMap
}

// Workload returns an object of the group apps that runs one container.
func Workload(kind, name, image string, labels map[string]string) Map {
	workload := New("apps/v1", kind, name)
	workload["spec"] = Map{
		"selector": Map{"matchLabels": labels},
		"template": Map{
			"metadata": Map{"labels": labels},
			"spec":     Map{"containers": []any{Map{"name": "main", "image": image}}},
		},
	}
	return workload
}
