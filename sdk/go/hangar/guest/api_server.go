package guest

import (
	"net"
	"net/http"
	"slices"
	"strings"
)

// APIServer is the host's name in URLs of requests to the API server. It is never resolved.
const APIServer = "hangar"

// isAPIServer says whether a request to `host`, as written in a URL, goes to the API server. `service` is
// the API server's address, which pods have in KUBERNETES_SERVICE_HOST.
func isAPIServer(host, service string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	name, _ := strings.CutSuffix(strings.ToLower(host), ".")
	return name == APIServer || (service != "" && name == strings.ToLower(service)) || name == "kubernetes" ||
		name == "kubernetes.default" || name == "kubernetes.default.svc" || strings.HasPrefix(name, "kubernetes.default.svc.")
}

// isOwn says whether a request stays within the program: no other program can reach its listeners.
func isOwn(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	address := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || (address != nil && address.IsLoopback())
}

// Content types that the host's cache does not answer with.
var binaryTypes = []string{"application/vnd.kubernetes.protobuf", "application/cbor"}

// withJSON returns the headers with an Accept that offers JSON in place of types that only the API server
// itself could answer with. The caller's headers are not changed.
func withJSON(header http.Header) http.Header {
	accepted := header.Values("Accept")
	asked := strings.Join(accepted, ",")
	if !slices.ContainsFunc(binaryTypes, func(name string) bool { return strings.Contains(asked, name) }) {
		return header
	}
	var rest []string
	for _, one := range strings.Split(asked, ",") {
		one = strings.TrimSpace(one)
		name, parameters, _ := strings.Cut(one, ";")
		if slices.Contains(binaryTypes, strings.TrimSpace(name)) {
			one = "application/json"
			if parameters != "" {
				one += ";" + parameters
			}
		}
		if one != "" && !slices.Contains(rest, one) {
			rest = append(rest, one)
		}
	}
	header = header.Clone()
	header.Set("Accept", strings.Join(rest, ","))
	return header
}
