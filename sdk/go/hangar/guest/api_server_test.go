package guest

import (
	"net/http"
	"net/url"
	"testing"
)

func TestTheAPIServerIsKnownByEachOfItsNames(t *testing.T) {
	for host, want := range map[string]bool{
		"hangar": true, "10.0.0.1:443": true, "10.0.0.1": true, "kubernetes.default.svc": true, "Kubernetes.Default.svc:443": true,
		"kubernetes.default.svc.cluster.local": true, "kubernetes": true, "kubernetes.default": true,
		"10.0.0.2": false, "kubernetes.example.com": false, "example.com": false, "": false, "hangar.example.com": false,
	} {
		if got := isAPIServer(host, "10.0.0.1"); got != want {
			t.Errorf("%q: got %v", host, got)
		}
	}
	if !isAPIServer("[fd00::1]:443", "fd00::1") {
		t.Error("an IPv6 address is not known")
	}
	if isAPIServer("", "") {
		t.Error("without a host and a service there is an API server")
	}
}

func TestLoopbackStaysWithinTheProgram(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost:8080": true, "localhost": true, "Localhost.:1": true, "127.0.0.1:1": true, "[::1]:1": true, "10.0.0.1:1": false, "example.com": false,
	} {
		if got := isOwn(host); got != want {
			t.Errorf("%q: got %v", host, got)
		}
	}
}

func TestAnAnswerIsAskedForAsJSON(t *testing.T) {
	for accept, want := range map[string]string{
		"application/json":                                           "application/json",
		"application/vnd.kubernetes.protobuf":                        "application/json",
		"application/vnd.kubernetes.protobuf,application/json":       "application/json",
		"application/vnd.kubernetes.protobuf, */*":                   "application/json,*/*",
		"application/cbor;as=Table;v=v1;g=meta.k8s.io":               "application/json;as=Table;v=v1;g=meta.k8s.io",
		"application/com.github.proto-openapi.spec.v2@v1.0+protobuf": "application/com.github.proto-openapi.spec.v2@v1.0+protobuf",
		"application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json": "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
	} {
		header := http.Header{"Accept": {accept}, "User-Agent": {"x"}}

		got := withJSON(header)

		if got.Get("Accept") != want || got.Get("User-Agent") != "x" {
			t.Errorf("%q: got %q", accept, got.Get("Accept"))
		}
		if header.Get("Accept") != accept {
			t.Errorf("%q: the caller's headers were changed", accept)
		}
	}
	if got := withJSON(http.Header{}); got.Get("Accept") != "" {
		t.Errorf("got %q of nothing", got.Get("Accept"))
	}
}

func TestAWatchOfAReflectorDoesNotEndByTime(t *testing.T) {
	for uri, want := range map[string]string{
		"/api/v1/pods?allowWatchBookmarks=true&resourceVersion=7&timeout=6m58s&timeoutSeconds=418&watch=true": "/api/v1/pods?allowWatchBookmarks=true&resourceVersion=7&watch=true",
		"/api/v1/pods?timeoutSeconds=300&watch=1":                                                             "/api/v1/pods?watch=1",
		"/api/v1/pods?labelSelector=a%3Db%26timeout&watch=true&timeoutSeconds=599":                            "/api/v1/pods?labelSelector=a%3Db%26timeout&watch=true",
		// Meant as an end.
		"/api/v1/pods?timeoutSeconds=299&watch=true":      "/api/v1/pods?timeoutSeconds=299&watch=true",
		"/api/v1/pods?timeout=5m&watch=true":              "/api/v1/pods?timeout=5m&watch=true",
		"/api/v1/pods?timeoutSeconds=nonsense&watch=true": "/api/v1/pods?timeoutSeconds=nonsense&watch=true",
		// No watch.
		"/api/v1/pods?timeoutSeconds=418":             "/api/v1/pods?timeoutSeconds=418",
		"/api/v1/pods?timeoutSeconds=418&watch=false": "/api/v1/pods?timeoutSeconds=418&watch=false",
		"/api/v1/pods": "/api/v1/pods",
	} {
		target, err := url.Parse("https://10.0.0.1:443" + uri)
		if err != nil {
			t.Fatal(err)
		}

		if got := apiServerURI(target); got != want {
			t.Errorf("%q: got %q", uri, got)
		}
		if target.RequestURI() != uri {
			t.Errorf("%q: the caller's URL was changed", uri)
		}
	}
}
