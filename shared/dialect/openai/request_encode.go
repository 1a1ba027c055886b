package openai

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"

	"gateway/shared/chat"
	"gateway/shared/dialect/hosts"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// requestEncoder writes one chat request for a provider.
type requestEncoder struct {
	preserveField string // see hosts.Reasoner.PreserveField; set if reasoning was returned
	b             []byte
	r             *chat.Request
	t             *chat.Traits
	loss          *chat.Loss
	max           int // longest tool name

	recalls     int // tool calls with looked-up reasoning
	breakpoints Breakpoints
}

// maxToolName is the longest name of a tool, in bytes.
const maxToolName = 64

func encodeChatRequest(dst []byte, r *chat.Request, t *chat.Traits, loss *chat.Loss) ([]byte, error) {
	longest := t.MaxToolName
	if longest == 0 {
		longest = maxToolName
	}
	if err := r.Rename(longest); err != nil {
		return dst, err
	}
	r.HiddenResponse, r.UnboundJSON = false, r.Format.Kind == chat.FormatSchema && t.Schema == chat.SchemaInWords
	r.ReportUnread(loss)
	r.ReportBelow(loss, chat.BelowCitations|chat.BelowDocuments|chat.BelowRemoteTitles|chat.BelowCallSignatures|chat.BelowResultMarkers)
	e := requestEncoder{b: dst, r: r, t: t, loss: loss, max: longest}
	if t.Breakpoints {
		e.breakpoints = NewBreakpoints(r)
	}
	if r.Completion != nil && r.Completion.Prompts > 1 {
		return dst, fault.Invalid("prompt", "prompt must be one text for this provider, not a list of %d", r.Completion.Prompts)
	}
	e.b = append(e.b, `{"model":`...)
	e.b = wire.AppendJSONString(e.b, r.Model)
	e.b = append(e.b, `,"messages":[`...)
	if err := e.messages(); err != nil {
		return dst, err
	}
	e.b = append(e.b, ']')
	if err := e.tools(); err != nil {
		return dst, err
	}
	e.bounds()
	e.sampling()
	if err := e.shape(); err != nil {
		return dst, err
	}
	if e.preserveField != "" && !slices.ContainsFunc(r.Extra, func(x chat.Field) bool { return x.Name == e.preserveField }) {
		e.bool(e.preserveField, true)
	}
	e.extra()
	e.b = append(e.b, '}')
	if err := loss.Err(); err != nil {
		return dst, err
	}
	return e.b, nil
}

func (e *requestEncoder) key(name string) {
	e.b = append(append(append(e.b, `,"`...), name...), `":`...)
}

func (e *requestEncoder) str(name, value string) {
	e.key(name)
	e.b = wire.AppendJSONString(e.b, value)
}

func (e *requestEncoder) int(name string, n int64) {
	e.key(name)
	e.b = strconv.AppendInt(e.b, n, 10)
}

func (e *requestEncoder) number(name string, v chat.Opt[float64]) {
	if v.Set {
		e.key(name)
		e.b = appendFloat(e.b, v.Value)
	}
}

func (e *requestEncoder) bool(name string, v bool) {
	e.key(name)
	e.b = strconv.AppendBool(e.b, v)
}

// appendFloat writes a number in the shortest form that reads back as the same number.
func appendFloat(dst []byte, v float64) []byte { return strconv.AppendFloat(dst, v, 'g', -1, 64) }

func (e *requestEncoder) bounds() {
	r := e.r
	if r.MaxTokens.Set {
		field := e.t.MaxTokensField
		if field == "" {
			if field = "max_completion_tokens"; r.MaxTokensField == "max_tokens" {
				field = "max_tokens"
			}
		}
		e.int(field, r.MaxTokens.Value)
	}
	if r.N.Set {
		e.int("n", r.N.Value)
	}
	if len(r.Stop) > 0 {
		stops := r.Stop
		if most := max(maxStops, e.t.Extended.Stops); len(stops) > most {
			e.loss.Add("stop", "the provider accepts at most "+strconv.Itoa(most)+" stop strings")
			stops = stops[:most]
		}
		e.key("stop")
		e.b = append(e.b, '[')
		for i, s := range stops {
			if i > 0 {
				e.b = append(e.b, ',')
			}
			e.b = wire.AppendJSONString(e.b, s)
		}
		e.b = append(e.b, ']')
	}
	if r.Stream {
		e.bool("stream", true)
		if !e.t.NoStreamUsage {
			e.key("stream_options")
			e.b = append(e.b, `{"include_usage":true}`...)
		}
	}
}

