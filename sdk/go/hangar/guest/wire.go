package guest

import (
	"encoding/binary"
	"errors"
	"net/http"
	"slices"
	"strings"
)

// bincode 1.3 with its default options: integers little-endian, lengths and counts of 64 bits.

func appendText(to []byte, text string) []byte {
	to = binary.LittleEndian.AppendUint64(to, uint64(len(text)))
	return append(to, text...)
}

// encodeRequest returns a request in the host's encoding. Names of headers are sorted, so that equal requests
// have equal bytes.
func encodeRequest(method, uri string, header http.Header, body []byte) []byte {
	names := make([]string, 0, len(header))
	for name := range header {
		names = append(names, name)
	}
	slices.Sort(names)
	bytes := make([]byte, 0, 512+len(body))
	bytes = appendText(bytes, method)
	bytes = appendText(bytes, uri)
	bytes = binary.LittleEndian.AppendUint64(bytes, uint64(len(names)))
	for _, name := range names {
		bytes = appendText(bytes, strings.ToLower(name))
		bytes = binary.LittleEndian.AppendUint64(bytes, uint64(len(header[name])))
		for _, value := range header[name] {
			bytes = appendText(bytes, value)
		}
	}
	bytes = binary.LittleEndian.AppendUint64(bytes, uint64(len(body)))
	return append(bytes, body...)
}

// encodeAnswer returns an answer to a request of the host, without headers.
func encodeAnswer(status int, body []byte) []byte {
	bytes := make([]byte, 0, 18+len(body))
	bytes = binary.LittleEndian.AppendUint16(bytes, uint16(status))
	bytes = binary.LittleEndian.AppendUint64(bytes, 0)
	bytes = binary.LittleEndian.AppendUint64(bytes, uint64(len(body)))
	return append(bytes, body...)
}

var errBrokenAnswer = errors.New("hangar: the host's answer is not one of this contract")

// reader reads values in order. After an error, all values are empty.
type reader struct {
	bytes []byte
	err   error
}

func (r *reader) number() uint64 {
	if r.err != nil || len(r.bytes) < 8 {
		r.err = errBrokenAnswer
		return 0
	}
	value := binary.LittleEndian.Uint64(r.bytes)
	r.bytes = r.bytes[8:]
	return value
}

func (r *reader) text() string {
	size := r.number()
	if size > uint64(len(r.bytes)) {
		r.err = errBrokenAnswer
		return ""
	}
	value := string(r.bytes[:size])
	r.bytes = r.bytes[size:]
	return value
}

func (r *reader) header() http.Header {
	header := http.Header{}
	for names := r.number(); names > 0 && r.err == nil; names-- {
		name := r.text()
		for values := r.number(); values > 0 && r.err == nil; values-- {
			header.Add(name, r.text())
		}
	}
	return header
}

// decodeMeta reads the start of an answer: its status and its headers.
func decodeMeta(bytes []byte) (status int, header http.Header, err error) {
	if len(bytes) < 2 {
		return 0, nil, errBrokenAnswer
	}
	read := reader{bytes: bytes[2:]}
	header = read.header()
	if read.err != nil {
		return 0, nil, read.err
	}
	return int(binary.LittleEndian.Uint16(bytes)), header, nil
}
