package guest

import (
	"encoding/binary"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// encodedInbound is a request as the host encodes it: its id, then what a request of the program consists of.
func encodedInbound(id uint64, uri, body string) []byte {
	return append(binary.LittleEndian.AppendUint64(nil, id),
		encodeRequest("POST", uri, http.Header{"Content-Type": {"application/json"}}, []byte(body))...)
}

func TestARequestOfTheHostIsRead(t *testing.T) {
	in, err := decodeInbound(encodedInbound(258, "/validate?timeout=3s", "{}"))

	if err != nil || in.id != 258 || in.method != "POST" || in.uri != "/validate?timeout=3s" || string(in.body) != "{}" ||
		in.header.Get("Content-Type") != "application/json" {
		t.Errorf("got %+v, %v", in, err)
	}
}

func TestARequestOfTheHostThatIsCutIsAnError(t *testing.T) {
	whole := encodedInbound(1, "/validate", "{}")
	for size := range len(whole) {
		if _, err := decodeInbound(whole[:size]); !errors.Is(err, errBrokenAnswer) {
			t.Errorf("%d bytes: got %v", size, err)
		}
	}
}

func TestAHandlerSeesAWebhookAsAServerWould(t *testing.T) {
	in, err := decodeInbound(encodedInbound(1, "/validate?timeout=3s", "the review"))
	if err != nil {
		t.Fatal(err)
	}
	status, body := reviewed(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		deadline, isLimited := r.Context().Deadline()
		if !isLimited || time.Until(deadline) > 3*time.Second {
			t.Errorf("the deadline is %v", deadline)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, r.Method+" "+r.URL.Path+" "+r.Header.Get("Content-Type")+" "+string(text))
	}), in)

	if status != 200 || string(body) != "POST /validate application/json the review" {
		t.Errorf("got %d %s", status, body)
	}
}

func TestAnAnswerToAWebhookIsBoundedAndNeverAPanic(t *testing.T) {
	in := inbound{method: "POST", uri: "/validate"}
	large := func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, webhookAnswerMax+1)) }
	panics := func(http.ResponseWriter, *http.Request) { panic("oh") }

	if status, body := reviewed(http.HandlerFunc(large), in); status != 507 || !strings.Contains(string(body), "the most is") {
		t.Errorf("got %d and %d bytes", status, len(body))
	}
	if status, body := reviewed(http.HandlerFunc(panics), in); status != 500 || string(body) != "the handler has panicked: oh" {
		t.Errorf("got %d %s", status, body)
	}
	if status, _ := reviewed(http.HandlerFunc(panics), inbound{method: "POST", uri: "\x7f"}); status != 400 {
		t.Errorf("got %d for a target that is none", status)
	}
}

func TestTheTimeoutOfAConversionIsTheLongest(t *testing.T) {
	request, cancel, err := inbound{method: "POST", uri: "/convert?timeout=never"}.request()
	if err != nil {
		t.Fatal(err)
	}
	defer cancel()
	if deadline, isLimited := request.Context().Deadline(); !isLimited || time.Until(deadline) < webhookTimeoutMax/2 {
		t.Errorf("the deadline is %v", deadline)
	}
}