const notTaken = "not accepted by this provider"

func (e *requestEncoder) sampling() {
	r := e.r
	if e.t.Sampling == chat.SamplingNone {
		e.dropIf(r.Temperature.Set, "temperature")
		e.dropIf(r.TopP.Set, "top_p")
		e.dropIf(r.FrequencyPenalty.Set, "frequency_penalty")
		e.dropIf(r.PresencePenalty.Set, "presence_penalty")
	} else {
		e.number("temperature", r.Temperature)
		e.number("top_p", r.TopP)
		e.number("frequency_penalty", r.FrequencyPenalty)
		e.number("presence_penalty", r.PresencePenalty)
	}
	r.ReportLoss(e.loss, notTaken, "temperature", "top_p", "frequency_penalty", "presence_penalty", "seed", "logit_bias", "stop", "user", "service_tier")
	if r.Seed.Set {
		e.int("seed", r.Seed.Value)
	}
	if r.LogitBias != nil {
		e.key("logit_bias")
		e.b = append(e.b, r.LogitBias...)
	}
	if r.Logprobs.Set {
		e.bool("logprobs", r.Logprobs.Value)
	}
	if r.TopLogprobs.Set {
		e.int("top_logprobs", r.TopLogprobs.Value)
	}
	if r.User != "" {
		e.str("user", hosts.User(e.t.Provider, r.User, e.loss))
	}
	if r.ServiceTier != "" {
		switch r.ServiceTier {
		case "standard_only", "standard":
			e.str("service_tier", "default")
		default:
			e.str("service_tier", r.ServiceTier)
		}
	}
}

func (e *requestEncoder) dropIf(set bool, path string) {
	if set {
		e.loss.Add(path, notTaken)
	}
}

// shape writes the format of the response and how much the model thinks before it.
func (e *requestEncoder) shape() error {
	r := e.r
	switch f := &r.Format; f.Kind {
	case chat.FormatText:
		if f.Set {
			e.key("response_format")
			e.b = append(e.b, `{"type":"text"}`...)
		}
	case chat.FormatJSON:
		e.key("response_format")
		e.b = append(e.b, `{"type":"json_object"}`...)
	case chat.FormatSchema:
		if e.t.Schema == chat.SchemaNone {
			return fault.New(fault.UnsupportedResponse, "response_format", "This model cannot answer in a JSON schema")
		}
		if e.t.Schema == chat.SchemaInWords {
			e.loss.Add("response_format", upstream.SchemaInPrompt)
			e.key("response_format")
			e.b = append(e.b, `{"type":"json_object"}`...)
			break
		}
		e.schema(f)
	}
	e.thinking()
	if c := r.Completion; c != nil {
		e.dropIf(c.Suffix != "", "suffix")
		e.dropIf(c.BestOf.Set && c.BestOf.Value > 1, "best_of")
		if c.Logprobs.Set {
			e.loss.AddResponse("logprobs", notTaken)
		}
	}
	return nil
}

func (e *requestEncoder) schema(f *chat.Format) {
	name := f.Name
	if name == "" {
		name = "answer"
	}
	e.key("response_format")
	e.b = append(e.b, `{"type":"json_schema","json_schema":{"name":`...)
	e.b = wire.AppendJSONString(e.b, name)
	if f.Description != "" {
		e.str("description", f.Description)
	}
	e.key("schema")
	e.b = append(e.b, f.Schema...)
	if f.WritesStrict(e.t) {
		e.bool("strict", f.Strict.Value)
	}
	e.b = append(e.b, `}}`...)
}

// extra forwards fields of this dialect that have no canonical form, and derives a key
// for the provider's prompt cache.
func (e *requestEncoder) extra() {
	cacheKey := false
	for _, x := range e.r.Extra {
		if e.t.NoUnknown || !known[x.Name] || x.Name == cacheOptions && !e.t.Breakpoints {
			e.loss.Add(x.Name, notTaken)
			continue
		}
		cacheKey = cacheKey || x.Name == "prompt_cache_key"
		e.key(x.Name)
		e.b = append(e.b, x.Raw...)
	}
	if e.t.PromptCacheKey && !cacheKey && len(e.r.Messages) > 1 {
		e.str("prompt_cache_key", e.conversation())
	}
}

// cacheOptions determines how marked prefixes are cached.
const cacheOptions = "prompt_cache_options"

