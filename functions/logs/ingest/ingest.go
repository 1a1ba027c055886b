// Package ingest records requests made outside the gateway, as reported by clients. Usage is read
// from the reported response and priced like that of any request; it counts against no budget,
// because nothing was admitted.
package ingest

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/oklog/ulid/v2"

	"gateway/shared/chat"
	"gateway/shared/dialect/anthropic"
	"gateway/shared/dialect/converse"
	"gateway/shared/dialect/gemini"
	"gateway/shared/dialect/openai"
	"gateway/shared/dialect/responses"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/provider"
	"gateway/shared/relay/record"
	"gateway/shared/seal"
	"gateway/shared/store"
	"gateway/shared/usage"
)

// maxName limits the names of models and of reasons in reported calls, in bytes.
const maxName = 256

// Exchange is a request and its response as reported by a client, validated against the limits
// of its description.
type Exchange struct {
	ID      string    // of the client's choice; "": none
	Created time.Time // when it began; zero: its response has just come

	URL, Method, Provider           string
	RequestHeaders, ResponseHeaders map[string]string
	Request, Response               []byte // JSON, or a JSON string of other text
	Status                          int
	Duration                        time.Duration
	Stream                          bool

	TraceID, SpanID, ParentSpanID, SpanName string
	Metadata                                map[string]string
	Reported                                *ReportedUsage // nil: read the bodies instead
}

// ReportedUsage contains the figures that a span reported, which replace those read from bodies.
type ReportedUsage struct {
	Endpoint              string // type of request; "": no model was called and there is no cost
	RequestedModel, Model string // the requested model, and the one that responded
	Finish                string
	Usage                 pricing.Usage
	Mode                  string              // of the price list; "" for the standard one
	Reported              pricing.NanoDollars // cost by the sender, used if the model has no price; 0 if there is none
	FirstByte             time.Duration       // 0: not reported
	Agent                 usage.Agent
}

// Reporter is the reporting client.
type Reporter struct {
	Scope                  store.Scope
	Slug                   string // of the workspace
	KeyID, KeyType, UserID string
	Bodies                 bool // the workspace's logs include bodies
}

var errNowhere = errors.New("ingest: this process accepts no usage events")

// Maker makes and emits records.
type Maker struct {
	Sink   usage.Sink
	Sealer seal.Sealer
	Now    func() time.Time
	Prices *pricing.Book // nil: the one that comes with the gateway
}

// Emit stores the exchanges and returns their log ids in the same order. If one fails, those
// before it are stored; exchanges with client-chosen ids can be sent again.
func (m *Maker) Emit(ctx context.Context, by *Reporter, all []Exchange) (ids []string, err error) {
	if m.Sink == nil {
		return nil, fault.Unavailable(errNowhere)
	}
	s := slots.Get().(*slot)
	defer slots.Put(s)
	defer s.clear()
	for i := range all {
		r := m.record(by, &all[i], s)
		if err := m.seal(ctx, by, &all[i], s); err != nil {
			return ids, fault.Unavailable(fmt.Errorf("told: %w", err))
		}
		if err := m.Sink.Emit(ctx, r); err != nil {
			return ids, fault.Unavailable(fmt.Errorf("told: %w", err))
		}
		ids = append(ids, r.ID)
	}
	return ids, nil
}

// slot is the memory of a record, its attempt and its bodies, which is reused: sinks keep no reference to
// the records that they accept.
type slot struct {
	record  usage.Record
	attempt [1]usage.Attempt
	sealed  []byte
}

// maxSealed limits the memory for bodies that is reused, in bytes.
const maxSealed = 64 << 10

func (s *slot) clear() {
	sealed := s.sealed
	if *s = (slot{}); cap(sealed) <= maxSealed {
		s.sealed = sealed[:0]
	}
}

var slots = sync.Pool{New: func() any { return new(slot) }}

// record returns the usage record of an exchange, in the memory of a slot.
func (m *Maker) record(by *Reporter, x *Exchange, in *slot) *usage.Record {
	start := x.Created
	if start.IsZero() {
		start = m.Now().Add(-x.Duration)
	}
	start = start.UTC().Truncate(time.Microsecond)
	r := &in.record
	*r = usage.Record{
		ID: logID(by.Scope, x.ID, start), Start: start, Org: by.Scope.Org, Workspace: by.Scope.Workspace, WorkspaceSlug: by.Slug,
		KeyID: by.KeyID, KeyType: by.KeyType, UserID: by.UserID, EndUser: x.Metadata["_user"], Metadata: x.Metadata,
		TraceID: x.TraceID, SpanID: x.SpanID, ParentSpanID: x.ParentSpanID, SpanName: x.SpanName,
		Method: strings.ToUpper(x.Method), Path: withoutSecrets(x.URL), Stream: x.Stream,
		RequestBytes: int64(len(x.Request)), ResponseBytes: int64(len(x.Response)), ClientStatus: x.Status, CacheStatus: "DISABLED",
		Duration: x.Duration, TimeToFirstByte: x.Duration, UpstreamLatency: x.Duration,
	}
	if r.TraceID == "" {
		r.TraceID = r.ID
	}
	m.count(r, x)
	in.attempt[0] = usage.Attempt{Provider: r.Provider, Model: r.AnsweringModel(), Status: x.Status, Latency: x.Duration, Usage: r.Usage, Cost: r.Cost}
	r.Attempts = in.attempt[:]
	return r
}

