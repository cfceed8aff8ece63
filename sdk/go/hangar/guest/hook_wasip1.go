package guest

import (
	"net/http"
	_ "unsafe"
)

// hook is where net/http's transports end in a program that `hangar build go` has made: that command changes a
// file of the standard library, which calls hook with the transport and the unchanged continuation. In other programs
// no code reads this variable.
//
//go:linkname hook net/http.hangarRoundTrip
var hook func(of *http.Transport, request *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error)

func init() {
	hook = func(of *http.Transport, request *http.Request, next func(*http.Request) (*http.Response, error)) (*http.Response, error) {
		if request.URL != nil && isOwn(request.URL.Host) {
			return next(request)
		}
		return roundTrip(request, of.TLSClientConfig)
	}
}
