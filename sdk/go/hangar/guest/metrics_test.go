package guest

import (
	"bytes"
	"net/http"
	"strings"
	"testing"
)

func TestMetricsAreWhatTheHandlerWrites(t *testing.T) {
	handlers := map[string]struct {
		handler http.HandlerFunc
		status  int
		body    string
	}{
		"text":        {func(w http.ResponseWriter, r *http.Request) { w.Write([]byte(r.URL.Path)) }, 200, "/metrics"},
		"nothing":     {func(http.ResponseWriter, *http.Request) {}, 200, ""},
		"an error":    {func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "broken", 500) }, 500, "broken\n"},
		"a panic":     {func(http.ResponseWriter, *http.Request) { panic("oh") }, 500, "the handler has panicked: oh"},
		"the maximum": {func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, metricsMax)) }, 200, strings.Repeat("\x00", metricsMax)},
		"too much": {func(w http.ResponseWriter, _ *http.Request) { w.Write(make([]byte, metricsMax+1)) }, 507,
			"an answer of 1048577 bytes, the most is 1048576"},
	}
	for name, want := range handlers {
		if status, body := answerOf(want.handler); status != want.status || !bytes.Equal(body, []byte(want.body)) {
			t.Errorf("%s: got %d and %d bytes", name, status, len(body))
		}
	}
}
