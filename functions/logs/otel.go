package logs

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"gateway/functions/logs/ingest"
	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/observe/instrumentation"
	"gateway/shared/observe/otlp"
	"gateway/shared/observe/spandedup"
	"gateway/shared/usage"
)

// Limits of OpenTelemetry requests.
const (
	maxOTLP   = 4 << 20  // bytes of a body as it is sent
	maxPlain  = 16 << 20 // of one that was packed
	maxIDText = 255      // bytes of an id, of a name
)

const protobufType = "application/x-protobuf"

// Codes of google.rpc.Status.
const (
	rpcInvalid     = 3
	rpcDenied      = 7
	rpcExhausted   = 8
	rpcUnavailable = 14
	rpcUnknownWho  = 16
)

// kind is one of the two signals, with the names of its parts.
type kind struct {
	path, name, member, rejected string
	fromJSON, fromProtobuf       func([]byte) ([]otlp.ReceivedSpan, error)
	priced                       func(*otlp.ReceivedSpan) bool
	needsIDs                     bool
}

var kinds = []kind{
	{"/otel/v1/traces", "createTraces", "resourceSpans", "rejectedSpans", otlp.ReadJSONTraces, otlp.ReadTraces, func(*otlp.ReceivedSpan) bool { return true }, true},
	// What belongs to a span is counted with it.
	{"/otel/v1/logs", "createLogRecords", "resourceLogs", "rejectedLogRecords", otlp.ReadJSONLogs, otlp.ReadLogs, func(t *otlp.ReceivedSpan) bool { return t.ID == "" }, false},
}

func (f *family) otelRoutes() (out []admin.Route) {
	docs := map[string]string{
		"resourceSpans": "Import OpenTelemetry spans as logs (OTLP over HTTP, JSON or protobuf, gzip or plain). Model spans, by the old or the new gen_ai conventions, are counted and priced; others place them in their trace. Sending a span again changes nothing; spans that the gateway itself exported are rejected, since it has their logs. Requires completions.write and logs.write.",
		"resourceLogs":  "Import OpenTelemetry log records as logs, like spans at /otel/v1/traces. Usage is counted only for records that belong to no span; others are counted with their span. Requires completions.write and logs.write.",
	}
	examples := map[string]any{
		"resourceSpans": map[string]any{"resource": map[string]any{"attributes": []any{pair("service.name", "shop")}}, "scopeSpans": []any{map[string]any{"spans": []any{map[string]any{
			"traceId": "5b8efff798038103d269b633813fc60c", "spanId": "eee19b7ec3c1b174", "name": "chat gpt-4o-mini", "kind": 3, "startTimeUnixNano": "1795000000000000000", "endTimeUnixNano": "1795000001000000000",
			"attributes": []any{pair("gen_ai.operation.name", "chat"), pair("gen_ai.provider.name", "openai"), pair("gen_ai.request.model", "gpt-4o-mini"), count("gen_ai.usage.input_tokens", 9), count("gen_ai.usage.output_tokens", 12)}}}}}},
		"resourceLogs": map[string]any{"scopeLogs": []any{map[string]any{"logRecords": []any{map[string]any{
			"timeUnixNano": "1795000000000000000", "eventName": "gen_ai.client.inference.operation.details", "traceId": "5b8efff798038103d269b633813fc60c", "spanId": "eee19b7ec3c1b174",
			"attributes": []any{pair("gen_ai.operation.name", "chat"), pair("gen_ai.request.model", "gpt-4o-mini")}}}}}},
	}
	for _, k := range kinds {
		out = append(out, admin.Route{
			Method: "POST", Path: k.path, Name: k.name, Doc: docs[k.member], Scopes: []string{insertScope}, Level: admin.InWorkspace, ByWorkspaces: true, Unrecorded: true,
			MaxBody: maxOTLP, Consumes: []string{"application/json", protobufType}, Unparsed: true, Binary: protobufType,
			Body: []admin.Field{{Name: k.member, Type: admin.Array, Of: &admin.Field{Type: admin.Any, Example: examples[k.member]}, Max: otlp.MaxRecords, Doc: "As defined by OTLP; unknown fields are ignored."}},
			Response: admin.Schema{"type": "object", "additionalProperties": false, "properties": map[string]admin.Schema{
				"partialSuccess": {"type": "object", "description": "About rejected entries; absent if there are none.", "additionalProperties": false, "properties": map[string]admin.Schema{
					k.rejected: {"type": "string"}, "errorMessage": {"type": "string"}}}}},
			Rejections: &admin.Rejections{ContentType: "application/json", Schema: admin.Schema{"type": "object"}, Body: rejected},
			Do:         func(c *admin.Call) (any, error) { return f.observe(c, &k) },
		})
	}
	return out
}

