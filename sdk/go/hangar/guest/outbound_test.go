package guest

import (
	"crypto/tls"
	"crypto/x509"
	"net/http"
	"strings"
	"testing"
)

func request(t *testing.T, url string) *http.Request {
	t.Helper()
	made, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestAnotherServerIsNamedByTheWholeURL(t *testing.T) {
	for url, want := range map[string]string{
		"https://acme.example.org":                  "https://acme.example.org/",
		"https://acme.example.org:8443/a%2Fb?c=d#e": "https://acme.example.org:8443/a%2Fb?c=d",
		"https://me:secret@acme.example.org/a":      "https://acme.example.org/a",
		"https://acme.example.org//twice":           "https://acme.example.org//twice",
	} {
		if got, err := outboundURI(request(t, url), nil); err != nil || got != want {
			t.Errorf("%s: got %q, %v", url, got, err)
		}
	}
}

func TestWhatTheHostCannotKeepIsAnError(t *testing.T) {
	for what, config := range map[string]*tls.Config{
		"InsecureSkipVerify":        {InsecureSkipVerify: true},
		"RootCAs":                   {RootCAs: x509.NewCertPool()},
		"client certificates":       {Certificates: []tls.Certificate{{}}},
		"ServerName":                {ServerName: "other.example.org"},
		"a verification of its own": {VerifyConnection: func(tls.ConnectionState) error { return nil }},
	} {
		if _, err := outboundURI(request(t, "https://acme.example.org/"), config); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: got %v", what, err)
		}
	}
	if _, err := outboundURI(request(t, "https://acme.example.org/"), &tls.Config{MinVersion: tls.VersionTLS12}); err != nil {
		t.Errorf("a version of TLS is refused: %v", err)
	}
}

func TestOnlyHTTPSToTheNamedServerLeaves(t *testing.T) {
	if _, err := outboundURI(request(t, "http://acme.example.org/"), nil); err == nil || !strings.Contains(err.Error(), "only https") {
		t.Errorf("got %v", err)
	}
	other := request(t, "https://acme.example.org/")
	other.Host = "vault.example.org"
	if _, err := outboundURI(other, nil); err == nil || !strings.Contains(err.Error(), "Host") {
		t.Errorf("got %v", err)
	}
	if _, err := outboundURI(request(t, "https://localhost.:8443/"), nil); err == nil || !strings.Contains(err.Error(), "loopback") {
		t.Errorf("got %v", err)
	}
	if _, err := outboundURI(&http.Request{}, nil); err == nil {
		t.Error("a request without a URL leaves")
	}
	_, err := outboundURI(request(t, "http://me:secret@acme.example.org/"), nil)
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
}

func TestAnAnswerOfTheHostIsAnError(t *testing.T) {
	header := http.Header{}
	if err := refusal(header); err != nil {
		t.Error(err)
	}
	header.Add("hangar-error", "requests to acme.example.org are not allowed here: TenantPolicy a does not list it")
	if err := refusal(header); err == nil || err.Error() != "hangar: "+header.Get("hangar-error") {
		t.Errorf("got %v", err)
	}
}
