package golden

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// NotFault reports whether there is an error. An error must be a rejection.
func NotFault(t *testing.T, err error) bool {
	t.Helper()
	if err == nil {
		return false
	}
	if f := fault.From(err); f.Status() >= 500 && f.Source != fault.SourceProvider || f.Code == fault.InternalError {
		t.Fatalf("%d: %v", f.Status(), f)
	}
	return true
}

// Admitted reports whether the relay would let a client's body through to its
// translation: it checks the shape, and rejects bytes that are not UTF-8.
func Admitted(t *testing.T, client chat.RequestReader, body []byte) bool {
	t.Helper()
	var found chat.Checked
	return !NotFault(t, client.Check(body, &found)) && wire.CheckUTF8(body) == nil
}

// RequireNoLoss requires that every field of body that is not silent is in up, at one of
// its places, or in the report.
func RequireNoLoss(t *testing.T, body, up []byte, loss *chat.Loss, places map[string][]string, silent func(string) bool) {
	t.Helper()
	var in, out map[string]json.RawMessage
	if json.Unmarshal(body, &in) != nil {
		return
	}
	if err := json.Unmarshal(up, &out); err != nil {
		t.Fatalf("%v\n%s", err, up)
	}
	for name, raw := range in {
		if string(raw) == "null" || string(raw) == `"gateway-default"` || silent(name) || strings.TrimSpace(string(raw)) == "null" {
			continue
		}
		found := false
		for _, place := range places[name] {
			found = found || out[place] != nil
		}
		for _, e := range loss.Entries {
			found = found || e.Path == name || strings.HasPrefix(e.Path, name+".") || strings.HasPrefix(e.Path, name+"[")
		}
		if !found {
			t.Fatalf("%s vanished: %s\nupstream %s\nloss %s", name, raw, up, loss.Header())
		}
	}
}

// ReadAnswer reads body as a response of d and as an error; nil when it is not a response.
// Whatever is wrong with it must be reported as the provider's fault.
func ReadAnswer(t *testing.T, d chat.Provider, body []byte, traits *chat.Traits) *chat.Response {
	t.Helper()
	upstream.Passer(d).MeterResponse(body)
	if f := d.DecodeError(500, nil, body); f == nil || f.Source != fault.SourceProvider {
		t.Fatalf("%s: an error that is not the provider's", d.Name())
	}
	r, err := d.DecodeResponse(body, traits)
	if err != nil {
		if f := fault.From(err); f.Source != fault.SourceProvider {
			t.Fatalf("%s: %v", d.Name(), f)
		}
		return nil
	}
	return r
}

// Reencode sends a stream from a decoder to a client with the options o.
func Reencode(dec chat.StreamDecoder, client chat.ResponseWriter, o *chat.Options, parser chat.EventParser, in []byte) ([]byte, chat.Meter) {
	enc := client.NewStreamEncoder(o)
	var out []byte
	event := func(name string, data []byte) error {
		return dec.Event(name, data, func(d *chat.Delta) error {
			out = enc.Append(out, d)
			return nil
		})
	}
	err := parser.Feed(in, event)
	if err == nil {
		err = parser.End(event)
	}
	if err == nil {
		err = dec.End()
	}
	if err != nil {
		return enc.Error(out, fault.From(err)), dec.Meter()
	}
	return enc.Finish(out), dec.Meter()
}

// WellFormed requires a stream that client can read: each event is JSON, and the blocks of
// messages do not overlap.
func WellFormed(t *testing.T, client chat.Dialect, stream []byte) {
	t.Helper()
	for _, e := range Events(t, stream) {
		if e.Data != "[DONE]" && !json.Valid([]byte(e.Data)) {
			t.Fatalf("not JSON: %q", e.Data)
		}
	}
	if client.Name() == "anthropic.messages" {
		blocksDoNotOverlap(t, stream)
	}
}

func blocksDoNotOverlap(t *testing.T, stream []byte) {
	t.Helper()
	open, next := false, 0
	for _, e := range Events(t, stream) {
		if e.Name == "error" {
			continue
		}
		var ev anthropicEvent
		if json.Unmarshal([]byte(e.Data), &ev) != nil {
			t.Fatalf("%s", e.Data)
		}
		switch ev.Type {
		case "content_block_start":
			if open || *ev.Index != next {
				t.Fatalf("block %d starts while %d is open=%v\n%s", *ev.Index, next, open, stream)
			}
			open = true
		case "content_block_delta":
			if !open || *ev.Index != next {
				t.Fatalf("delta of block %d while %d is open=%v\n%s", *ev.Index, next, open, stream)
			}
		case "content_block_stop":
			if !open || *ev.Index != next {
				t.Fatalf("stop of block %d while %d is open=%v\n%s", *ev.Index, next, open, stream)
			}
			open = false
			next++
		}
	}
}

// Filtered sends a stream through the filter of its dialect in pieces of size bytes.
func Filtered(t *testing.T, d chat.Passer, o chat.FilterOptions, in []byte, size int) ([]byte, chat.Meter) {
	t.Helper()
	f := d.NewStreamFilter(&o)
	var out []byte
	buffer := make([]byte, max(size, 1)) // used for each read, as a connection's is
	for rest := in; len(rest) > 0; {
		n := copy(buffer, rest)
		got, err := f.Feed(buffer[:n])
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, got...)
		rest = rest[n:]
	}
	return append(out, f.End()...), f.Meter()
}

// Encode translates a body of from for to.
func Encode(t *testing.T, from chat.RequestReader, to chat.RequestWriter, body string, traits chat.Traits, recall func(string) []chat.Part) []byte {
	t.Helper()
	r, err := from.DecodeRequest([]byte(body))
	if err != nil {
		t.Fatal(err)
	}
	r.LoadReasoning = recall
	up, err := to.EncodeRequest(nil, r, &traits, &chat.Loss{})
	if err != nil {
		t.Fatal(err)
	}
	return up
}

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

// EncodeFor encodes the request in body for a provider: nil when it is rejected, otherwise
// JSON in which nothing has vanished. places specifies where fields of body are in it; silent
// specifies which may be omitted without a report; flat specifies which part of the result is
// searched (nil means all of it).
func EncodeFor(
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
	RequireNoLoss(t, body, seen, &loss, places, func(name string) bool { return silent(name, r) })
	return up
}

// FilterInPieces filters a stream in one piece and in pieces of size bytes; the result must
// be the same.
func FilterInPieces(t *testing.T, d chat.Passer, o chat.FilterOptions, in []byte, size int) (whole []byte, m chat.Meter) {
	t.Helper()
	whole, m = Filtered(t, d, o, in, len(in))
	pieces, n := Filtered(t, d, o, in, size)
	if !bytes.Equal(whole, pieces) || m.Complete != n.Complete || m.Usage != n.Usage || m.Finish != n.Finish {
		t.Fatalf("pieces of %d differ:\n%q\n%q", size, whole, pieces)
	}
	return whole, m
}
