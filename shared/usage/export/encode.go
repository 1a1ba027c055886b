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
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"gateway/shared/pricing"
	"gateway/shared/seal"
	"gateway/shared/usage"
	"gateway/shared/usage/message"
	"gateway/shared/usage/report"
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

// Formats of files.
const (
	JSONL   = "jsonl"   // one object per line
	CSV     = "csv"     // a header line, then values (RFC 4180)
	Parquet = "parquet" // one column per field
)

// line is a log with its opened bodies.
type line struct {
	*usage.Record
	bodies *usage.Bodies
}

// field is an exportable value of a log. value returns a value of the given kind.
type field struct {
	name, doc string
	kind      kind
	sealed    bool // it needs the bodies
	value     func(l *line) any
}

// kind is the type of a field's values.
type kind uint8

const (
	words   kind = iota // a string, or nil
	choice              // a string with few distinct values, or nil
	flag                // a bool
	whole               // an int64
	number              // a float64
	money               // a pricing.NanoDollars, shown in US dollars
	instant             // a time.Time
	object              // JSON, or nil
)

var fields = []field{
	{"id", "Of the log.", words, false, func(l *line) any { return l.ID }},
	{"trace_id", "Of the request's trace.", words, false, func(l *line) any { return text(l.TraceID) }},
	{"span_id", "Within the trace.", words, false, func(l *line) any { return text(l.SpanID) }},
	{"parent_span_id", "Of the parent span.", words, false, func(l *line) any { return text(l.ParentSpanID) }},
	{"session_id", "Of a coding agent.", words, false, func(l *line) any { return text(l.Agent.Session) }},
	{"agent_id", "The coding agent.", words, false, func(l *line) any { return text(l.Agent.ID) }},
	{"parent_agent_id", "The parent coding agent.", words, false, func(l *line) any { return text(l.Agent.Parent) }},
	{"created_at", "Time of arrival.", instant, false, func(l *line) any { return l.Start.UTC() }},
	{"workspace_id", "Workspace of the request.", choice, false, func(l *line) any { return l.Workspace }},
	{"api_key_id", "API key of the request.", choice, false, func(l *line) any { return text(l.KeyID) }},
	{"user_id", "Owner of the API key.", choice, false, func(l *line) any { return text(l.UserID) }},
	{"request", "Request of the client, as in the log.", object, true, func(l *line) any {
		return encoded(message.Request(l.bodies, l.Method, l.Path))
	}},
	{"response", "Response to the client, as in the log.", object, true, func(l *line) any {
		return encoded(message.Of(l.bodies.ResponseHeaders, l.bodies.Response))
	}},
	{"is_success", "Whether the status was from 200 to 299, or 101 of a session.", flag, false, func(l *line) any { return l.Success() }},
	{"ai_org", "Type of the provider.", choice, false, func(l *line) any { return text(l.Provider) }},
	{"ai_model", "Model of the response, or else the requested one.", choice, false, func(l *line) any { return text(l.AnsweringModel()) }},
	{"virtual_key", "Saved provider.", choice, false, func(l *line) any { return text(l.ProviderSlug) }},
	{"req_units", "Tokens in.", whole, false, func(l *line) any { return l.Usage.InputTokens() }},
	{"res_units", "Tokens out.", whole, false, func(l *line) any { return l.Usage.OutputTokens() }},
	{"total_units", "Input and output tokens.", whole, false, func(l *line) any { return l.Usage.TotalTokens() }},
	{"request_url", "Path of the request.", choice, false, func(l *line) any { return l.Path }},
	{"cost", "In US cents.", number, false, func(l *line) any { return report.Cents(l.Cost) }},
	{"gateway_cost", "Of the gateway itself, in US cents; 0 where it is not counted for each request.", number, false, func(l *line) any { return report.Cents(l.Running) }},
	{"gateway_cost_usd", "Exact value of gateway_cost in US dollars.", money, false, func(l *line) any { return l.Running }},
	{"cost_currency", "The currency of all costs; cost and gateway_cost are in hundredths of it.", choice, false, func(*line) any { return "USD" }},
	{"cost_unit", "The unit of cost and gateway_cost.", choice, false, func(*line) any { return pricing.CostUnit }},
	{"cost_usd", "Exact value of cost in US dollars.", money, false, func(l *line) any { return l.Cost }},
	{"response_time", "Milliseconds to the last byte.", number, false, func(l *line) any { return float64(l.Duration.Microseconds()) / 1000 }},
	{"response_status_code", "Status of the response.", whole, false, func(l *line) any { return int64(l.ClientStatus) }},
	{"error_code", "Of a failure.", choice, false, func(l *line) any { return text(l.ErrorCode) }},
	{"cache_status", "Cache status.", choice, false, func(l *line) any { return text(l.CacheStatus) }},
	{"mode", "Choice of targets.", choice, false, func(l *line) any {
		if l.Mode == "" {
			return "single"
		}
		return l.Mode
	}},
	{"config", "Slug of the config.", choice, false, func(l *line) any { return text(l.ConfigSlug) }},
	{"prompt_slug", "Of the prompt.", choice, false, func(l *line) any { return text(l.PromptSlug) }},
	{"metadata", "Of the request.", object, false, func(l *line) any {
		if l.Metadata == nil {
			return json.RawMessage("{}")
		}
		return encoded(l.Metadata)
	}},
}

// text returns nil for the empty string.
func text(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// encoded returns JSON of a value that always encodes.
func encoded(v any) any {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return json.RawMessage(raw)
}

// Fields lists the names of exportable fields.
func Fields() []string {
	out := make([]string, len(fields))
	for i := range fields {
		out[i] = fields[i].name
	}
	return out
}

// Sealed reports whether one of the fields is part of the bodies.
func Sealed(names []string) bool {
	return slices.ContainsFunc(fields, func(f field) bool { return f.sealed && slices.Contains(names, f.name) })
}

// named returns the fields of an order, in its order.
func named(names []string) []*field {
	var out []*field
	for _, name := range names {
		if i := slices.IndexFunc(fields, func(f field) bool { return f.name == name }); i >= 0 {
			out = append(out, &fields[i])
		}
	}
	return out
}