func pair(key, value string) any {
	return map[string]any{"key": key, "value": map[string]any{"stringValue": value}}
}

func count(key string, n int) any {
	return map[string]any{"key": key, "value": map[string]any{"intValue": fmt.Sprint(n)}}
}

func inProtobuf(r *http.Request) bool {
	media, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	return media == protobufType
}

// rejected returns a rejection as its sender reads it.
func rejected(c *admin.Call, f *fault.Fault) any {
	if !inProtobuf(c.Request) {
		return admin.Response{ContentType: "application/json", Body: f.AdminBody(c.RequestID)}
	}
	code := rpcInvalid
	switch status := f.Status(); {
	case status == http.StatusUnauthorized:
		code = rpcUnknownWho
	case status == http.StatusForbidden:
		code = rpcDenied
	case status == http.StatusTooManyRequests || status == http.StatusRequestEntityTooLarge:
		code = rpcExhausted
	case status >= 500:
		code = rpcUnavailable
	}
	why := f.Message
	for _, d := range f.Details {
		why += "; " + strings.TrimSpace(d.Field+" "+d.Message)
	}
	return admin.Response{ContentType: protobufType, Body: otlp.RejectedStatus(code, why)}
}

// observe stores the entries of an OTLP request.
func (f *family) observe(c *admin.Call, k *kind) (any, error) {
	if !c.Caller.HasAny([]string{makeScope}) {
		return nil, admin.Denied()
	}
	body, err := unpacked(c)
	if err != nil {
		return nil, err
	}
	read := k.fromJSON
	if inProtobuf(c.Request) {
		read = k.fromProtobuf
	}
	all, err := read(body)
	if err != nil {
		var own *fault.Fault
		if errors.As(err, &own) {
			return nil, own
		}
		return nil, fault.Invalid("", "the body %s", err)
	}
	by, err := reporter(c)
	if err != nil {
		return nil, err
	}
	no, err := f.ingest(c, by, all, k)
	if err != nil {
		return nil, err
	}
	if inProtobuf(c.Request) {
		return admin.Response{ContentType: protobufType, Header: http.Header{"Content-Type": {protobufType}}, Body: otlp.Rejected(no.n, no.String())}, nil
	}
	if no.n == 0 {
		return admin.Members{}, nil
	}
	return admin.Members{"partialSuccess": map[string]string{k.rejected: fmt.Sprint(no.n), "errorMessage": no.String()}}, nil
}

// unpacked is the body as its sender had it.
func unpacked(c *admin.Call) ([]byte, error) {
	switch encoding := strings.ToLower(c.Request.Header.Get("Content-Encoding")); encoding {
	case "", "identity":
		return c.Raw(), nil
	case "gzip":
		z, err := gzip.NewReader(bytes.NewReader(c.Raw()))
		if err == nil {
			var plain []byte
			if plain, err = io.ReadAll(io.LimitReader(z, maxPlain+1)); err == nil {
				if len(plain) > maxPlain {
					return nil, fault.Newf(fault.BodyTooLarge, "", "The body is larger than %d bytes without its compression", maxPlain)
				}
				return plain, nil
			}
		}
		return nil, fault.Invalid("", "the body is not gzip, although its content-encoding is gzip; if the gateway on AWS treats JSON as text, send it uncompressed or as protobuf").WithCause(err)
	default:
		return nil, fault.Invalid("content-encoding", "must be gzip or none")
	}
}

// rejections counts rejected entries by reason.
type rejections struct {
	n    int
	whys []string
}

func (r *rejections) add(why string) {
	r.n++
	for _, known := range r.whys {
		if known == why {
			return
		}
	}
	r.whys = append(r.whys, why)
}

func (r *rejections) String() string { return strings.Join(r.whys, "; ") }

// pool has readings that are reused: they are large, and a request has many.
var pool = sync.Pool{New: func() any { return new([]instrumentation.SpanFacts) }}

