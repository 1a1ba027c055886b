package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/crc32"
	"io"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"

	"gateway/shared/fault"
)

// esEvent is one event that a parser gave.
type esEvent struct{ name, data string }

func parseEventStream(in []byte, size, limit int) ([]esEvent, error) {
	p := EventStreamParser{MaxMessage: limit}
	var out []esEvent
	take := func(name string, data []byte) error {
		out = append(out, esEvent{name, string(data)})
		return nil
	}
	for len(in) > 0 {
		n := min(size, len(in))
		// A copy, which is overwritten afterwards as a connection's buffer is.
		piece := bytes.Clone(in[:n])
		if err := p.Feed(piece, take); err != nil {
			return out, err
		}
		clear(piece)
		in = in[n:]
	}
	return out, p.End(take)
}

// sdkMessage encodes a message with the AWS SDK, which this package does not use.
func sdkMessage(t testing.TB, payload string, headers ...eventstream.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := eventstream.NewEncoder().Encode(&b, eventstream.Message{Headers: headers, Payload: []byte(payload)}); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func text(name, value string) eventstream.Header {
	return eventstream.Header{Name: name, Value: eventstream.StringValue(value)}
}

func sampleStream(t testing.TB) ([]byte, []esEvent) {
	var in []byte
	in = append(in, sdkMessage(t, `{"role":"assistant"}`, text(":event-type", "messageStart"), text(":content-type", "application/json"), text(":message-type", "event"))...)
	in = append(in, sdkMessage(t, `{"delta":{"text":"é"}}`,
		eventstream.Header{Name: "yes", Value: eventstream.BoolValue(true)}, eventstream.Header{Name: "b", Value: eventstream.Int8Value(1)},
		eventstream.Header{Name: "s", Value: eventstream.Int16Value(1)}, eventstream.Header{Name: "i", Value: eventstream.Int32Value(1)},
		eventstream.Header{Name: "l", Value: eventstream.Int64Value(1)}, eventstream.Header{Name: "x", Value: eventstream.BytesValue("abc")},
		eventstream.Header{Name: "u", Value: eventstream.UUIDValue{}}, text(":message-type", "event"), text(":event-type", "contentBlockDelta"))...)
	in = append(in, sdkMessage(t, ``, text(":message-type", "event"), text(":event-type", "contentBlockStop"))...)
	in = append(in, sdkMessage(t, `{"message":"slow down"}`, text(":message-type", "exception"), text(":exception-type", "throttlingException"))...)
	in = append(in, sdkMessage(t, ``, text(":message-type", "error"), text(":error-code", "Internal"), text(":error-message", `it "broke"`))...)
	return in, []esEvent{
		{"messageStart", `{"role":"assistant"}`}, {"contentBlockDelta", `{"delta":{"text":"é"}}`}, {"contentBlockStop", ""},
		{"exception:throttlingException", `{"message":"slow down"}`}, {"exception:Internal", `{"message":"it \"broke\""}`},
	}
}

func TestEventStreamIsReadInPiecesOfAnySize(t *testing.T) {
	in, want := sampleStream(t)
	for size := 1; size <= len(in); size++ {
		got, err := parseEventStream(in, size, 0)
		if err != nil {
			t.Fatalf("pieces of %d: %v", size, err)
		}
		if len(got) != len(want) {
			t.Fatalf("pieces of %d: %q", size, got)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Fatalf("pieces of %d: %q, want %q", size, got[i], want[i])
			}
		}
	}
}

func TestWhatIsWrittenIsReadByTheSDK(t *testing.T) {
	for _, c := range []struct{ name, header, kind, value string }{
		{"metadata", ":event-type", "event", "metadata"},
		{EventStreamException + "validationException", ":exception-type", "exception", "validationException"},
	} {
		b := AppendEventStream([]byte("before"), c.name, []byte(`{"a":1}`))[len("before"):]
		m, err := eventstream.NewDecoder().Decode(bytes.NewReader(b), nil)
		if err != nil {
			t.Fatal(err)
		}
		if string(m.Payload) != `{"a":1}` || m.Headers.Get(c.header).String() != c.value || m.Headers.Get(":message-type").String() != c.kind {
			t.Errorf("%+v", m)
		}
		if got, err := parseEventStream(b, 5, 0); err != nil || len(got) != 1 || got[0].name != c.name {
			t.Errorf("%q %v", got, err)
		}
	}
}

func TestDamagedEventStreamsAreRefused(t *testing.T) {
	good := AppendEventStream(nil, "x", []byte(`{"a":1}`))
	// Any single bit that is turned over is noticed, wherever it is.
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 0x10
		if got, err := parseEventStream(bad, len(bad), 0); err == nil || len(got) != 0 {
			t.Fatalf("byte %d: %q %v", i, got, err)
		}
	}
	for n := 1; n < len(good); n++ {
		if _, err := parseEventStream(good[:n], 3, 0); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("cut at %d: %v", n, err)
		}
	}
	prelude := func(total, headers uint32) []byte {
		b := binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, total), headers)
		return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
	}
	for name, in := range map[string][]byte{
		"huge":         prelude(1<<31, 0),
		"too small":    prelude(15, 0),
		"long headers": prelude(100, 90),
	} {
		_, err := parseEventStream(in, 1, 0)
		var f *fault.Fault
		if !errors.As(err, &f) || f.Code != fault.InvalidProviderResponse {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := parseEventStream(good, 4, len(good)-1); err == nil {
		t.Error("a message over the bound was read")
	}
	if _, err := parseEventStream(good, 4, len(good)); err != nil {
		t.Error(err)
	}
	p := EventStreamParser{}
	stop := errors.New("stop")
	fail := func(string, []byte) error { return stop }
	if err := p.Feed(good, fail); err != stop {
		t.Errorf("%v", err)
	}
	if err := p.Feed(good, fail); err != stop {
		t.Errorf("the error did not stay: %v", err)
	}
}

func TestAPartOfAStreamIsTakenUpAtItsNextMessage(t *testing.T) {
	in, want := sampleStream(t)
	for cut := 1; cut < len(in)-esPrelude; cut++ {
		at := EventStreamStart(in[cut:])
		if at < 0 {
			break // within the last message
		}
		got, err := parseEventStream(in[cut+at:], 1000, 0)
		if err != nil || len(got) == 0 || got[len(got)-1] != want[len(want)-1] {
			t.Fatalf("cut at %d: %q %v", cut, got, err)
		}
	}
	if EventStreamStart(nil) != -1 || EventStreamStart(make([]byte, 11)) != -1 || EventStreamStart([]byte("data: {\"a\":1}\n\n")) != -1 {
		t.Error("a start where there is none")
	}
}

func FuzzEventStream(f *testing.F) {
	in, _ := sampleStream(f)
	f.Add(in, uint8(7))
	f.Add(in[:len(in)-3], uint8(1))
	f.Add([]byte("\x00\x00\x00\x10\x00\x00\x00\x00"), uint8(2))
	f.Fuzz(func(t *testing.T, in []byte, size uint8) {
		whole, err := parseEventStream(in, max(1, len(in)), 1<<20)
		pieces, err2 := parseEventStream(in, int(size)%31+1, 1<<20)
		if len(whole) != len(pieces) || (err == nil) != (err2 == nil) {
			t.Fatalf("%q %v\n%q %v", whole, err, pieces, err2)
		}
		for i := range whole {
			if whole[i] != pieces[i] {
				t.Fatalf("%q is %q in pieces", whole[i], pieces[i])
			}
		}
	})
}
