package window

import (
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"gateway/shared/chat"
	"gateway/shared/pricing"
)

// TestDeltasAreAlikeOnlyInTheirJSON sets each field of a delta: one that differs in any field
// but JSON is not alike, so that a new field cannot be lost.
func TestDeltasAreAlikeOnlyInTheirJSON(t *testing.T) {
	t.Parallel()
	kind := reflect.TypeFor[chat.Delta]()
	for i := range kind.NumField() {
		var plain, other chat.Delta
		v := reflect.ValueOf(&other).Elem().Field(i)
		switch v.Kind() {
		case reflect.String:
			v.SetString("x")
		case reflect.Bool:
			v.SetBool(true)
		case reflect.Int, reflect.Int64, reflect.Int8:
			v.SetInt(1)
		case reflect.Uint8, reflect.Uint:
			v.SetUint(1)
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		case reflect.Pointer:
			v.Set(reflect.ValueOf(&pricing.Usage{}))
		default:
			t.Fatalf("%s has a kind that this test cannot set", kind.Field(i).Name)
		}
		if got := alike(&plain, &other) || alike(&other, &plain); got != (kind.Field(i).Name == "JSON") {
			t.Errorf("%s: alike is %t", kind.Field(i).Name, got)
		}
	}
}

// TestQueueReturnsWhatWasAdded adds and removes random deltas and compares them with a list.
func TestQueueReturnsWhatWasAdded(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var q queue
		var want []string
		for i := range rapid.IntRange(0, 60).Draw(t, "steps") {
			switch rapid.IntRange(0, 5).Draw(t, "step") {
			default:
				d := chat.Delta{Kind: chat.DeltaText, Block: rapid.IntRange(0, 1).Draw(t, "block"), JSON: fmt.Appendf(nil, "%q", fmt.Sprint(i))}
				if rapid.Bool().Draw(t, "logprobs") {
					d.Logprobs = []byte("{}")
				}
				q.add(&d, len(d.JSON)-2)
				want = append(want, fmt.Sprintf("%d %s %s", d.Block, d.JSON, d.Logprobs))
				d.JSON[1] = '!' // the decoder uses its memory again
			case 3, 4:
				d, text, ok := q.first()
				if ok != (len(want) > 0) || ok != (q.len() > 0) {
					t.Fatalf("first: %t with %d", ok, len(want))
				}
				if !ok {
					continue
				}
				if got := fmt.Sprintf("%d %s %s", d.Block, d.JSON, d.Logprobs); got != want[0] || text != len(d.JSON)-2 {
					t.Fatalf("got %s, want %s", got, want[0])
				}
				if rapid.Bool().Draw(t, "shorten") {
					q.shorten([]byte(`"short"`), 5)
					want[0] = fmt.Sprintf("%d %s ", d.Block, `"short"`)
					continue
				}
				q.drop()
				want = want[1:]
			case 5:
				q.compact()
			}
			if q.len() != len(want) {
				t.Fatalf("%d deltas, want %d", q.len(), len(want))
			}
		}
	})
}
