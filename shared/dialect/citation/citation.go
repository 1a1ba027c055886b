// Package citation reads the sources of a text in the shapes in which providers name
// them, and writes them as clients read them.
package citation

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/wire"
)

// Citation is one source of a text.
type Citation struct {
	URL, Title string
	Quote      string // what the source says
	// Placed states that Start and End are known: a range of the text that has the citation, in
	// code points from 0. Otherwise the citation is for the entire text.
	Placed     bool
	Start, End int

	document place  // in a document of the request
	own      []byte // unchanged, when it is in the shape of Anthropic's messages
	unsigned bool   // it comes from a search that was not Anthropic's
}

// searched is the type of a source that a search has found.
const searched = "web_search_result_location"

// place is a range in a document of the request.
type place struct {
	kind       string // char, page or content_block; empty if there is none
	index      int64
	start, end int64
}

// Read reads a citation: of Anthropic's messages, Converse, Cohere, chat
// completions or Responses. raw is one JSON object.
func Read(raw []byte) Citation {
	var c Citation
	var text, kind, index string
	quoted := false
	d := wire.NewDecoder(raw)
	for key := range d.Object {
		switch string(key) {
		case "type":
			kind = upstream.OptString(d)
		case "cited_text":
			c.Quote, quoted = upstream.OptString(d), true
		case "encrypted_index":
			index = upstream.OptString(d)
		case "source": // an address, or a name
			text = upstream.OptString(d)
		case "sourceContent":
			c.Quote = texts(d)
		case "location":
			c.location(d)
		case "url_citation":
			object(d, c.member)
		case "sources":
			c.sources(d)
		default:
			c.member(string(key), d)
		}
	}
	if d.End() != nil {
		return Citation{}
	}
	if c.URL == "" && (strings.HasPrefix(text, "https://") || strings.HasPrefix(text, "http://")) {
		c.URL = text
	}
	if quoted && strings.HasSuffix(kind, "_location") && utf8.Valid(raw) {
		c.own, c.unsigned = raw, kind == searched && index == ""
	}
	c.Placed = c.End > c.Start && c.Start >= 0
	return c
}

// member reads a field that several shapes have.
func (c *Citation) member(name string, d *wire.Decoder) {
	switch name {
	case "url":
		c.URL = upstream.OptString(d)
	case "title":
		c.Title = upstream.OptString(d)
	case "start_index", "start":
		c.Start = number(d)
	case "end_index", "end":
		c.End = number(d)
	default:
		d.Skip()
	}
}

// maxPlace bounds a place in a text.
const maxPlace = 1 << 30

func number(d *wire.Decoder) int {
	var n chat.Opt[int64]
	upstream.Count(d, &n)
	return int(min(n.Value, maxPlace))
}

func object(d *wire.Decoder, member func(string, *wire.Decoder)) {
	if d.Kind() != wire.KindObject {
		d.Skip()
		return
	}
	for key := range d.Object {
		member(string(key), d)
	}
}

// texts joins [{text}].
func texts(d *wire.Decoder) string {
	var all []string
	if d.Kind() != wire.KindArray {
		d.Skip()
		return ""
	}
	for range d.Array {
		object(d, func(name string, d *wire.Decoder) {
			if name == "text" {
				all = append(all, upstream.OptString(d))
			} else {
				d.Skip()
			}
		})
	}
	return strings.Join(all, "")
}

// documentPlaces are Converse's places in documents by Anthropic's names.
var documentPlaces = map[string]string{"documentChar": "char", "documentPage": "page", "documentChunk": "content_block"}

// location reads where Converse found a source: {web:{url}}, or a place in a
// document.
func (c *Citation) location(d *wire.Decoder) {
	object(d, func(name string, d *wire.Decoder) {
		if name == "web" {
			object(d, c.member)
			return
		}
		kind := documentPlaces[name]
		if kind == "" {
			d.Skip()
			return
		}
		c.document.kind = kind
		object(d, func(name string, d *wire.Decoder) {
			switch name {
			case "documentIndex":
				c.document.index = int64(number(d))
			case "start":
				c.document.start = int64(number(d))
			case "end":
				c.document.end = int64(number(d))
			default:
				d.Skip()
			}
		})
	})
}

