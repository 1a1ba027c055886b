package usage

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestBodiesComeBackAsTheyWere(t *testing.T) {
	in := Bodies{RequestHeaders: []byte(`{"a":"b"}`), Request: []byte("{}"), Received: []byte{0, 255}, Response: make([]byte, 70_000), Cut: true}
	out, err := DecodeBodies(in.Append(nil))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(in, out, cmpopts.EquateEmpty()); d != "" {
		t.Error(d)
	}
}

func FuzzDecodeBodies(f *testing.F) {
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
