package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"math"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"gateway/shared/fault"
)

// decode builds what encoding/json would, through the Decoder.
func decode(d *Decoder) any {
	switch d.Kind() {
	case KindObject:
		m := map[string]any{}
		for key := range d.Object {
			name := string(appendValid(nil, key))
			m[name] = decode(d)
		}
		return m
	case KindArray:
		list := []any{}
		for range d.Array {
			list = append(list, decode(d))
		}
		return list
	case KindString:
		return d.Str()
	case KindNumber:
		return d.Float()
	case KindBool:
		return d.Bool()
	case KindNull:
		d.Null()
		return nil
	}
	d.Skip() // says what is wrong
	return nil
}

func TestDecoderReadsARequest(t *testing.T) {
	body := []byte(`{"model":"gpt-4o","skip":{"x":[1,2]},"n":2,"t":0.5,"on":true,"nothing":null,"messages":[{"role":"us\u0065r","content":"a\nb"},{"role":"x"}]}`)
	var got struct {
		model   string
		n       int64
		t       float64
		on, nul bool
		roles   []string
		raw     string
	}
	d := NewDecoder(body)
	for key := range d.Object {
		switch string(key) {
		case "model":
			got.model = d.Str()
		case "n":
			got.n = d.Int()
		case "t":
			got.t = d.Float()
		case "on":
			got.on = d.Bool()
		case "nothing":
			got.nul = d.Null()
		case "messages":
			for range d.Array {
				for key := range d.Object {
					switch string(key) {
					case "role":
						got.roles = append(got.roles, string(d.Bytes()))
					case "content":
						got.raw = string(d.RawStr())
					}
				}
			}
		}
	}
	if err := d.End(); err != nil {
		t.Fatal(err)
	}
	if got.model != "gpt-4o" || got.n != 2 || got.t != 0.5 || !got.on || !got.nul || strings.Join(got.roles, " ") != "user x" || got.raw != `"a\nb"` {
		t.Errorf("%+v", got)
	}
}

func TestDecoderSkipsTheRestAfterABreak(t *testing.T) {
	d := NewDecoder([]byte(`[{"a":1,"b":{"c":[2]},"d":3},[7,8,9],"end"]`))
	var first int64
	var end string
	for i := range d.Array {
		switch i {
		case 0:
			for range d.Object {
				first = d.Int()
				break
			}
		case 1:
			for range d.Array {
				break
			}
		case 2:
			end = d.Str()
		}
	}
	if err := d.End(); err != nil || first != 1 || end != "end" {
		t.Errorf("first %d, end %q, %v", first, end, err)
	}
}

func TestDecoderNamesThePath(t *testing.T) {
	read := func(d *Decoder) {
		for key := range d.Object {
			switch string(key) {
			case "n":
				if n := d.Int(); n < 0 {
					d.Fail("must not be negative")
				}
			case "messages":
				for range d.Array {
					for key := range d.Object {
						if string(key) == "role" {
							d.Str()
						}
					}
				}
			}
		}
	}
	for _, c := range []struct{ name, body, field, message string }{
		{"wrong type", `{"messages":[{},{"role":5}]}`, "messages[1].role", "messages[1].role must be a string, not a number"},
		{"object for an array", `{"messages":{}}`, "messages", "must be an array, not an object"},
		{"element", `{"messages":["x"]}`, "messages[0]", "must be an object, not a string"},
		{"own rule", `{"n":-1}`, "n", "n must not be negative"},
		{"not whole", `{"n":1.5}`, "n", "must be a whole number"},
		{"body", `[]`, "", "The body must be an object"},
		{"syntax", `{"messages":[{"role":"a" "b"}]}`, "messages[0]", "unexpected character"},
		{"syntax in a skipped value", `{"x":{"y":tru}}`, "x.y", "without quotes"},
		{"cut", `{"messages":[{"role":"a`, "messages[0].role", "ends too early"},
		{"trailing", `{}x`, "", "after the end"},
		{"empty", ``, "", "ends too early"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := NewDecoder([]byte(c.body))
			read(d)
			err := d.End()
			f := fault.From(err)
			if err == nil || f.Status() != 400 || f.Field != c.field || !strings.Contains(f.Message, c.message) {
				t.Errorf("got %v, want %q on %q", err, c.message, c.field)
			}
			if d.Str() != "" || d.Raw() != nil || d.Err() != err {
				t.Error("the first error must stay")
			}
		})
	}
	d := NewDecoderAt([]byte(`{"role":5}`), "messages[3]")
	for range d.Object {
		d.Str()
	}
	if f := fault.From(d.End()); f.Field != "messages[3].role" {
		t.Errorf("base path: %q", f.Field)
	}
	own := errors.New("own")
	d.Reset([]byte(`1`))
	if d.FailWith(own); d.Err() != own {
		t.Errorf("FailWith: %v", d.Err())
	}
}