// sources reads Cohere's [{document:{url, title}}]: the first with an address.
func (c *Citation) sources(d *wire.Decoder) {
	if d.Kind() != wire.KindArray {
		d.Skip()
		return
	}
	for range d.Array {
		object(d, func(name string, d *wire.Decoder) {
			if name != "document" || c.URL != "" {
				d.Skip()
				return
			}
			object(d, func(name string, d *wire.Decoder) {
				if name == "url" || name == "title" {
					c.member(name, d)
				} else {
					d.Skip()
				}
			})
		})
	}
}

// Each returns the citations of a list.
func Each(list []byte, give func(*Citation)) {
	if len(list) == 0 {
		return
	}
	d := wire.NewDecoder(list)
	if d.Kind() != wire.KindArray {
		return
	}
	for range d.Array {
		if d.Kind() == wire.KindObject {
			c := Read(d.Raw())
			give(&c)
		}
	}
}

// within is the range that the citation is for, in a text of length code points.
func (c *Citation) within(length int) (start, end int) {
	if !c.Placed || c.Start >= length {
		return 0, length
	}
	return c.Start, min(c.End, length)
}

// AppendFlat appends the citation as Responses write it: {type: url_citation, start_index,
// end_index, url, title}. length is the length of its text in code points, and offset is
// where this text begins. Nothing is appended for a source without an address.
func (c *Citation) AppendFlat(dst []byte, offset, length int) []byte {
	if c.URL == "" {
		return dst
	}
	dst = append(dst, `{"type":"url_citation",`...)
	return append(c.members(dst, offset, length), '}')
}

// AppendNested is AppendFlat as chat completions write it: {type: url_citation,
// url_citation: {...}}.
func (c *Citation) AppendNested(dst []byte, offset, length int) []byte {
	if c.URL == "" {
		return dst
	}
	dst = append(dst, `{"type":"url_citation","url_citation":{`...)
	return append(c.members(dst, offset, length), `}}`...)
}

func (c *Citation) members(dst []byte, offset, length int) []byte {
	start, end := c.within(length)
	dst = strconv.AppendInt(append(dst, `"start_index":`...), int64(offset+start), 10)
	dst = strconv.AppendInt(append(dst, `,"end_index":`...), int64(offset+end), 10)
	dst = wire.AppendJSONString(append(dst, `,"url":`...), c.URL)
	return wire.AppendJSONString(append(dst, `,"title":`...), c.Title)
}

// AppendMessages appends the citation in the shape of Anthropic's messages, or nothing if
// this shape has no place for the source.
func (c *Citation) AppendMessages(dst []byte) []byte {
	switch p := c.document; {
	case c.own != nil:
		return append(dst, c.own...)
	case p.kind != "":
		unit := map[string]string{"char": "char_index", "page": "page_number", "content_block": "block_index"}[p.kind]
		dst = append(dst, `{"type":"`+p.kind+`_location","cited_text":`...)
		dst = wire.AppendJSONString(dst, c.Quote)
		dst = strconv.AppendInt(append(dst, `,"document_index":`...), p.index, 10)
		dst = wire.AppendJSONString(append(dst, `,"document_title":`...), c.Title)
		dst = strconv.AppendInt(append(dst, `,"start_`+unit+`":`...), p.start, 10)
		return append(strconv.AppendInt(append(dst, `,"end_`+unit+`":`...), p.end, 10), '}')
	case c.URL != "":
		dst = wire.AppendJSONString(append(dst, `{"type":"`+searched+`","url":`...), c.URL)
		dst = wire.AppendJSONString(append(dst, `,"title":`...), c.Title)
		dst = wire.AppendJSONString(append(dst, `,"encrypted_index":"","cited_text":`...), c.Quote)
		return append(dst, '}')
	}
	return dst
}

// Join appends what each citation of a list appends, with commas between.
func Join(dst, list []byte, appendOne func(dst []byte, c *Citation) []byte) []byte {
	from := len(dst)
	Each(list, func(c *Citation) {
		before := len(dst)
		if before > from {
			dst = append(dst, ',')
		}
		behind := len(dst)
		if dst = appendOne(dst, c); len(dst) == behind {
			dst = dst[:before]
		}
	})
	return dst
}

// Length is how many code points a JSON string has. It may be given with or without its
// quotes, which do not count.
func Length(json []byte) int {
	if n := len(json); n > 1 && json[0] == '"' && json[n-1] == '"' {
		json = json[1 : n-1]
	}
	n := 0
	for _, c := range json {
		if c == '\\' {
			quoted := append(append([]byte{'"'}, json...), '"')
			return utf8.RuneCount(wire.AppendUnquoted(nil, quoted))
		}
		if utf8.RuneStart(c) {
			n++
		}
	}
	return n
}
