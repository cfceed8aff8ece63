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

// decodeMeta reads the start of an answer: its status and its headers.
func decodeMeta(bytes []byte) (status int, header http.Header, err error) {
	if len(bytes) < 2 {
		return 0, nil, errBrokenAnswer
	}
	status = int(binary.LittleEndian.Uint16(bytes))
	bytes = bytes[2:]
	number := func() uint64 {
		if err != nil || len(bytes) < 8 {
			err = errBrokenAnswer
			return 0
		}
		value := binary.LittleEndian.Uint64(bytes)
		bytes = bytes[8:]
		return value
	}
	text := func() string {
		size := number()
		if size > uint64(len(bytes)) {
			err = errBrokenAnswer
			return ""
		}
		value := string(bytes[:size])
		bytes = bytes[size:]
		return value
	}
	header = http.Header{}
	for names := number(); names > 0 && err == nil; names-- {
		name := text()
		for values := number(); values > 0 && err == nil; values-- {
			header.Add(name, text())
		}
	}
	if err != nil {
		return 0, nil, err
	}
	return status, header, nil
}
