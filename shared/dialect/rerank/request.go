package rerank

import (
	"slices"
	"strconv"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// Request is a client's request.
type Request struct {
	Query     string
	QueryRaw  []byte // a query that is an object (an image); nil for a text
	Documents []Document
	TopN      chat.Opt[int64]
	Return    bool     // the response holds the documents
	Fields    []string // rank_fields: fields of object documents that count
	PerDoc    chat.Opt[int64]
	Extra     chat.Fields // other fields, in their order
}

// Document is one document.
type Document struct {
	Text   string
	Raw    []byte // as the client wrote it
	Object bool
}

// Read reads a client's body.
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
		case "query":
			if d.Kind() == wire.KindObject {
				r.QueryRaw = upstream.Clone(d.Raw())
				continue
			}
			r.Query = d.Str()
		case "documents":
			for range d.Array {
				r.document(d)
			}
		case "top_n":
			r.TopN = chat.Some(d.Int())
		case "return_documents":
			r.Return = d.Bool()
		case "rank_fields":
			for range d.Array {
				r.Fields = append(r.Fields, d.Str())
			}
		case "max_tokens_per_doc":
			r.PerDoc = chat.Some(d.Int())
		default:
			r.Extra = append(r.Extra, chat.Field{Name: name, Raw: upstream.Clone(d.Raw())})
		}
	}
	if err := d.End(); err != nil {
		return nil, err
	}
	if len(r.Documents) == 0 {
		return nil, fault.Invalid("documents", "documents must contain at least one document")
	}
	return r, nil
}

func (r *Request) document(d *wire.Decoder) {
	probe := *d
	doc := Document{Raw: upstream.Clone(probe.Raw())}
	if doc.Object = d.Kind() == wire.KindObject; !doc.Object {
		doc.Text = d.Str()
	} else {
		for key := range d.Object {
			if string(key) == "text" {
				doc.Text = upstream.OptString(d)
			}
		}
	}
	r.Documents = append(r.Documents, doc)
}

// Text is the query as a text; others are rejected.
func (r *Request) Text() (string, error) {
	if r.QueryRaw != nil {
		return "", fault.Invalid("query", "query must be a text for this provider")
	}
	return r.Query, nil
}

// Texts are the documents as texts, at most limit (0 means any number). From an object it
// takes the fields that rank_fields names, each as a line "name: value", or else its
// text; other fields are reported.
func (r *Request) Texts(limit int, loss *chat.Loss) ([]string, error) {
	if limit > 0 && len(r.Documents) > limit {
		return nil, fault.Invalid("documents", "documents must contain at most %d documents for this provider", limit)
	}
	texts := make([]string, len(r.Documents))
	for i := range r.Documents {
		var err error
		if texts[i], err = r.text(i, loss); err != nil {
			return nil, err
		}
	}
	return texts, nil
}

func (r *Request) text(i int, loss *chat.Loss) (string, error) {
	doc, at := &r.Documents[i], "documents["+strconv.Itoa(i)+"]"
	if !doc.Object {
		return doc.Text, nil
	}
	if len(r.Fields) == 0 {
		d := wire.NewDecoder(doc.Raw)
		text := false
		for key := range d.Object {
			if string(key) == "text" && d.Kind() == wire.KindString {
				text = true
				continue
			}
			loss.Add(at+"."+string(key), upstream.UnsupportedField)
		}
		if !text {
			return "", fault.Invalid(at+".text", "%s.text is required: a text", at)
		}
		return doc.Text, nil
	}
	return r.ranked(doc, at)
}

// ranked joins the fields that rank_fields names, in that order.
func (r *Request) ranked(doc *Document, at string) (string, error) {
	var b []byte
	for _, field := range r.Fields {
		var value []byte
		d := wire.NewDecoder(doc.Raw)
		for key := range d.Object {
			if string(key) == field {
				value = d.Raw()
			}
		}
		switch {
		case value == nil || wire.IsNull(value):
			return "", fault.Invalid(at+"."+field, "%s must have the field %s, which rank_fields names", at, field)
		case wire.KindOf(value) == wire.KindString:
			value = wire.AppendUnquoted(nil, value)
		}
		if len(b) > 0 {
			b = append(b, '\n')
		}
		b = append(append(append(b, field...), ": "...), value...)
	}
	return string(b), nil
}

// ReportLoss reports the fields that are not in carried.
func (r *Request) ReportLoss(loss *chat.Loss, carried ...string) {
	if r.PerDoc.Set && !slices.Contains(carried, "max_tokens_per_doc") {
		loss.Add("max_tokens_per_doc", upstream.UnsupportedField)
	}
	r.Extra.Report(loss, upstream.UnsupportedField, carried...)
}

// Pass writes the extra fields that the provider knows by the same names.
func (r *Request) Pass(o *upstream.Object, names ...string) {
	r.Extra.Pass(o.Raw, names...)
}