// count determines the usage, from the reported figures or else from the bodies, and prices it.
func (m *Maker) count(r *usage.Record, x *Exchange) {
	seen := x.Reported
	if seen == nil {
		got := meter(x)
		r.Endpoint = endpointOf(r.Path)
		seen = &ReportedUsage{RequestedModel: modelIn(x.Request), Model: got.Model, Finish: got.Finish, Usage: got.Usage}
		m.price(r, x, seen, &got)
		return
	}
	r.Endpoint, r.Agent, r.Reported = cmp.Or(seen.Endpoint, usage.EndpointSpan), seen.Agent, true
	if seen.FirstByte > 0 && seen.FirstByte < x.Duration {
		r.TimeToFirstByte = seen.FirstByte
	}
	var got chat.Meter
	got.Mode = seen.Mode
	m.price(r, x, seen, &got)
	if !r.Priced && seen.Reported > 0 {
		r.Cost, r.Priced = seen.Reported, true
	}
	r.Priced = r.Priced || seen.Endpoint == "" // it cost nothing
}

// price finds what the usage costs. What a provider charges for a response that failed is
// not known.
func (m *Maker) price(r *usage.Record, x *Exchange, seen *ReportedUsage, got *chat.Meter) {
	r.RequestModel = fault.Clip(seen.RequestedModel, maxName)
	r.Model, r.FinishReason = fault.Clip(seen.Model, maxName), fault.Clip(seen.Finish, maxName)
	r.Provider = x.Provider
	p, known := provider.ByID(x.Provider)
	if known {
		r.Provider = p.ID
	}
	r.Usage = seen.Usage.Limit(pricing.Usage{})
	if !r.Success() && !r.Usage.IsReported() {
		r.Priced = true // it cost nothing
		return
	}
	o := pricing.Options{ContextTokens: r.Usage.InputTokens(), Region: got.Region, SearchContext: got.SearchContext, Mode: got.Mode, At: r.Start}
	book := m.Prices
	if book == nil {
		book = pricing.Default()
	}
	book = book.Current()
	if !known && x.Provider == "" && x.Reported != nil {
		r.Provider, known = vendorOf(book, o, r.Model, r.RequestModel)
	}
	if !known || !r.Usage.IsReported() {
		return
	}
	for _, model := range []string{r.Model, r.RequestModel} {
		if price, ok := book.Price(r.Provider, model, o); ok && model != "" {
			r.Cost, r.Priced = price.Cost(r.Usage), price.Covers(r.Usage)
			r.Book, r.Tariff = book.Version(), price.Line()
			return
		}
	}
}

// vendors are the providers that make models, before those that serve them as well.
var vendors = []string{"openai", "anthropic", "google", "mistral-ai", "x-ai", "deepseek", "cohere", "moonshot", "perplexity-ai", "bedrock", "vertex-ai", "groq"}

// vendorOf returns the provider of a model of which only the name is known: the first one
// that has a price for it.
func vendorOf(book *pricing.Book, o pricing.Options, models ...string) (id string, ok bool) {
	for _, model := range models {
		if model == "" {
			continue
		}
		for _, id := range vendors {
			if _, ok := book.Price(id, model, o); ok {
				return id, true
			}
		}
	}
	return "", false
}

// seal puts the bodies into the record, those of failed requests only as far as logs of
// metrics keep them.
func (m *Maker) seal(ctx context.Context, by *Reporter, x *Exchange, in *slot) (err error) {
	r := &in.record
	if !by.Bodies && r.Success() {
		return nil
	}
	var b record.Bodies
	defer b.Free()
	b.AppendResponse(plainText(x.Response))
	shown := record.Extras{ResponseHeaders: headersOf(x.ResponseHeaders), Requests: by.Bodies}
	if by.Bodies {
		shown.RequestHeaders, shown.Request = headersOf(x.RequestHeaders), plainText(x.Request)
	}
	b.SetExtras(shown, nil)
	sealed, err := b.Seal(ctx, m.Sealer, r.BodiesBinding())
	in.sealed = append(in.sealed[:0], sealed...)
	r.Bodies = in.sealed
	return err
}

func headersOf(h map[string]string) http.Header {
	out := make(http.Header, len(h))
	for name, value := range h {
		out.Set(name, value)
	}
	return out
}

// logID returns the id of a log. A client-chosen id always maps to the same log id, which is
// unique to the workspace.
func logID(sc store.Scope, id string, start time.Time) string {
	if id == "" {
		return ulid.MustNewDefault(start).String()
	}
	sum := sha256.Sum256([]byte(sc.Org + "\x00" + sc.Workspace + "\x00" + id))
	var out ulid.ULID
	_ = out.SetTime(ulid.Timestamp(start)) // its bounds are those of the description
	_ = out.SetEntropy(sum[:10])
	return out.String()
}

