package guest

import (
	"net/http"
	"runtime"
	"unsafe"
)

const webhooksKind = 1

var webhooks struct {
	handler  http.Handler
	listener uint64
}

// ServeWebhooks gives the host the answers of the handler to reviews and conversions that the API server sends to
// this program, and ends when done is closed. Outside of hangar it only waits for that.
func ServeWebhooks(handler http.Handler, done <-chan struct{}) {
	webhooks.handler = handler
	webhooks.listener = hostServe(webhooksKind)
	<-done
	webhooks.handler = nil
	hostCancel(webhooks.listener)
}

// isReview begins to answer a request of the host, if the wakeup is one for the webhooks.
func isReview(id uint64, block []byte) bool {
	handler := webhooks.handler
	if handler == nil || id != webhooks.listener {
		return false
	}
	in, err := decodeInbound(block)
	if err != nil {
		return true
	}
	go func() {
		status, body := reviewed(handler, in)
		respond(in.id, status, body)
	}()
	return true
}

// respond answers a request of the host.
func respond(request uint64, status int, body []byte) {
	bytes := encodeAnswer(status, body)
	hostRespond(request, unsafe.Pointer(unsafe.SliceData(bytes)), uint32(len(bytes)))
	runtime.KeepAlive(bytes)
}
