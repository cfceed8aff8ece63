package guest

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"net/http"
	"time"
)

const (
	// Bytes of one answer that the host takes, without what its encoding adds.
	webhookAnswerMax = 4<<20 - 1024
	// The longest that the API server waits for a webhook.
	webhookTimeoutMax = 30 * time.Second
)

// inbound is a request of the host.
type inbound struct {
	id     uint64
	method string
	uri    string
	header http.Header
	body   []byte
}

// request returns it as a server's, with the context of the webhook's timeout.
func (in inbound) request() (*http.Request, context.CancelFunc, error) {
	request, err := http.NewRequest(in.method, in.uri, bytes.NewReader(in.body))
	if err != nil {
		return nil, nil, err
	}
	request.Header = in.header
	request.RequestURI = in.uri
	timeout := webhookTimeoutMax
	if asked, err := time.ParseDuration(request.URL.Query().Get("timeout")); err == nil && asked > 0 {
		timeout = min(timeout, asked)
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	return request.WithContext(ctx), cancel, nil
}

// reviewed returns the handler's answer to a webhook.
func reviewed(handler http.Handler, in inbound) (status int, body []byte) {
	request, cancel, err := in.request()
	if err != nil {
		return http.StatusBadRequest, []byte(err.Error())
	}
	defer cancel()
	return handled(handler, request, webhookAnswerMax)
}

// handled returns the handler's answer, which has at most that many bytes.
func handled(handler http.Handler, request *http.Request, most int) (status int, body []byte) {
	written := &answer{header: http.Header{}}
	defer func() {
		if failure := recover(); failure != nil {
			status, body = http.StatusInternalServerError, fmt.Appendf(nil, "the handler has panicked: %v", failure)
		}
	}()
	handler.ServeHTTP(written, request)
	if written.body.Len() > most {
		return http.StatusInsufficientStorage, fmt.Appendf(nil, "an answer of %d bytes, the most is %d", written.body.Len(), most)
	}
	if written.status == 0 {
		written.status = http.StatusOK
	}
	return written.status, written.body.Bytes()
}

// decodeInbound reads a request of the host.
func decodeInbound(block []byte) (inbound, error) {
	if len(block) < 8 {
		return inbound{}, errBrokenAnswer
	}
	read := reader{bytes: block[8:]}
	in := inbound{id: binary.LittleEndian.Uint64(block), method: read.text(), uri: read.text(), header: read.header()}
	in.body = []byte(read.text())
	return in, read.err
}
