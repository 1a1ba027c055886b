package embedding

import (
	"slices"
	"strconv"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// Request is a client's request.
type Request struct {
	Inputs     []Input
	single     bool // input was one thing and not a list
	Base64     bool // vectors are wanted as base64 of 32-bit floats, little endian
	Dimensions chat.Opt[int64]
	User       string
	Extra      chat.Fields // other fields, in their order
}

// Input is one thing to embed: a text, an image, or both as one.
type Input struct {
	Text  string
	Image string // data: or https: URL; "" when there is none
}

// Path is where input i is in the body.
func (r *Request) Path(i int) string {
	if r.single {
		return "input"
	}
	return "input[" + strconv.Itoa(i) + "]"
}

// Read reads a client's body. Lists of token numbers are rejected: only the model's own
// provider can read them.
func Read(body []byte) (*Request, error) {
	d := wire.NewDecoder(body)
	r := &Request{}
	for key := range d.Object {
		if d.Null() {
			continue
		}
		switch name := string(key); name {
		case "model":
			d.Skip()
		case "input":
			r.inputs(d)
		case "encoding_format":
			switch d.Str() {
			case "float":
			case "base64":
				r.Base64 = true
			default:
				d.Fail("must be float or base64")
			}
		case "dimensions":
			r.Dimensions = chat.Some(d.Int())
		case "user":
			r.User = d.Str()
		default:
			r.Extra = append(r.Extra, chat.Field{Name: name, Raw: upstream.Clone(d.Raw())})
		}
	}
	if err := d.End(); err != nil {
		return nil, err
	}
	if len(r.Inputs) == 0 {
		return nil, fault.Invalid("input", "input must contain at least one text or image")
	}
	return r, nil
}

func (r *Request) inputs(d *wire.Decoder) {
	switch d.Kind() {
	case wire.KindString, wire.KindObject:
		r.single = true
		r.input(d)
		return
	}
	for range d.Array {
		if k := d.Kind(); k == wire.KindNumber || k == wire.KindArray {
			d.Skip()
			d.Fail("is a token number, which only the model's own provider can read; send text")
			return
		}
		r.input(d)
	}
}

// input reads a text, or {text, image: URL or {url} or {base64}}.
func (r *Request) input(d *wire.Decoder) {
	var in Input
	if d.Kind() == wire.KindString {
		in.Text = d.Str()
		r.Inputs = append(r.Inputs, in)
		return
	}
	known := false
	for key := range d.Object {
		if d.Null() {
			continue
		}
		switch string(key) {
		case "text":
			in.Text, known = d.Str(), true
		case "image", "image_url":
			in.Image, known = image(d), true
		case "type":
			d.Skip()
		default:
			d.Skip()
			d.Fail("is not known: an input is a text, or an object with text and image")
		}
	}
	if d.Err() == nil && !known {
		d.Fail("must be a text, or an object with text and image")
	}
	r.Inputs = append(r.Inputs, in)
}

// image reads the address of an image; bare base64 becomes a data: URL.
func image(d *wire.Decoder) string {
	s, bare := "", false
	if d.Kind() == wire.KindString {
		s = d.Str()
	} else {
		for key := range d.Object {
			switch string(key) {
			case "url":
				s = d.Str()
			case "base64":
				s, bare = d.Str(), true
			}
		}
	}
	switch {
	case d.Err() != nil:
	case strings.HasPrefix(s, "data:"), !bare && (strings.HasPrefix(s, "https://") || strings.HasPrefix(s, "http://")):
	case bare && s != "":
		s = "data:" + mimeOf(s) + ";base64," + s
	default:
		d.Fail("must be a data: or https: URL, or an object with base64")
	}
	return s
}

// mimeOf detects the type of a base64 image by its first bytes.
func mimeOf(data string) string {
	switch {
	case strings.HasPrefix(data, "/9j/"):
		return "image/jpeg"
	case strings.HasPrefix(data, "R0lGOD"):
		return "image/gif"
	case strings.HasPrefix(data, "UklGR"):
		return "image/webp"
	}
	return "image/png"
}

// Texts are the inputs for a provider that takes only texts, at most limit of them; 0
// means any number.
func (r *Request) Texts(limit int) ([]string, error) {
	if err := r.AtMost(limit); err != nil {
		return nil, err
	}
	texts := make([]string, len(r.Inputs))
	for i, in := range r.Inputs {
		if in.Image != "" {
			return nil, fault.Invalid(r.Path(i), "%s must be a text: this provider embeds no images", r.Path(i))
		}
		texts[i] = in.Text
	}
	return texts, nil
}

// AtMost rejects more inputs than the provider takes in one request.
func (r *Request) AtMost(limit int) error {
	if limit > 0 && len(r.Inputs) > limit {
		return fault.Invalid("input", "input must contain at most %d items for this provider", limit)
	}
	return nil
}

// Member finds one of the extra fields.
func (r *Request) Member(name string) []byte { return r.Extra.Find(name) }

// StringField is an extra field that must be a string; "" when it is absent.
func (r *Request) StringField(name string) (string, error) {
	raw := r.Member(name)
	if raw == nil {
		return "", nil
	}
	return wire.ScanString(raw, name)
}

// ReportLoss reports members that are not in carried: dimensions, user and the extra members, by
// their names.
func (r *Request) ReportLoss(loss *chat.Loss, carried ...string) {
	if r.Dimensions.Set && !slices.Contains(carried, "dimensions") {
		loss.Add("dimensions", upstream.UnsupportedField)
	}
	if r.User != "" {
		loss.Add("user", upstream.UnsupportedField)
	}
	r.Extra.Report(loss, upstream.UnsupportedField, carried...)
}

// Pass writes the extra fields that the provider knows by the same names.
func (r *Request) Pass(o *upstream.Object, names ...string) {
	r.Extra.Pass(o.Raw, names...)
}
