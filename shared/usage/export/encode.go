package export

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"gateway/shared/pricing"
	"gateway/shared/seal"
	"gateway/shared/usage"
	"gateway/shared/wire"
)

// writer encodes a file, one part at a time.
type writer interface {
	// record writes a log.
	record(l *line) error
	// size returns the size of the part so far.
	size() int
	// part ends the part. index is the metadata for the end of the file, if any. Both are
	// valid until the next part begins.
	part(ctx context.Context, last bool) (body, index []byte, err error)
	// next begins another part.
	next()
}

// lines writes each log as a line.
type lines struct {
	fields []*field
	csv    bool
	buf    bytes.Buffer // the part
	out    io.Writer    // writes to buf, perhaps compressed
	zip    *gzip.Writer // nil without compression
	line   []byte
}

// newLines continues a file with written bytes.
func newLines(o *Order, written int64) (*lines, error) {
	w := &lines{fields: named(o.Fields), csv: o.Format == CSV}
	w.out = &w.buf
	if o.Gzip {
		w.zip = gzip.NewWriter(&w.buf)
		w.out = w.zip
	}
	if !w.csv || written > 0 {
		return w, nil
	}
	for i, f := range w.fields {
		if i > 0 {
			w.line = append(w.line, ',')
		}
		w.line = append(w.line, f.name...)
	}
	return w, w.send("\r\n")
}

func (w *lines) send(end string) error {
	w.line = append(w.line, end...)
	_, err := w.out.Write(w.line)
	w.line = w.line[:0]
	return err
}

func (w *lines) size() int { return w.buf.Len() }

func (w *lines) record(l *line) error {
	if w.csv {
		for i, f := range w.fields {
			if i > 0 {
				w.line = append(w.line, ',')
			}
			w.line = appendCell(w.line, f.value(l))
		}
		return w.send("\r\n")
	}
	for i, f := range w.fields {
		open := byte(',')
		if i == 0 {
			open = '{'
		}
		w.line = wire.AppendJSONString(append(w.line, open), f.name)
		w.line = appendJSON(append(w.line, ':'), f.value(l))
	}
	return w.send("}\n")
}

// part flushes the compressor, so that each part is complete.
func (w *lines) part(context.Context, bool) (body, index []byte, err error) {
	if w.zip != nil {
		err = w.zip.Close()
	}
	return w.buf.Bytes(), nil, err
}

func (w *lines) next() {
	w.buf.Reset()
	if w.zip != nil {
		w.zip.Reset(&w.buf)
	}
}

// line is a log to write, with its bodies if a field needs them. Lost bodies are omitted.
func (t *task) line(ctx context.Context, r *usage.Record) (*line, error) {
	l := &line{Record: r, bodies: &usage.Bodies{}}
	if !t.run.Order.Bodies || len(r.Bodies) == 0 {
		return l, nil
	}
	plain, err := t.Sealer.Open(ctx, l.BodiesBinding(), r.Bodies)
	if err == nil {
		var b usage.Bodies
		if b, err = usage.DecodeBodies(plain); err == nil {
			l.bodies = &b
			return l, nil
		}
	} else if !errors.Is(err, seal.ErrRefused) {
		return nil, err
	}
	slog.Error("bodies of a log cannot be read", "log", l.ID, "error", err)
	return l, nil
}

func appendJSON(dst []byte, v any) []byte {
	switch v := v.(type) {
	case string:
		return wire.AppendJSONString(dst, v)
	case bool:
		return strconv.AppendBool(dst, v)
	case int64:
		return strconv.AppendInt(dst, v, 10)
	case float64:
		return appendNumber(dst, v)
	case pricing.NanoDollars:
		return append(dst, v.USD()...)
	case time.Time:
		return append(v.AppendFormat(append(dst, '"'), time.RFC3339Nano), '"')
	case json.RawMessage:
		return append(dst, v...)
	}
	return append(dst, "null"...)
}

// appendNumber writes a number in a form valid in JSON and CSV: without an exponent.
func appendNumber(dst []byte, v float64) []byte {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		v = 0
	}
	return strconv.AppendFloat(dst, v, 'f', -1, 64)
}

// formula reports whether spreadsheets may interpret a text as a formula: they skip white
// space, and some treat full-width signs like ASCII ones.
func formula(s string) bool {
	if s == "" {
		return false
	}
	if s[0] == '\t' || s[0] == '\r' || s[0] == '\n' {
		return true
	}
	first, _ := utf8.DecodeRuneInString(strings.TrimLeftFunc(s, func(r rune) bool { return unicode.IsSpace(r) || !unicode.IsPrint(r) }))
	return strings.ContainsRune("=+-@＝＋－＠", first)
}

func appendCell(dst []byte, v any) []byte {
	var s string
	switch v := v.(type) {
	case nil:
		return dst
	case string:
		if s = v; formula(s) {
			s = "'" + s // display as text
		}
	case time.Time:
		return v.AppendFormat(dst, time.RFC3339Nano)
	case json.RawMessage:
		s = string(v)
	default:
		return appendJSON(dst, v)
	}
	if !strings.ContainsAny(s, "\",\r\n") {
		return append(dst, s...)
	}
	dst = append(dst, '"')
	dst = append(dst, strings.ReplaceAll(s, `"`, `""`)...)
	return append(dst, '"')
}
