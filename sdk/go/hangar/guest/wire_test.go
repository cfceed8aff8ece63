package guest

import (
	"bytes"
	"errors"
	"net/http"
	"reflect"
	"testing"
)

// The first example of docs/abi/kube-runtime.md.
func TestARequestHasTheBytesOfTheContract(t *testing.T) {
	got := encodeRequest("GET", "/a", nil, nil)

	want := []byte("\x03\x00\x00\x00\x00\x00\x00\x00GET" + "\x02\x00\x00\x00\x00\x00\x00\x00/a" +
		"\x00\x00\x00\x00\x00\x00\x00\x00" + "\x00\x00\x00\x00\x00\x00\x00\x00")
	if !bytes.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestHeadersAreInLowerCaseAndInOrder(t *testing.T) {
	header := http.Header{"Content-Type": {"application/json"}, "Accept": {"a", "b"}}

	got := encodeRequest("POST", "/a", header, []byte("{}"))

	count := func(n byte) string { return string([]byte{n, 0, 0, 0, 0, 0, 0, 0}) }
	want := count(4) + "POST" + count(2) + "/a" + count(2) +
		count(6) + "accept" + count(2) + count(1) + "a" + count(1) + "b" +
		count(12) + "content-type" + count(1) + count(16) + "application/json" +
		count(2) + "{}"
	if string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// 404 with two headers, one of them with two values.
const meta = "\x94\x01" + "\x02\x00\x00\x00\x00\x00\x00\x00" +
	"\x07\x00\x00\x00\x00\x00\x00\x00warning" + "\x02\x00\x00\x00\x00\x00\x00\x00" +
	"\x01\x00\x00\x00\x00\x00\x00\x00x" + "\x01\x00\x00\x00\x00\x00\x00\x00y" +
	"\x01\x00\x00\x00\x00\x00\x00\x00a" + "\x01\x00\x00\x00\x00\x00\x00\x00" + "\x00\x00\x00\x00\x00\x00\x00\x00"

func TestAnAnswerBeginsWithItsStatusAndHeaders(t *testing.T) {
	status, header, err := decodeMeta([]byte(meta))

	want := http.Header{"Warning": {"x", "y"}, "A": {""}}
	if err != nil || status != 404 || !reflect.DeepEqual(header, want) {
		t.Errorf("got %d, %v, %v", status, header, err)
	}
}

func TestAnAnswerThatIsCutIsAnError(t *testing.T) {
	for size := range len(meta) {
		if _, _, err := decodeMeta([]byte(meta)[:size]); !errors.Is(err, errBrokenAnswer) {
			t.Errorf("%d bytes: got %v", size, err)
		}
	}
}

func TestAnAnswerToTheHostIsEncodedWithoutHeaders(t *testing.T) {
	got := encodeAnswer(200, []byte("ok"))

	want := "\xc8\x00" + "\x00\x00\x00\x00\x00\x00\x00\x00" + "\x02\x00\x00\x00\x00\x00\x00\x00ok"
	if string(got) != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
