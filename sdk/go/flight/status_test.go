package flight_test

import (
	"encoding/json"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hangar.dev/sdk/go/flight"
	"hangar.dev/sdk/go/openapi"
)

func TestConditionsAreAMapByTypeInTheSchema(t *testing.T) {
	schema := openapi.SchemaFor[flight.Status]().Properties["conditions"]

	if schema.Type != "array" || schema.XListType == nil || *schema.XListType != "map" || !slices.Equal(schema.XListMapKeys, []string{"type"}) {
		t.Errorf("schema %+v, want a list that is a map by type", schema)
	}
	want := []string{"lastTransitionTime", "message", "reason", "status", "type"}
	if got := schema.Items.Schema.Required; !slices.Equal(got, want) {
		t.Errorf("a condition requires %v, want %v", got, want)
	}
}

func TestAStatusWithoutConditionsIsEmpty(t *testing.T) {
	tests := map[string]struct {
		status flight.Status
		want   string
	}{
		"none": {flight.Status{}, `{}`},
		"one":  {flight.Status{Conditions: flight.Conditions{{Type: "Ready", Status: metav1.ConditionTrue}}}, `{"conditions":[{"type":"Ready","status":"True","lastTransitionTime":null,"reason":"","message":""}]}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got, err := json.Marshal(test.status); err != nil || string(got) != test.want {
				t.Errorf("encoded %s, %v, want %s", got, err, test.want)
			}
		})
	}
}
