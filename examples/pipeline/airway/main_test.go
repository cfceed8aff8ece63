package main

import (
	"testing"

	"hangar.dev/examples/internal/manifest/manifesttest"
)

func TestCommittedManifestIsWhatTheProgramPrints(t *testing.T) {
	manifesttest.Compare(t, airway(), "../airway.yaml")
}
