package guest

import (
	"bytes"
	"net/http"
)

// Bytes of metrics that the host takes of one program.
const metricsMax = 1 << 20

// answerOf returns the handler's answer to a request for metrics.
func answerOf(handler http.Handler) (status int, body []byte) {
	request, err := http.NewRequest(http.MethodGet, "/metrics", nil)
	if err != nil {
		return http.StatusInternalServerError, []byte(err.Error())
	}
	return handled(handler, request, metricsMax)
}

// answer is an http.ResponseWriter.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(status int) {
	if a.status == 0 {
		a.status = status
	}
}

func (a *answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	return a.body.Write(p)
}
