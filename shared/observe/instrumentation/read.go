package instrumentation

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"gateway/shared/observe/otlp"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// Kind is what a span has to do with a model.
type Kind uint8

const (
	Other     Kind = iota // it does not report a call
	Call                  // it reports the call of a model
	Aggregate             // it repeats the usage of calls, which should be below it
)

// SpanFacts is what a span or a log record reports about a request.
type SpanFacts struct {
	Sender                string // name of the row by which it was read
	Kind                  Kind
	Endpoint              string // type of request; "" for Other
	Provider              string // the gateway's id, or the sender's own word for an unknown one
	RequestedModel, Model string // requested model, and model of the response
	Finish                string
	ResponseID            string
	Usage                 pricing.Usage // not known for Other
	Mode                  string        // of the price list; "" for the standard one
	Cost                  pricing.NanoDollars
	HasCost               bool // the sender reports Cost
	Session               string
	Agent                 string
	User                  string
	URL                   string
	Status                int
	Stream                bool
	FirstByte             time.Duration // 0 if it is not known
	Metadata              map[string]string
	LoggedHere            bool   // the gateway itself has reported it
	Note                  string // why a span that looks like a call was not read as one, or has no price; "" otherwise

	content reader
	of      *otlp.ReceivedSpan
}

// reader has the attributes of a span by their fields.
type reader struct {
	*sender
	values   [numFields]any
	ranks    [numFields]uint16
	has      [numFields]bool
	lists    [metadata - numFields + 1][]otlp.Attr // attributes with the beginnings of names
	messages [2][]otlp.ReceivedEvent               // events with messages of the request, and of the response
	failure  failure
	rest     []otlp.Attr // attributes without a field
}

// Read returns the reading of a span or a log record.
func Read(t *otlp.ReceivedSpan) *SpanFacts {
	x := new(SpanFacts)
	x.Read(t)
	return x
}

// Read reads a span or a log record into x, which is zero. It refers to t.
func (x *SpanFacts) Read(t *otlp.ReceivedSpan) {
	x.of = t
	r := &x.content
	r.sender = senderOf(t.Scope, func(mark string) bool {
		return slices.ContainsFunc(t.Attrs, func(a otlp.Attr) bool {
			return a.Key == mark || strings.HasSuffix(mark, ".") && strings.HasPrefix(a.Key, mark)
		})
	})
	x.Metadata = map[string]string{}
	for i := range t.Attrs {
		r.add(&t.Attrs[i], x.Metadata)
	}
	r.events(t.Events)
	x.Sender = r.name
	x.RequestedModel, x.Model, x.ResponseID = r.text(requestedModel), r.text(model), r.text(response)
	x.Provider = r.provider()
	x.Finish = r.firstText(finish)
	x.Agent, x.URL, x.LoggedHere = r.text(agent), r.text(url), r.text(ours) != ""
	x.Session, x.User = r.text(session), r.text(user)
	x.Mode = pricing.ModeOf(r.text(tier))
	x.classify(r.counted())
	if x.Kind != Other {
		x.Usage = r.usage(x.Endpoint)
	}
	x.Cost, x.HasCost = r.cost()
	x.Status = r.statusOf(t, x.Finish)
	x.timing()
	x.metadata()
	x.note()
}

// add puts an attribute where it belongs.
func (r *reader) add(a *otlp.Attr, meta map[string]string) {
	s, known := r.slots[a.Key]
	if r.objects[a.Key] {
		r.object(a.Key, a.Value)
		if !known {
			r.rest = append(r.rest, *a)
			return
		}
	}
	if known {
		r.set(s, a)
		if s.field != session && s.field != user {
			return
		}
	}
	for _, p := range r.prefixes {
		name, ok := strings.CutPrefix(a.Key, p.text)
		if !ok {
			continue
		}
		if p.field != metadata {
			r.lists[p.field-numFields] = append(r.lists[p.field-numFields], otlp.Attr{Key: name, Value: a.Value})
			return
		}
		if setMetadata(meta, name, scalar(a.Value)) {
			return
		}
		break
	}
	if !known {
		r.rest = append(r.rest, *a)
	}
}

