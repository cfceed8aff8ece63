package main

import "hangar.dev/sdk/go/helm"

// Values are the values of the chart.
type Values struct {
	// Rest has what no field above can hold.
	Rest map[string]any `json:"-"`
}

// UnmarshalJSON loses nothing of what it reads.
func (values *Values) UnmarshalJSON(document []byte) error {
	return helm.UnmarshalValues(document, values, &values.Rest)
}

// MarshalJSON writes the fields that are not nil, and Rest.
func (values Values) MarshalJSON() ([]byte, error) {
	return helm.MarshalValues(values, values.Rest)
}
