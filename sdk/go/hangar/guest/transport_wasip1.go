package guest

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"runtime"
	"sync"
	"unsafe"
)

// Transport is an http.RoundTripper whose requests the host sends: to the API server, and by https to other servers
// that a TenantPolicy allows.
type Transport struct{}

// RoundTrip implements http.RoundTripper.
func (Transport) RoundTrip(request *http.Request) (*http.Response, error) {
	return roundTrip(request, nil)
}

// config is that of the transport that the program uses.
func roundTrip(request *http.Request, config *tls.Config) (*http.Response, error) {
	body, err := takeBody(request)
	if err != nil {
		return nil, err
	}
	isOutbound := request.URL == nil || !isAPIServer(request.URL.Host, os.Getenv("KUBERNETES_SERVICE_HOST"))
	var encoded []byte
	if isOutbound {
		uri, err := outboundURI(request, config)
		if err != nil {
			return nil, err
		}
		encoded = encodeRequest(methodOf(request), uri, request.Header, body)
	} else {
		encoded = encodeRequest(methodOf(request), apiServerURI(request.URL), withJSON(request.Header), body)
	}
	if err := request.Context().Err(); err != nil {
		return nil, err
	}
	if !started {
		return nil, errNotStarted
	}
	call := begin(encoded, !isOutbound && isStream(request))
	stopWaiting := context.AfterFunc(request.Context(), func() { call.cancel(context.Cause(request.Context())) })

	meta, err := call.head()
	if err != nil {
		return nil, err
	}
	status, header, err := decodeMeta(meta)
	if err != nil {
		return nil, err
	}
	if isOutbound {
		if err := refusal(header); err != nil {
			stopWaiting()
			call.cancel(err)
			return nil, err
		}
	}
	return &http.Response{
		Status: fmt.Sprintf("%d %s", status, http.StatusText(status)), StatusCode: status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: header, ContentLength: -1, Request: request,
		Body: &responseBody{call: call, stopWaiting: stopWaiting},
	}, nil
}

// As a command the program would run in one turn that never ends: runUntilIdle did not call its main.
var errNotStarted = errors.New("hangar: this module is not one that the host can wake: build it with `hangar build go`, " +
	"or with -buildmode=c-shared")

// takeBody reads and closes the body, as a RoundTripper has to in any case.
func takeBody(request *http.Request) ([]byte, error) {
	if request.Body == nil {
		return nil, nil
	}
	defer request.Body.Close()
	return io.ReadAll(request.Body)
}

func methodOf(request *http.Request) string {
	if request.Method == "" {
		return http.MethodGet
	}
	return request.Method
}

// Whether the answer should arrive piece by piece.
func isStream(request *http.Request) bool {
	query := request.URL.Query()
	return isTrue(query, "watch") || isTrue(query, "follow")
}

// call is a request that the host is working on.
type call struct {
	id uint64

	mutex   sync.Mutex
	changed sync.Cond
	meta    []byte
	hasMeta bool
	pieces  [][]byte
	isDone  bool
	err     error // Why no caller waits for it any more.
}

func begin(request []byte, isStream bool) *call {
	stream := uint32(0)
	if isStream {
		stream = 1
	}
	begun := &call{id: hostRequest(unsafe.Pointer(unsafe.SliceData(request)), uint32(len(request)), stream)}
	runtime.KeepAlive(request)
	begun.changed.L = &begun.mutex
	calls.Lock()
	calls.byID[begun.id] = begun
	calls.Unlock()
	return begun
}

func (c *call) deliver(block []byte, isLast bool) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	switch {
	case c.err != nil:
	case !c.hasMeta:
		c.meta, c.hasMeta = block, true
	case len(block) > 0:
		c.pieces = append(c.pieces, block)
	}
	c.isDone = c.isDone || isLast
	c.changed.Broadcast()
}

// cancel ends it at the host. The waiting caller receives err.
func (c *call) cancel(err error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.err != nil {
		return
	}
	c.err, c.pieces = err, nil
	c.changed.Broadcast()
	if c.isDone {
		return
	}
	hostCancel(c.id)
	calls.Lock()
	delete(calls.byID, c.id)
	calls.Unlock()
}

// head waits for the start of the answer.
func (c *call) head() ([]byte, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for !c.hasMeta && c.err == nil {
		c.changed.Wait()
	}
	return c.meta, c.err
}

func (c *call) read(p []byte) (int, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	for len(c.pieces) == 0 && !c.isDone && c.err == nil {
		c.changed.Wait()
	}
	if c.err != nil {
		return 0, c.err
	}
	if len(c.pieces) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.pieces[0])
	if c.pieces[0] = c.pieces[0][n:]; len(c.pieces[0]) == 0 {
		c.pieces = c.pieces[1:]
	}
	return n, nil
}

type responseBody struct {
	call        *call
	stopWaiting func() bool
}

func (b *responseBody) Read(p []byte) (int, error) { return b.call.read(p) }

func (b *responseBody) Close() error {
	b.stopWaiting()
	b.call.cancel(http.ErrBodyReadAfterClose)
	return nil
}