// ingest stores the entries of a request, and returns those that were rejected. Entries become
// records one at a time, so that a request needs little more memory than its entries.
func (f *family) ingest(c *admin.Call, by *ingest.Reporter, all []otlp.ReceivedSpan, k *kind) (no rejections, err error) {
	readings := pool.Get().(*[]instrumentation.SpanFacts)
	defer pool.Put(readings)
	*readings = slices.Grow((*readings)[:0], len(all))[:len(all)]
	defer clear(*readings)
	accepted := make([]bool, len(all))
	var traces spandedup.Request
	for i := range all {
		x := &(*readings)[i]
		x.Read(&all[i])
		if why := unfit(&all[i], x, k, c.Now); why != "" {
			no.add(why)
			continue
		}
		if accepted[i] = true; k.needsIDs {
			traces.Add(all[i].Trace, spanOf(&all[i], x))
		}
	}
	verdicts, err := f.traces().Decide(c.Context, c.Scope, &traces)
	if err != nil {
		return no, fault.Unavailable(err)
	}
	var one [1]ingest.Exchange // reused by all
	var seen ingest.ReportedUsage
	for i, ok := range accepted {
		if !ok {
			continue
		}
		x := &(*readings)[i]
		verdict := spandedup.Verdict{Counts: k.priced(&all[i]) && x.Kind != instrumentation.Other, Usage: &x.Usage}
		if k.needsIDs {
			verdict, verdicts = verdicts[0], verdicts[1:]
		}
		exchangeOf(&one[0], &seen, &all[i], x, &verdict, k)
		if _, err := f.Ingest.Emit(c.Context, by, one[:]); err != nil {
			return no, err
		}
	}
	return no, nil
}

// unfit explains why an entry is not accepted; "" if it is.
func unfit(t *otlp.ReceivedSpan, x *instrumentation.SpanFacts, k *kind, now time.Time) string {
	switch {
	case x.LoggedHere:
		return "the gateway has the logs of its own spans"
	case t.BadID || k.needsIDs && (t.Trace == "" || t.ID == ""):
		return "ids must be hexadecimal, 32 digits of a trace and 16 of a span, and not only zeros"
	case !t.Start.IsZero() && (t.Start.Before(now.Add(-maxReportedAge)) || t.Start.After(now.Add(maxAhead))):
		return "entries must have begun in the last 90 days"
	}
	return ""
}

// exchangeOf sets x, with seen, to what a span or a log record reports about a request.
func exchangeOf(x *ingest.Exchange, seen *ingest.ReportedUsage, t *otlp.ReceivedSpan, s *instrumentation.SpanFacts, v *spandedup.Verdict, k *kind) {
	duration := t.End.Sub(t.Start)
	if t.Start.IsZero() || duration < 0 || duration > maxDuration*time.Millisecond {
		duration = 0
	}
	*seen = ingest.ReportedUsage{Endpoint: s.Endpoint, RequestedModel: s.RequestedModel, Model: s.Model, Finish: s.Finish, Mode: s.Mode, Reported: s.Cost, FirstByte: s.FirstByte, Agent: usage.Agent{Session: clean(s.Session), ID: clean(s.Agent)}}
	*x = ingest.Exchange{
		Created: t.Start, URL: k.path, Method: http.MethodPost, Provider: fault.Clip(s.Provider, 64), Request: s.Request(), Response: s.Response(),
		Status: s.Status, Duration: duration, Stream: s.Stream, TraceID: clean(t.Trace), SpanID: clean(t.ID), ParentSpanID: clean(t.Parent), SpanName: clean(t.Name), Metadata: s.Metadata,
		Reported: seen,
	}
	if s.URL != "" {
		x.URL = s.URL
	}
	if !v.Counts {
		x.Reported.Endpoint, x.Reported.Reported = "", 0
	} else if x.Reported.Usage = *v.Usage; x.Reported.Usage != s.Usage {
		x.Reported.Reported = 0 // it is the price of all usage
	}
	if v.With != (spandedup.ID{}) {
		x.Metadata[instrumentation.NoteKey] = "counted with the span " + hex.EncodeToString(v.With[:])
	}
	if !k.priced(t) {
		// It is stored below its span, which is counted.
		x.SpanID, x.ParentSpanID = "", x.SpanID
	}
	if t.Trace != "" && t.ID != "" && !t.Start.IsZero() && k.priced(t) {
		x.ID = "span\x00" + t.Trace + "\x00" + t.ID
	}
}

// clean is a text that fits a log.
func clean(s string) string {
	s = strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f || c == utf8.RuneError {
			return -1
		}
		return c
	}, s)
	return fault.Clip(s, maxIDText)
}
