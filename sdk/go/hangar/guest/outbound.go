package guest

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/url"
)

// errorHeader is set by the host alone, in an answer that does not come from the server.
const errorHeader = "Hangar-Error"

// outboundURI returns the URI with which the host is asked to send a request to another server than the API server.
// The host makes the TLS connection, with its own authorities: what a program says about TLS cannot be kept.
func outboundURI(request *http.Request, config *tls.Config) (string, error) {
	if request.URL == nil || request.URL.Host == "" {
		return "", errors.New("hangar: the request names no server")
	}
	if request.URL.Scheme != "https" {
		return "", fmt.Errorf("hangar: %s: only https reaches other servers than the API server", request.URL.Redacted())
	}
	// To the host, these are names of the API server.
	if isOwn(request.URL.Host) {
		return "", fmt.Errorf("hangar: %s: loopback is within the program, which the host cannot reach", request.URL.Redacted())
	}
	if request.Host != "" && request.Host != request.URL.Host {
		return "", fmt.Errorf("hangar: %s: a Host other than the URL's cannot be sent", request.URL.Redacted())
	}
	if what := beyondTheHost(config); what != "" {
		return "", fmt.Errorf("hangar: %s: the host makes TLS connections and does not take %s from a program", request.URL.Redacted(), what)
	}
	// net/http has made a header of the user.
	target := url.URL{Scheme: "https", Host: request.URL.Host, Path: request.URL.Path, RawPath: request.URL.RawPath,
		RawQuery: request.URL.RawQuery}
	return "https://" + target.Host + target.RequestURI(), nil
}

// beyondTheHost names what of a TLS configuration would be lost.
func beyondTheHost(config *tls.Config) string {
	switch {
	case config == nil:
		return ""
	case config.InsecureSkipVerify:
		return "InsecureSkipVerify"
	case config.RootCAs != nil:
		return "RootCAs"
	case len(config.Certificates) > 0 || config.GetClientCertificate != nil:
		return "client certificates"
	case config.ServerName != "":
		return "ServerName"
	case config.VerifyPeerCertificate != nil || config.VerifyConnection != nil:
		return "a verification of its own"
	}
	return ""
}

// refusal returns the error with which the host answers in place of the server.
func refusal(header http.Header) error {
	if text := header.Get(errorHeader); text != "" {
		return errors.New("hangar: " + text)
	}
	return nil
}
