package usage

import (
	"encoding/binary"
	"fmt"

	"gateway/shared/seal"
)

// Bodies is what a log keeps of a request's content. Encoded, it is sealed by
// the relay with the organisation's data key and rides in Record.Bodies or lies
// in a blob.
type Bodies struct {
	RequestHeaders  []byte // JSON object of strings, secrets masked
	Request         []byte // as the client sent it
	SentHeaders     []byte // JSON object of strings, secrets masked; only when translated
	Sent            []byte // to the provider, when it differs
	Received        []byte // from the provider, when it differs
	ResponseHeaders []byte
	Response        []byte // as the client got it; a stream as its events
	Cut             bool   // a body was longer than the log keeps
}

const bodiesVersion = 1

func (b *Bodies) parts() [7]*[]byte {
	return [...]*[]byte{&b.RequestHeaders, &b.Request, &b.SentHeaders, &b.Sent, &b.Received, &b.ResponseHeaders, &b.Response}
}

// Size is about how many bytes Append writes, and never less.
func (b *Bodies) Size() int {
	n := 2
	for _, p := range b.parts() {
		n += binary.MaxVarintLen64 + len(*p)
	}
	return n
}

// Append encodes the bodies behind dst.
func (b *Bodies) Append(dst []byte) []byte {
	cut := byte(0)
	if b.Cut {
		cut = 1
	}
	dst = append(dst, bodiesVersion, cut)
	for _, p := range b.parts() {
		dst = binary.AppendUvarint(dst, uint64(len(*p)))
		dst = append(dst, *p...)
	}
	return dst
}

// DecodeBodies reads what Append wrote; the parts alias raw.
func DecodeBodies(raw []byte) (Bodies, error) {
	var b Bodies
	if len(raw) < 2 || raw[0] != bodiesVersion {
		return b, fmt.Errorf("usage: bodies of an unknown version")
	}
	b.Cut = raw[1] == 1
	raw = raw[2:]
	for _, p := range b.parts() {
		n, size := binary.Uvarint(raw)
		if size <= 0 || n > uint64(len(raw)-size) {
			return Bodies{}, fmt.Errorf("usage: bodies are cut short")
		}
		*p, raw = raw[size:size+int(n)], raw[size+int(n):]
	}
	return b, nil
}

// BodiesBinding is the place that the record's sealed bodies belong to.
func (r *Record) BodiesBinding() seal.Binding {
	return seal.Binding{Org: r.Org, Table: "log", PK: r.Workspace, SK: r.ID}
}