// set stores the value of a field. A different value under a less preferred name becomes
// an attribute.
func (r *reader) set(s slot, a *otlp.Attr) {
	f := s.field
	if a.Value == nil || a.Value == "" {
		return
	}
	switch {
	case !r.has[f] || s.rank <= r.ranks[f]:
		r.values[f], r.ranks[f], r.has[f] = a.Value, s.rank, true
	case f >= question && f <= tools && !isPlain(a.Value):
		r.rest = append(r.rest, *a)
	}
}

func isPlain(v any) bool { return scalar(v) == "" }

// object reads members of JSON, or of a map, in an attribute.
func (r *reader) object(name string, v any) {
	switch v := v.(type) {
	case map[string]any:
		for key, value := range v {
			r.member(name+"#"+key, value)
		}
	case string:
		if d := wire.NewDecoder([]byte(v)); d.Kind() == wire.KindObject {
			r.decode(d, name+"#")
		}
	}
}

func (r *reader) member(name string, v any) {
	if s, ok := r.slots[name]; ok {
		r.set(s, &otlp.Attr{Value: v})
	}
}

func (r *reader) decode(d *wire.Decoder, before string) {
	for key := range d.Object {
		name := before + string(key)
		switch d.Kind() {
		case wire.KindNumber:
			raw := string(d.Num())
			if n, err := strconv.ParseInt(raw, 10, 64); err == nil {
				r.member(name, n)
			} else if x, err := strconv.ParseFloat(raw, 64); err == nil {
				r.member(name, x)
			}
		case wire.KindString:
			if _, ok := r.slots[name]; ok {
				r.member(name, d.Str())
			}
		case wire.KindObject:
			if r.objects[name] {
				r.decode(d, name+".")
			}
		}
	}
}

// scalar returns a value as text; "" for lists and maps.
func scalar(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case int64:
		return strconv.FormatInt(v, 10)
	case bool:
		return strconv.FormatBool(v)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	}
	return ""
}

func (r *reader) text(f field) string { return scalar(r.values[f]) }

// firstText returns a text, or the first text of a list, which may be JSON.
func (r *reader) firstText(f field) string {
	switch v := r.values[f].(type) {
	case string:
		var list []string
		if strings.HasPrefix(v, "[") && json.Unmarshal([]byte(v), &list) == nil && len(list) > 0 {
			return list[0]
		}
		return v
	case []any:
		if len(v) > 0 {
			return scalar(v[0])
		}
	}
	return ""
}

func (r *reader) real(f field) (x float64, ok bool) {
	switch v := r.values[f].(type) {
	case float64:
		x = v
	case int64:
		x = float64(v)
	case string:
		var err error
		if x, err = strconv.ParseFloat(v, 64); err != nil {
			return 0, false
		}
	default:
		return 0, false
	}
	return x, !math.IsNaN(x) && !math.IsInf(x, 0) && x >= 0
}

// frameworks are names that agent frameworks give as the provider, which is that of the
// model.
var frameworks = []string{"gcp.vertex.agent", "langchain", "langgraph", "llamaindex", "crewai", "autogen", "haystack", "mastra", "vercel", "ai-sdk", "pydantic_ai", "pydantic-ai", "openai_agents", "agent", "unknown", "litellm", "_other"}

// provider returns the provider that the sender names, unless it names itself.
func (r *reader) provider() string {
	for _, f := range []field{provider, system} {
		if name := strings.ToLower(r.text(f)); name != "" && !slices.Contains(frameworks, name) {
			return providerCalled(name)
		}
	}
	return ""
}

// classify decides what a span is, by the sender's own word for it, else by the operation.
func (x *SpanFacts) classify(counted bool) {
	r := &x.content
	word, op := strings.ToLower(r.text(kind)), strings.ToLower(r.text(operation))
	endpoint, known := allKinds[word]
	if by, ok := operations[op]; ok && (!known || endpoint != "" && by != "") {
		endpoint, known = by, true
	}
	switch {
	case known && endpoint != "":
		x.Kind, x.Endpoint = Call, endpoint
	case known && counted:
		x.Kind, x.Endpoint = Aggregate, operations["chat"]
	case counted || !known && word == "" && op == "" && (x.RequestedModel != "" || x.Model != ""):
		x.Kind, x.Endpoint = Call, operations["chat"]
	}
	// Several senders have one word for every call of a model.
	if _, exact := operations[op]; x.Endpoint == operations["chat"] && !exact && strings.Contains(strings.ToLower(cmp.Or(x.Model, x.RequestedModel)), "embed") {
		x.Endpoint = operations["embeddings"]
	}
}

