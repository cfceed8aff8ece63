package guest

import (
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
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

// Client-go's reflectors ask for watches of five to ten minutes, so that a client finds another API server some day.
const reflectorTimeoutMin = 300

// apiServerURI returns the URI of a request to the API server. A watch for five minutes or more becomes one without end:
// the host keeps it open, and beginning it again would wake the program. A shorter time is meant as an end.
func apiServerURI(target *url.URL) string {
	query := target.Query()
	seconds, err := strconv.ParseInt(query.Get("timeoutSeconds"), 10, 64)
	if err != nil || seconds < reflectorTimeoutMin || !isTrue(query, "watch") {
		return target.RequestURI()
	}
	lasting := *target
	lasting.RawQuery = strings.Join(slices.DeleteFunc(strings.Split(target.RawQuery, "&"), func(one string) bool {
		name, _, _ := strings.Cut(one, "=")
		return name == "timeoutSeconds" || name == "timeout"
	}), "&")
	return lasting.RequestURI()
}

func isTrue(query url.Values, name string) bool {
	value := query.Get(name)
	return value == "true" || value == "1"
}