func TestDecoderBoundsTheDepth(t *testing.T) {
	for _, open := range []string{"[", `{"a":`} {
		d := NewDecoder([]byte(strings.Repeat(open, 1<<20)))
		decode(d)
		if f := fault.From(d.End()); !strings.Contains(f.Message, "64 deep") {
			t.Errorf("%s: %v", open, f)
		}
	}
}

func TestDecoderAllocatesOnlyWhatItGives(t *testing.T) {
	body := chatBody(4 << 10)
	d := &Decoder{}
	n := testing.AllocsPerRun(20, func() {
		d.Reset(body)
		for key := range d.Object {
			if string(key) != "messages" {
				continue
			}
			for range d.Array {
				for key := range d.Object {
					switch string(key) {
					case "role":
						d.Bytes()
					case "content":
						d.RawStr()
					}
				}
			}
		}
		if err := d.End(); err != nil {
			t.Fatal(err)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// FuzzDecoder: the Decoder accepts what encoding/json accepts, up to its depth,
// and reads the same values.
func FuzzDecoder(f *testing.F) {
	for _, s := range walkSeeds {
		f.Add([]byte(s))
	}
	f.Add([]byte(`"\ud83c\udf89 \ud83c x"`))
	f.Add([]byte("{\"a\xff\":\"\xff\"}"))
	f.Fuzz(func(t *testing.T, body []byte) {
		d := NewDecoder(body)
		got := decode(d)
		err := d.End()
		var want any
		dec := json.NewDecoder(bytes.NewReader(body))
		dec.UseNumber()
		wantErr := dec.Decode(&want)
		if wantErr == nil && !json.Valid(body) {
			wantErr = errors.New("trailing")
		}
		if (err == nil) != (wantErr == nil) {
			if err != nil && (strings.Contains(err.Error(), "64 deep") || strings.Contains(err.Error(), "too large")) {
				return
			}
			t.Fatalf("own error %v, encoding/json: %v", err, wantErr)
		}
		if err == nil && !reflect.DeepEqual(got, floats(want)) {
			t.Fatalf("got %#v, want %#v", got, want)
		}
		if (CheckStrict(body, MaxDepth) == nil) && wantErr != nil {
			t.Fatal("CheckStrict accepted what encoding/json refuses")
		}
	})
}

// floats turns json.Number into float64 as the Decoder does.
func floats(v any) any {
	switch v := v.(type) {
	case json.Number:
		f, err := strconv.ParseFloat(string(v), 64)
		if err != nil {
			return math.NaN()
		}
		return f
	case map[string]any:
		for k := range v {
			v[k] = floats(v[k])
		}
	case []any:
		for i := range v {
			v[i] = floats(v[i])
		}
	}
	return v
}

func BenchmarkDecoderMessages100KB(b *testing.B) {
	body := chatBody(100 << 10)
	b.SetBytes(int64(len(body)))
	b.ReportAllocs()
	d := &Decoder{}
	for b.Loop() {
		d.Reset(body)
		for key := range d.Object {
			if string(key) == "messages" {
				for range d.Array {
					for key := range d.Object {
						if string(key) == "content" {
							d.RawStr()
						}
					}
				}
			}
		}
		if d.End() != nil {
			b.Fatal(d.Err())
		}
	}
}
