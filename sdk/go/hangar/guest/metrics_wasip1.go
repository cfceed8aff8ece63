package guest

import (
	"encoding/binary"
	"net/http"
	"unsafe"
)

//go:wasmimport inbound-abi serve
func hostServe(kind uint32) uint64

//go:wasmimport inbound-abi respond
func hostRespond(request uint64, at unsafe.Pointer, size uint32)

const metricsKind = 0

var metrics struct {
	handler  http.Handler
	listener uint64
	asked    []uint64 // Requests that the end of the turn answers.
}

// ServeMetrics gives the host the program's metrics, as the handler writes them, when it asks. Outside of hangar
// it does nothing.
func ServeMetrics(handler http.Handler) {
	metrics.handler = handler
	metrics.listener = hostServe(metricsKind)
}

// isInbound takes a request of the host, if the wakeup is one.
func isInbound(id uint64, block []byte) bool {
	if metrics.handler == nil || id != metrics.listener {
		return false
	}
	if len(block) >= 8 {
		metrics.asked = append(metrics.asked, binary.LittleEndian.Uint64(block))
	}
	return true
}

// beginAnswers begins to answer the host's requests, and says whether there are any. Each has a goroutine, because
// collectors may ask the API server: then the answer follows in a later turn.
func beginAnswers() bool {
	asked := metrics.asked
	metrics.asked = nil
	for _, request := range asked {
		go func() {
			status, body := answerOf(metrics.handler)
			respond(request, status, body)
		}()
	}
	return len(asked) > 0
}