// cost is the price that the sender gives, if it gives one.
func (r *reader) cost() (pricing.NanoDollars, bool) {
	x, ok := r.real(cost)
	if !ok || x <= 0 || x > maxCost {
		return 0, false
	}
	return pricing.NanoDollars(math.Round(x * 1e9)), true
}

// maxCost is the highest price of one request, in dollars, that a sender is believed.
const maxCost = 1e6

// timing reads whether the response was a stream, and when its first chunk arrived.
func (x *SpanFacts) timing() {
	r := &x.content
	x.Stream = r.text(stream) == "true" || strings.HasSuffix(strings.ToLower(r.text(kind)), "dostream")
	if s, ok := r.real(first); ok {
		x.FirstByte = time.Duration(min(s, 86400) * float64(time.Second))
	} else if ms, ok := r.real(firstMillis); ok {
		x.FirstByte = time.Duration(min(ms, 86400_000) * float64(time.Millisecond))
	} else if !r.has[firstAt] {
		return
	} else if at, err := time.Parse(time.RFC3339Nano, strings.Trim(r.text(firstAt), `"`)); err == nil && !x.of.Start.IsZero() {
		// Senders give it without a stream, too: then it is when the response arrived.
		if x.FirstByte = at.Sub(x.of.Start); x.FirstByte < 0 || at.After(x.of.End) {
			x.FirstByte = 0
		}
		return
	}
	x.Stream = x.Stream || x.FirstByte > 0
}

// Limits of metadata, which are those of requests.
const (
	maxMetadata      = 64
	maxMetadataValue = 255
)

func setMetadata(to map[string]string, name, value string) bool {
	if name == "" || value == "" || len(value) > maxMetadataValue || len(name) > maxMetadataValue || len(to) >= maxMetadata {
		return false
	}
	to[name] = value
	return true
}

// metadata completes the metadata: an object of it, the user, and the service that sent it.
func (x *SpanFacts) metadata() {
	switch v := x.content.values[metadataObject].(type) {
	case map[string]any:
		for _, name := range sortedKeys(v) {
			setMetadata(x.Metadata, name, scalar(v[name]))
		}
	case string:
		var pairs map[string]any
		if json.Unmarshal([]byte(v), &pairs) == nil {
			for _, name := range sortedKeys(pairs) {
				setMetadata(x.Metadata, name, scalar(pairs[name]))
			}
		}
	}
	if x.User = cmp.Or(x.Metadata["_user"], x.User); x.User != "" {
		setMetadata(x.Metadata, "_user", x.User)
	}
	setMetadata(x.Metadata, "service.name", otlp.Text(x.of.Origin, "service.name"))
}

// NoteKey is the name of the metadata with a Note.
const NoteKey = "telemetry.note"

// note records what is missing in a span that should be a call.
func (x *SpanFacts) note() {
	switch {
	case x.Kind == Other && x.looksLikeCall():
		x.Note = "looks like a model call, but its attributes are unknown"
	case x.Kind == Call && x.RequestedModel == "" && x.Model == "":
		x.Note = "names no model"
	case x.Kind == Call && !x.Usage.IsReported() && x.Status < 300:
		x.Note = "reports no usage"
	}
	setMetadata(x.Metadata, NoteKey, x.Note)
}

// looksLikeCall reports whether attributes that were not read count tokens or name a model.
func (x *SpanFacts) looksLikeCall() bool {
	r := &x.content
	if _, known := allKinds[strings.ToLower(r.text(kind))]; known {
		return false
	}
	if _, known := operations[strings.ToLower(r.text(operation))]; known {
		return false
	}
	if x.RequestedModel != "" || x.Model != "" {
		return true
	}
	return slices.ContainsFunc(r.rest, func(a otlp.Attr) bool {
		name := strings.ToLower(a.Key)
		switch a.Value.(type) {
		case int64, float64:
			return strings.Contains(name, "tokens") || strings.Contains(name, "token_count") || strings.Contains(name, "tokencount")
		case string:
			return strings.HasPrefix(name, "llm.") && strings.Contains(name, "model") || strings.HasPrefix(name, "gen_ai.") && strings.Contains(name, "model")
		}
		return false
	})
}
