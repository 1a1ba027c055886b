package golden

import (
	"bytes"
	"encoding/json"
	"testing"

	"gateway/shared/chat"
)

// Decoded reads any bytes as the relay reads a client's body; nil when they are rejected.
func Decoded(t *testing.T, client chat.RequestReader, body []byte) *chat.Request {
	t.Helper()
	if !Admitted(t, client, body) {
		return nil
	}
	r, err := client.DecodeRequest(body)
	if NotFault(t, err) {
		return nil
	}
	return r
}

// Carried encodes the request in body for a provider: nil when it is rejected, otherwise
// JSON in which nothing has vanished. places says where members of body are in it; silent
// says which may be omitted without a report; flat says which part of the result is
// searched (nil means all of it).
func Carried(
	t *testing.T, body []byte, r *chat.Request, d chat.RequestWriter, traits *chat.Traits,
	places map[string][]string, silent func(string, *chat.Request) bool, flat func(*testing.T, []byte) []byte,
) []byte {
	t.Helper()
	var loss chat.Loss
	up, err := d.EncodeRequest(nil, r, traits, &loss)
	if NotFault(t, err) {
		return nil
	}
	if !json.Valid(up) {
		t.Fatalf("%s: not JSON: %q", d.Name(), up)
	}
	seen := up
	if flat != nil {
		seen = flat(t, up)
	}
	NothingVanishes(t, body, seen, &loss, places, func(name string) bool { return silent(name, r) })
	return up
}

// SamePieces filters a stream in one piece and in pieces of size bytes; the result must
// be the same.
func SamePieces(t *testing.T, d chat.Passer, o chat.FilterOptions, in []byte, size int) (whole []byte, m chat.Meter) {
	t.Helper()
	whole, m = Filtered(t, d, o, in, len(in))
	pieces, n := Filtered(t, d, o, in, size)
	if !bytes.Equal(whole, pieces) || m.Complete != n.Complete || m.Usage != n.Usage || m.Finish != n.Finish {
		t.Fatalf("pieces of %d differ:\n%q\n%q", size, whole, pieces)
	}
	return whole, m
}
