package usage

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestBodiesRoundTrip(t *testing.T) {
	in := Bodies{RequestHeaders: []byte(`{"a":"b"}`), Request: []byte("{}"), Received: []byte{0, 255}, Response: make([]byte, 70_000), Truncated: true}
	out, err := DecodeBodies(in.Append(nil))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(in, out, cmpopts.EquateEmpty()); d != "" {
		t.Error(d)
	}
}

func TestLargeBodiesAreWrittenShorter(t *testing.T) {
	noise := make([]byte, 20_000)
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range noise {
		noise[i] = byte(rnd.Uint32())
	}
	words := strings.Fields("the committee met on Tuesday to weigh a draft budget it was they said first step of many which nobody had hoped for")
	var prose, events []byte
	for i := range 4000 {
		word := words[rnd.IntN(len(words))] + strconv.Itoa(rnd.IntN(90))
		prose = append(append(prose, word...), ' ')
		if i%10 == 0 {
			events = fmt.Appendf(events, `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"content":%q},"finish_reason":null}]}`+"\n\n", word)
		}
	}
	for name, c := range map[string]struct {
		in   Bodies
		most int
	}{
		"prose":           {Bodies{Request: prose}, len(prose) + 40},
		"a stream":        {Bodies{Request: prose, Response: events}, len(prose) + len(events)/4},
		"small":           {Bodies{Request: []byte("{}"), Response: []byte("hello")}, 40},
		"at the bound":    {Bodies{Response: make([]byte, packFrom-1)}, packFrom + 40},
		"events":          {Bodies{Request: []byte("{}"), Response: bytes.Repeat([]byte(`data: {"id":"x","delta":"y"}`+"\n\n"), 700)}, 2000},
		"noise":           {Bodies{Request: noise, Received: noise}, 2*len(noise) + 40},
		"noise and zeros": {Bodies{Request: noise, Sent: make([]byte, 1<<20), Response: noise, Truncated: true}, 2*len(noise) + 4000},
	} {
		raw := c.in.Append([]byte("before"))
		if !bytes.HasPrefix(raw, []byte("before")) {
			t.Errorf("%s: what stood before is gone", name)
		}
		raw = raw[len("before"):]
		if len(raw) > c.most || len(raw) > c.in.Size() {
			t.Errorf("%s: %d bytes, want at most %d and %d", name, len(raw), c.most, c.in.Size())
		}
		out, err := DecodeBodies(raw)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if out.Truncated != c.in.Truncated {
			t.Errorf("%s: cut %t", name, out.Truncated)
		}
		for i, p := range c.in.parts() {
			if !bytes.Equal(*p, *out.parts()[i]) {
				t.Errorf("%s: part %d came back otherwise", name, i)
			}
		}
		for _, n := range []int{0, 1, 2, 10, len(raw) / 2, len(raw) - 1} {
			if _, err := DecodeBodies(raw[:n]); err == nil {
				t.Errorf("%s: read though it is cut at %d", name, n)
			}
		}
		if verbatim := bytes.Contains(raw, prose); len(c.in.Request) == len(prose) && !verbatim {
			t.Errorf("%s: time was spent on prose", name)
		}
		if at := &raw[0]; cap(raw) >= c.in.Size() {
			if raw = c.in.Append(raw[:0]); &raw[0] != at {
				t.Errorf("%s: moved though there is room enough", name)
			}
		}
	}
}

// Bodies written before compression was introduced are still readable.
func TestPlainBodiesAreRead(t *testing.T) {
	raw := []byte{bodiesPlain, 1}
	for _, p := range []string{"a", "", "bc", "", "", "", "d"} {
		raw = append(append(raw, byte(len(p))), p...)
	}
	b, err := DecodeBodies(raw)
	if err != nil || string(b.RequestHeaders) != "a" || string(b.SentHeaders) != "bc" || string(b.Response) != "d" || !b.Truncated {
		t.Errorf("%+v %v", b, err)
	}
}

func BenchmarkAppendBodies(b *testing.B) {
	in := Bodies{Request: make([]byte, 1000)}
	for i := range 100 {
		in.Response = fmt.Appendf(in.Response, "data: {\"id\":\"chatcmpl-0123456789\",\"object\":\"chat.completion.chunk\",\"created\":1700000000,\"model\":\"gpt-4o-mini\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\" w%d\"}}]}\n\n", i*7919%1000)
	}
	b.SetBytes(int64(len(in.Response)))
	b.ReportAllocs()
	dst := make([]byte, 0, in.Size())
	for b.Loop() {
		dst = in.Append(dst[:0])
	}
	b.ReportMetric(float64(len(dst)), "bytes")
}

func FuzzDecodeBodies(f *testing.F) {
	f.Add((&Bodies{Request: []byte("x"), Response: make([]byte, 2*packFrom)}).Append(nil))
	f.Add((&Bodies{Request: []byte("x")}).Append(nil))
	f.Add([]byte{1, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, raw []byte) {
		b, err := DecodeBodies(raw)
		if err != nil {
			return
		}
		if _, err := DecodeBodies(b.Append(nil)); err != nil {
			t.Fatal(err)
		}
	})
}
