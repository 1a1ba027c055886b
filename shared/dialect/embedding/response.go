package embedding

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"sort"
	"strconv"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// Response is what a provider gave.
type Response struct {
	Model   string
	Vectors []Vector
	Usage   pricing.Usage
	// ReportedTokens is the number of tokens for the client, if it is not the input of Usage.
	ReportedTokens chat.Opt[int64]
}

// Vector is one vector: a JSON list of numbers, or a JSON string of base64.
type Vector struct {
	Index int
	Raw   []byte
}

// Append writes the client's response: {"object":"list","data":[...],"model":...,
// "usage":{"prompt_tokens":n,"total_tokens":n}}. Vectors must be one for each
// input. Usage is estimated when the provider reports none.
func (a *Response) Append(dst []byte, req *chat.TranslatorRequest) ([]byte, chat.Meter, error) {
	r, err := Read(req.Body)
	if err != nil {
		return dst, chat.Meter{}, err
	}
	if len(a.Vectors) != len(r.Inputs) {
		return dst, chat.Meter{}, upstream.Invalid("The provider returned "+strconv.Itoa(len(a.Vectors))+" vectors for "+strconv.Itoa(len(r.Inputs))+" inputs", nil)
	}
	sort.SliceStable(a.Vectors, func(i, j int) bool { return a.Vectors[i].Index < a.Vectors[j].Index })
	o := upstream.Begin(dst)
	o.Str("object", "list")
	o.Key("data")
	o.Open('[')
	for i, v := range a.Vectors {
		if v.Index != i {
			return dst, chat.Meter{}, upstream.Invalid("The provider returned vectors with wrong numbers", nil)
		}
		o.Open('{')
		o.Str("object", "embedding")
		o.Int("index", int64(i))
		o.Key("embedding")
		if o.B, err = appendVector(o.B, v.Raw, r.Base64); err != nil {
			return dst, chat.Meter{}, err
		}
		o.Close('}')
	}
	o.Close(']')
	model := a.Model
	if model == "" {
		model = req.Model
	}
	o.Str("model", model)
	if req.ProviderName != "" {
		o.Str("provider", req.ProviderName)
	}
	a.usage(o, r)
	o.Close('}')
	return o.B, chat.Meter{Model: a.Model, Usage: a.Usage, Complete: true, Started: true}, nil
}

// usage writes usage, which OpenAI's shape always has. Where the provider reports none, it
// is an estimate.
func (a *Response) usage(o *upstream.Object, r *Request) {
	n := a.ReportedTokens
	switch {
	case n.Set:
	case a.Usage.IsReported():
		n = chat.Some(a.Usage.InputTokens())
	default:
		size := 0
		for i := range r.Inputs {
			size += len(r.Inputs[i].Text)
		}
		n = chat.Some(int64(size+3) / 4)
		a.Usage.Set(pricing.Input, n.Value) // accounting uses the client's number
		a.Usage.Estimated = true
	}
	o.Key("usage")
	o.Open('{')
	o.Int("prompt_tokens", n.Value)
	o.Int("total_tokens", n.Value)
	o.Close('}')
}

// appendVector writes a vector unchanged, or a list of numbers as base64.
func appendVector(dst, raw []byte, wantBase64 bool) ([]byte, error) {
	switch wire.KindOf(raw) {
	case wire.KindString:
		return append(dst, raw...), nil
	case wire.KindArray:
	default:
		return dst, upstream.Invalid("The provider returned a vector that is not a list of numbers", nil)
	}
	if !wantBase64 {
		return append(dst, raw...), nil
	}
	var floats []byte
	d := wire.NewDecoder(raw)
	for range d.Array {
		floats = binary.LittleEndian.AppendUint32(floats, math.Float32bits(float32(d.Float())))
	}
	if err := d.End(); err != nil {
		return dst, upstream.Invalid("The provider returned a vector that is not a list of numbers", err)
	}
	dst = append(dst, '"')
	dst = base64.StdEncoding.AppendEncode(dst, floats)
	return append(dst, '"'), nil
}

// ReadList reads vectors in their order: [[...],[...]], or strings of base64.
func ReadList(d *wire.Decoder) []Vector {
	var all []Vector
	if d.Kind() != wire.KindArray {
		d.Skip()
		return nil
	}
	for i := range d.Array {
		all = append(all, Vector{i, upstream.Clone(d.Raw())})
	}
	return all
}

// readOpenAI reads a response in the OpenAI format, with usage that may only contain the
// total. An error in it is returned as the provider's.
func readOpenAI(body []byte) (*Response, error) {
	d := wire.NewDecoder(body)
	a := &Response{}
	for key := range d.Object {
		switch string(key) {
		case "model":
			a.Model = upstream.OptString(d)
		case "data":
			if d.Kind() == wire.KindArray {
				a.data(d)
			}
		case "usage":
			var prompt, total chat.Opt[int64]
			if d.Kind() != wire.KindObject {
				continue
			}
			for key := range d.Object {
				switch string(key) {
				case "prompt_tokens":
					upstream.Count(d, &prompt)
				case "total_tokens":
					upstream.Count(d, &total)
				}
			}
			if !prompt.Set || total.Value > prompt.Value {
				prompt = total // images count in the total only
			}
			if prompt.Set {
				a.Usage.Set(pricing.Input, prompt.Value)
			}
		}
	}
	if err := d.End(); err != nil {
		return nil, upstream.Invalid("The provider's response is not JSON", err)
	}
	if a.Vectors == nil {
		return nil, upstream.InBand(body)
	}
	return a, nil
}

func (a *Response) data(d *wire.Decoder) {
	a.Vectors = []Vector{}
	for i := range d.Array {
		v := Vector{Index: i}
		if d.Kind() != wire.KindObject {
			d.Skip()
			continue
		}
		for key := range d.Object {
			switch string(key) {
			case "embedding":
				v.Raw = upstream.Clone(d.Raw())
			case "index":
				var n chat.Opt[int64]
				upstream.Count(d, &n)
				v.Index = int(n.Value)
			}
		}
		a.Vectors = append(a.Vectors, v)
	}
}
