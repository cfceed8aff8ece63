package guest

import (
	"bytes"
	"fmt"
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
	written := &answer{header: http.Header{}}
	defer func() {
		if failure := recover(); failure != nil {
			status, body = http.StatusInternalServerError, fmt.Appendf(nil, "the handler has panicked: %v", failure)
		}
	}()
	handler.ServeHTTP(written, request)
	if written.body.Len() > metricsMax {
		return http.StatusInsufficientStorage, fmt.Appendf(nil, "%d bytes of metrics, the most is %d", written.body.Len(), metricsMax)
	}
	if written.status == 0 {
		written.status = http.StatusOK
	}
	return written.status, written.body.Bytes()
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
