//go:build !wasip1

package host

// platform answers as a host that grants nothing.
type platform struct{}

const featureNotGranted = 1

func (platform) Lookup(string, string, string, string) (uint32, []byte, error) {
	return featureNotGranted, nil, nil
}

func (platform) RestMapping(string, string) (uint32, []byte, error) {
	return featureNotGranted, nil, nil
}
