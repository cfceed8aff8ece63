package helm_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"hangar.dev/sdk/go/helm"
)

// values is a type as `hangar flight from-chart` makes them.
type values struct {
	Image    *image         `json:"image,omitzero"`
	Replicas *int64         `json:"replicas,omitzero"`
	Args     []string       `json:"args,omitzero"`
	Ports    []image        `json:"ports,omitzero"`
	Anything any            `json:"anything,omitzero"`
	Rest     map[string]any `json:"-"`
}

func (v *values) UnmarshalJSON(document []byte) error {
	return helm.UnmarshalValues(document, v, &v.Rest)
}
func (v values) MarshalJSON() ([]byte, error) { return helm.MarshalValues(v, v.Rest) }

type image struct {
	Tag    *string        `json:"tag,omitzero"`
	Pinned *bool          `json:"pinned,omitzero"`
	Rest   map[string]any `json:"-"`
}

func (v *image) UnmarshalJSON(document []byte) error {
	return helm.UnmarshalValues(document, v, &v.Rest)
}
func (v image) MarshalJSON() ([]byte, error) { return helm.MarshalValues(v, v.Rest) }

func TestValuesAreTyped(t *testing.T) {
	var got values
	if err := helm.ReadValues(strings.NewReader("image: {tag: x, pinned: false}\nreplicas: 0\nargs: []\nports: [{tag: a}]\nanything: [1]\n"), &got); err != nil {
		t.Fatal(err)
	}
	want := values{
		Image: &image{Tag: new("x"), Pinned: new(false)}, Replicas: new(int64(0)), Args: []string{},
		Ports: []image{{Tag: new("a")}}, Anything: []any{1.0},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("read %+v, want %+v", got, want)
	}
}

func TestValuesReadAndWrittenAreTheSame(t *testing.T) {
	for name, document := range map[string]string{
		"nothing":              `{}`,
		"zero values":          `{"image":{"pinned":false,"tag":""},"replicas":0,"args":[],"anything":{}}`,
		"unknown members":      `{"other":1,"image":{"other":{"a":null}},"ports":[{"other":true},{}]}`,
		"null":                 `{"image":null,"replicas":null,"ports":[null],"args":[null,"a"]}`,
		"other types":          `{"image":"a:b","replicas":"3","args":"-x","ports":{"http":80}}`,
		"numbers":              `{"replicas":1.5,"anything":9007199254740993}`,
		"large numbers":        `{"replicas":1e+06,"other":123456789012}`,
		"names in other cases": `{"Image":{"TAG":"x"},"image":{"tag":"y"}}`,
	} {
		t.Run(name, func(t *testing.T) {
			var read values
			if err := json.Unmarshal([]byte(document), &read); err != nil {
				t.Fatal(err)
			}
			written, err := json.Marshal(read)
			if err != nil {
				t.Fatal(err)
			}
			var got, want any
			if json.Unmarshal(written, &got) != nil || json.Unmarshal([]byte(document), &want) != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("wrote %s, want %s", written, document)
			}
		})
	}
}

func TestAFieldThatIsSetWinsOverTheRest(t *testing.T) {
	var read values
	if err := json.Unmarshal([]byte(`{"replicas":"many","other":1}`), &read); err != nil {
		t.Fatal(err)
	}
	read.Replicas = new(int64(2))

	written, err := json.Marshal(&read)

	if want := `{"other":1,"replicas":2}`; err != nil || string(written) != want {
		t.Errorf("wrote %s, %v, want %s", written, err, want)
	}
}

func TestNoDocumentMeansNoValues(t *testing.T) {
	for name, document := range map[string]string{"empty": "", "null": "null", "a comment": "# none\n"} {
		t.Run(name, func(t *testing.T) {
			var read values
			if err := helm.ReadValues(strings.NewReader(document), &read); err != nil || !reflect.DeepEqual(read, values{}) {
				t.Errorf("read %+v, %v", read, err)
			}
		})
	}
}

func TestWhatAreNoValuesIsAnError(t *testing.T) {
	for name, document := range map[string]string{"a list": "[1]", "text": "hello", "no YAML": "a: [", "tabs": "a:\n\t- b"} {
		t.Run(name, func(t *testing.T) {
			var read values
			if err := helm.ReadValues(strings.NewReader(document), &read); err == nil || !strings.HasPrefix(err.Error(), "values: ") {
				t.Errorf("read %+v, %v", read, err)
			}
		})
	}
	broken := errors.New("no input")
	if err := helm.ReadValues(iotest.ErrReader(broken), new(values)); !errors.Is(err, broken) {
		t.Errorf("error %v, want %v", err, broken)
	}
}