// withoutSecrets is an address without query, fragment and password.
func withoutSecrets(address string) string {
	if !strings.ContainsAny(address, "?#@:%") && strings.HasPrefix(address, "/") && !strings.HasPrefix(address, "//") {
		return address // a plain path
	}
	u, err := url.Parse(address)
	if err != nil {
		at, _, _ := strings.Cut(address, "?")
		return at
	}
	u.RawQuery, u.Fragment, u.RawFragment, u.User = "", "", "", nil
	return u.String()
}

// endings are ends of paths with the types of requests that are sent there, the longer
// before those that end like them.
var endings = []struct{ path, endpoint string }{
	{"/chat/completions", "chatComplete"}, {"/completions", "complete"}, {"/embeddings", "embed"}, {"/rerank", "rerank"}, {"/moderations", "moderate"},
	{"/responses", "createModelResponse"}, {"/messages", "messages"}, {"/images/generations", "imageGenerate"}, {"/audio/speech", "createSpeech"},
	{"/audio/transcriptions", "createTranscription"}, {"/audio/translations", "createTranslation"},
}

// otherEndpoint is the type of every other request.
const otherEndpoint = "log"

func endpointOf(path string) string {
	path = strings.TrimRight(path, "/")
	for _, e := range endings {
		if strings.HasSuffix(path, e.path) {
			return e.endpoint
		}
	}
	return otherEndpoint
}

func modelIn(request []byte) string {
	var of struct {
		Model string `json:"model"`
	}
	_ = json.Unmarshal(plainText(request), &of) // a body of another kind names none
	return of.Model
}

// plainText is what a body says: one that is a JSON string is the text in it.
func plainText(body []byte) []byte {
	var text string
	if len(body) > 0 && body[0] == '"' && json.Unmarshal(body, &text) == nil {
		return []byte(text)
	}
	if string(body) == "null" {
		return nil
	}
	return body
}

// shape has the fields that identify a provider's response format.
type shape struct {
	Object        string          `json:"object"`
	Type          string          `json:"type"`
	Choices       json.RawMessage `json:"choices"`
	UsageMetadata json.RawMessage `json:"usageMetadata"`
	Candidates    json.RawMessage `json:"candidates"`
	Output        json.RawMessage `json:"output"`
	StopReason    json.RawMessage `json:"stopReason"`
}

func (s *shape) dialect() chat.Passer {
	switch {
	case s.Object == "response" || strings.HasPrefix(s.Type, "response."):
		return upstream.Passer(responses.Responses{})
	case s.Type == "message" || strings.HasPrefix(s.Type, "message_") || strings.HasPrefix(s.Type, "content_block_"):
		return upstream.Passer(anthropic.Messages{})
	case s.UsageMetadata != nil || s.Candidates != nil:
		return upstream.Passer(gemini.Generate{})
	case s.StopReason != nil && s.Output != nil:
		return upstream.Passer(converse.Converse{})
	}
	return upstream.Passer(openai.Chat{})
}

// meter reads the usage of a response from any provider: the format is that of the
// answer, since it may have come through another gateway.
func meter(x *Exchange) chat.Meter {
	body := plainText(x.Response)
	if pieces, ok := events(body); ok {
		f := shapeOf(pieces[0]).dialect().NewStreamFilter(&chat.FilterOptions{IncludeUsage: true})
		for _, data := range pieces {
			if _, err := f.Feed(event(data)); err != nil {
				break
			}
		}
		f.End()
		return f.Meter()
	}
	return shapeOf(body).dialect().MeterResponse(body)
}

func shapeOf(body []byte) *shape {
	s := new(shape)
	_ = json.Unmarshal(body, s) // what it cannot read is no shape of ours
	return s
}

// event frames a piece of a stream as the provider did, as far as dialects ask for it.
func event(data []byte) []byte {
	out := []byte("data: ")
	if kind := shapeOf(data).Type; kind != "" && !strings.ContainsAny(kind, "\r\n") {
		out = []byte("event: " + kind + "\ndata: ")
	}
	return append(append(out, data...), "\n\n"...)
}

// events are the pieces of a streamed response: a list of them, or the text of
// server-sent events; ok is false for other bodies.
func events(body []byte) (pieces [][]byte, ok bool) {
	body = bytes.TrimSpace(body)
	if len(body) > 0 && body[0] == '[' {
		var list []json.RawMessage
		if json.Unmarshal(body, &list) != nil {
			return nil, false
		}
		for _, piece := range list {
			var line bytes.Buffer
			if json.Compact(&line, piece) == nil {
				pieces = append(pieces, line.Bytes())
			}
		}
		return pieces, len(pieces) > 0
	}
	if !bytes.HasPrefix(body, []byte("data:")) && !bytes.HasPrefix(body, []byte("event:")) {
		return nil, false
	}
	for line := range bytes.Lines(body) {
		if data, is := bytes.CutPrefix(bytes.TrimRight(line, "\r\n"), []byte("data:")); is {
			pieces = append(pieces, bytes.TrimSpace(data))
		}
	}
	return pieces, len(pieces) > 0
}
