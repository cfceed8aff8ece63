//go:build !wasip1

package k8s

var host imports = noHost{}

// noHost answers as a host does that grants nothing.
type noHost struct{}

func (noHost) lookup(ResourceIdentifier) (State, []byte, error) {
	return StateFeatureNotGranted, nil, nil
}

func (noHost) restMapping(string, string) (State, []byte, error) {
	return StateFeatureNotGranted, nil, nil
}
