package sqlite

import (
	"bytes"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gateway/shared/store"
)

func codecCases() map[string]store.Item {
	return map[string]store.Item{
		"empty":        {},
		"each type":    {"s": "text", "b": []byte{0, 255, '#'}, "i": int64(-7), "t": true, "f": false},
		"empty values": {"s": "", "b": []byte{}, "m": store.Map{}},
		"bounds":       {"min": int64(math.MinInt64), "max": int64(math.MaxInt64), "zero": int64(0)},
		"map": {"m": store.Map{"s": "x", "b": []byte("y"), "i": int64(3), "t": true, "f": false, "": "z"},
			"n": store.Map{"ü": "日本"}},
		"over the shared-string size": {"long": strings.Repeat("é", smallItem), "b": bytes.Repeat([]byte{9}, 9000), "k": "v"},
	}
}

func TestItemsReadBackAsWritten(t *testing.T) {
	for name, item := range codecCases() {
		t.Run(name, func(t *testing.T) {
			got, err := decodeItem(appendItem(nil, item))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(item, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDamagedItemsAreRefused(t *testing.T) {
	whole := appendItem(nil, store.Item{"s": "text", "m": store.Map{"k": int64(300), "b": []byte("abc")}, "n": int64(1 << 40)})
	for n := range whole {
		if _, err := decodeItem(bytes.Clone(whole[:n])); err == nil {
			t.Errorf("the first %d of %d bytes were accepted", n, len(whole))
		}
	}
	cases := map[string][]byte{
		"trailing bytes":    append(bytes.Clone(whole), 0),
		"another version":   {2, 0},
		"name twice":        {1, 2, 1, 'a', 't', 1, 'a', 't'},
		"map key twice":     {1, 1, 1, 'a', 'm', 2, 1, 'k', 't', 1, 'k', 't'},
		"map in a map":      {1, 1, 1, 'a', 'm', 1, 1, 'k', 'm', 0},
		"unknown type":      {1, 1, 1, 'a', 'z'},
		"count of millions": {1, 0xff, 0xff, 0xff, 0x7f},
	}
	for name, b := range cases {
		if _, err := decodeItem(b); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}

func FuzzDecodeItem(f *testing.F) {
	for _, item := range codecCases() {
		if b := appendItem(nil, item); len(b) < 1000 {
			f.Add(b)
		}
	}
	f.Add([]byte{1, 1, 1, 'a', 'm', 0x80})
	f.Fuzz(func(t *testing.T, b []byte) {
		item, err := decodeItem(bytes.Clone(b))
		if err != nil {
			return
		}
		again, err := decodeItem(appendItem(nil, item))
		if err != nil {
			t.Fatalf("encoding an accepted item cannot be read: %v", err)
		}
		if diff := cmp.Diff(item, again); diff != "" {
			t.Error(diff)
		}
	})
}
