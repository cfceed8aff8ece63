// Command converter converts backends between v1 {image, replicas, labels} and v2 {img, replicas,
// meta: {labels}}, as its author would write it: through Go types, which have no status.
//
// A backend's label "converter" makes it misbehave, for the tests: see misbehave().
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"time"
)

type typeMeta struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
}

type status struct {
	Status  string `json:"status"`
	Message string `json:"message,omitempty"`
}

type review struct {
	typeMeta
	Request  *request  `json:"request,omitempty"`
	Response *response `json:"response,omitempty"`
}

type request struct {
	UID               string            `json:"uid"`
	DesiredAPIVersion string            `json:"desiredAPIVersion"`
	Objects           []json.RawMessage `json:"objects"`
}

type response struct {
	UID              string `json:"uid"`
	ConvertedObjects []any  `json:"convertedObjects"`
	Result           status `json:"result"`
}

type object struct {
	typeMeta
	Metadata map[string]any `json:"metadata"`
}

type v1 struct {
	object
	Spec struct {
		Image    string            `json:"image"`
		Replicas int               `json:"replicas"`
		Labels   map[string]string `json:"labels,omitempty"`
	} `json:"spec"`
}

type v2 struct {
	object
	Spec struct {
		Img      string `json:"img"`
		Replicas int    `json:"replicas"`
		Meta     struct {
			Labels map[string]string `json:"labels,omitempty"`
		} `json:"meta"`
	} `json:"spec"`
}

func convert(raw json.RawMessage, version string) (any, error) {
	if strings.HasSuffix(version, "/v2") {
		var from v1
		to := v2{}
		if err := json.Unmarshal(raw, &from); err != nil {
			return nil, err
		}
		to.object = from.object
		to.APIVersion = version
		to.Spec.Img, to.Spec.Replicas, to.Spec.Meta.Labels = from.Spec.Image, from.Spec.Replicas, from.Spec.Labels
		return to, nil
	}
	var from v2
	to := v1{}
	if err := json.Unmarshal(raw, &from); err != nil {
		return nil, err
	}
	to.object = from.object
	to.APIVersion = version
	to.Spec.Image, to.Spec.Replicas, to.Spec.Labels = from.Spec.Img, from.Spec.Replicas, from.Spec.Meta.Labels
	return to, nil
}

func misbehave(how string, answer *response) {
	switch how {
	case "loop":
		for {
		}
	case "slow":
		time.Sleep(2 * time.Second)
	case "exit":
		fmt.Fprintln(os.Stderr, "the converter is out of order")
		os.Exit(3)
	case "garbage":
		fmt.Println("this is not JSON")
		os.Exit(0)
	case "lie":
		answer.UID = "another"
	case "fewer":
		answer.ConvertedObjects = nil
	case "metadata":
		for _, one := range answer.ConvertedObjects {
			if converted, ok := one.(v1); ok {
				converted.Metadata["name"] = "another"
			}
		}
	case "refuse":
		answer.ConvertedObjects = nil
		answer.Result = status{Status: "Failure", Message: "backends of this kind cannot be converted"}
	}
}

func run() error {
	if len(os.Args) != 1 || os.Args[0] != "converter" || len(os.Environ()) != 0 {
		return fmt.Errorf("arguments %q, environment %q", os.Args, os.Environ())
	}
	var asked review
	if err := json.NewDecoder(os.Stdin).Decode(&asked); err != nil {
		return err
	}
	answer := response{UID: asked.Request.UID, Result: status{Status: "Success"}}
	how := ""
	for _, raw := range asked.Request.Objects {
		var known object
		if err := json.Unmarshal(raw, &known); err != nil {
			return err
		}
		if labels, ok := known.Metadata["labels"].(map[string]any); ok {
			if label, ok := labels["converter"].(string); ok && strings.HasSuffix(asked.Request.DesiredAPIVersion, "/v1") {
				how = label
			}
		}
		converted, err := convert(raw, asked.Request.DesiredAPIVersion)
		if err != nil {
			return err
		}
		answer.ConvertedObjects = append(answer.ConvertedObjects, converted)
	}
	misbehave(how, &answer)
	return json.NewEncoder(os.Stdout).Encode(review{typeMeta: asked.typeMeta, Response: &answer})
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