// known are the fields of this dialect that are stored in Request.Extra.
var known = map[string]bool{
	"store": true, "metadata": true, "modalities": true, "audio": true, "prediction": true, "web_search_options": true,
	"prompt_cache_key": true, "prompt_cache_retention": true, cacheOptions: true, "safety_identifier": true, "verbosity": true,
}

// conversation is a stable name for the conversation. It depends only on its beginning, up
// to the first message of the user.
func (e *requestEncoder) conversation() string {
	h := sha256.New()
	for i := range e.r.Messages {
		m := &e.r.Messages[i]
		h.Write([]byte{byte(m.Role)})
		h.Write([]byte(m.Text()))
		if m.Role == chat.User {
			break
		}
	}
	return "gw-" + hex.EncodeToString(h.Sum(nil)[:12])
}

func (e *requestEncoder) tools() error {
	r := e.r
	n := 0
	for i := range r.Tools {
		t := &r.Tools[i]
		path := "tools[" + strconv.Itoa(i) + "]"
		if t.ForeignType != "" || e.t.NoTools {
			e.loss.Add(path, notTaken)
			continue
		}
		if n == 0 {
			e.b = append(e.b, `,"tools":[`...)
		} else {
			e.b = append(e.b, ',')
		}
		n++
		e.tool(t, path)
	}
	if n == 0 {
		if r.ToolChoice.Forced() {
			return fault.Invalid("tool_choice", "tool_choice forces a tool, but none of the tools can be sent to this provider")
		}
		return nil
	}
	e.b = append(e.b, ']')
	switch c := r.ToolChoice; c.Mode {
	case chat.ToolsAuto:
		e.str("tool_choice", "auto")
	case chat.ToolsNone:
		e.str("tool_choice", "none")
	case chat.ToolsRequired:
		e.str("tool_choice", "required")
	case chat.ToolsNamed:
		e.key("tool_choice")
		e.b = append(e.b, `{"type":"function","function":{"name":`...)
		e.b = wire.AppendJSONString(e.b, chat.LegalName(c.Name, e.max))
		e.b = append(e.b, `}}`...)
	}
	if r.Parallel.Set {
		if e.t.NoParallelTools {
			e.loss.Add("parallel_tool_calls", notTaken)
		} else {
			e.bool("parallel_tool_calls", r.Parallel.Value)
		}
	}
	return nil
}

func (e *requestEncoder) tool(t *chat.Tool, path string) {
	e.b = append(e.b, `{"type":"function","function":{"name":`...)
	e.b = wire.AppendJSONString(e.b, chat.LegalName(t.Name, e.max))
	if t.Description.Set {
		e.str("description", t.Description.Value)
	}
	if t.Schema != nil {
		e.key("parameters")
		e.b = append(e.b, chat.ObjectSchema(t.Schema)...)
	}
	switch {
	case !t.Strict.Set:
	case e.t.NoStrictTools:
		e.loss.Add(path+".strict", notTaken)
	case !e.r.WritesStrict(t):
		e.loss.Add(path+".strict", "this provider supports strict only for schemas that require every property")
	default:
		e.bool("strict", t.Strict.Value)
	}
	e.b = append(e.b, '}')
	e.marker(t.Cache, func() string { return path })
	e.b = append(e.b, '}')
	for _, x := range t.Extra {
		e.loss.Add(path+"."+x.Name, notTaken)
	}
}

// marker writes a cache marker into the object that is being written. For hosts that
// cache without the marker it reports it.
func (e *requestEncoder) marker(c chat.Cache, path func() string) {
	switch {
	case c == chat.NoCache:
	case e.t.NoCacheControl:
		e.dropMarker(c, path())
	default:
		e.b = append(e.b, `,"cache_control":{"type":"ephemeral"`...)
		switch {
		case c == chat.Cache5m:
			e.b = append(e.b, `,"ttl":"5m"`...)
		case c == chat.Cache1h && !e.t.NoLongCache:
			e.b = append(e.b, `,"ttl":"1h"`...)
		case c == chat.Cache1h:
			e.loss.Add(path()+".cache_control.ttl", notTaken)
		}
		e.b = append(e.b, '}')
	}
}

// dropMarker reports a cache marker that has no place.
func (e *requestEncoder) dropMarker(c chat.Cache, path string) {
	if c != chat.NoCache {
		e.loss.Add(path+".cache_control", "the provider caches on its own")
	}
}
