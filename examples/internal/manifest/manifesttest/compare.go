// Package manifesttest keeps committed manifests in step with the programs that print them.
package manifesttest

import (
	"bytes"
	"os"
	"testing"

	"hangar.dev/examples/internal/manifest"
	"hangar.dev/sdk/go/apis/v1alpha1"
)

// Compare fails the test unless the file is the YAML of the Airway.
func Compare(t *testing.T, airway v1alpha1.Airway, path string) {
	t.Helper()
	committed, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var printed bytes.Buffer
	if err := manifest.Write(&printed, airway); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(printed.Bytes(), committed) {
		t.Errorf("%s is out of date: run go generate ./...", path)
	}
}
