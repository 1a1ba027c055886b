package dialect_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gateway/shared/chat"
	"gateway/shared/dialect/cohere"
	"gateway/shared/dialect/converse"
	"gateway/shared/dialect/gemini"
	"gateway/shared/pricing"
	"gateway/shared/testkit/golden"
)

// baseResponse is a response to which a field is added.
func baseResponse() *chat.Response {
	return &chat.Response{
		ID: "a-1", Model: "m", Created: 1750000000,
		Choices: []chat.Choice{{Parts: []chat.Part{{Kind: chat.Text, Text: "hi"}}, Stop: chat.StopEnd}},
	}
}

// also adds parts to a response.
func also(parts ...chat.Part) func(r *chat.Response) {
	return func(r *chat.Response) { r.Choices[0].Parts = append(r.Choices[0].Parts, parts...) }
}

// calls adds a tool call, changed by each of change.
func calls(change ...func(c *chat.ToolCall)) func(r *chat.Response) {
	return func(r *chat.Response) {
		c := &chat.ToolCall{ID: "c-1", Name: "f", Arguments: `{"a":1}`}
		for _, by := range change {
			by(c)
		}
		also(chat.Part{Kind: chat.Call, Call: c})(r)
	}
}

// thought adds reasoning.
func thought(text, signature string) func(r *chat.Response) {
	return also(chat.Part{Kind: chat.Reasoned, Origin: "test", Text: text, Signature: signature})
}

// cited puts a source on the text.
func cited(source string) func(r *chat.Response) {
	return func(r *chat.Response) { r.Choices[0].Parts[0].Citations = json.RawMessage("[" + source + "]") }
}

// change is a response without a field and with it.
type change struct{ without, with func(r *chat.Response) }

// answers sets one field of a response to a value that cannot be mistaken for its absence.
// A field with several meanings has several lines.
var answers = map[string]change{
	"Response.ID":      {with: func(r *chat.Response) { r.ID = "a-2" }},
	"Response.Model":   {with: func(r *chat.Response) { r.Model = "m-2" }},
	"Response.Created": {with: func(r *chat.Response) { r.Created++ }},
	"Response.Choices": {with: func(r *chat.Response) {
		r.Choices = append(r.Choices, chat.Choice{Index: 1, Parts: baseResponse().Choices[0].Parts})
	}},
	"Response.Usage":             {with: func(r *chat.Response) { r.Usage.Set(pricing.Output, 7) }},
	"Response.ReportedTotal":     {with: func(r *chat.Response) { r.ReportedTotal = 77 }},
	"Response.Billed":            {with: func(r *chat.Response) { r.Billed = new(pricing.Usage); r.Billed.Set(pricing.Output, 9) }},
	"Response.SystemFingerprint": {with: func(r *chat.Response) { r.SystemFingerprint = "fp" }},
	"Response.ServiceTier":       {with: func(r *chat.Response) { r.ServiceTier = "flex" }},
	"Choice.Index":               {with: func(r *chat.Response) { r.Choices[0].Index = 1 }},
	"Choice.Parts":               {with: also(chat.Part{Kind: chat.Text, Text: "ho"})},
	"Choice.Stop":                {with: func(r *chat.Response) { r.Choices[0].Stop = chat.StopLength }},
	"Choice.Native":              {with: func(r *chat.Response) { r.Choices[0].Native = "done" }},
	"Choice.StopSequence": {
		without: func(r *chat.Response) { r.Choices[0].Stop = chat.StopSequence },
		with:    func(r *chat.Response) { r.Choices[0].StopSequence = "END" },
	},
	"Choice.Logprobs": {with: func(r *chat.Response) {
		r.Choices[0].Logprobs = json.RawMessage(`{"content":[{"token":"hi","logprob":-1,"bytes":null,"top_logprobs":[]}],"refusal":null}`)
	}},
	"Choice.Extra": {with: func(r *chat.Response) { r.Choices[0].Extra = []chat.Field{{Name: "x", Raw: json.RawMessage(`1`)}} }},

	"Part.Kind":               {with: also(chat.Part{Kind: chat.Refusal, Text: "no"})},
	"Part.Text":               {with: func(r *chat.Response) { r.Choices[0].Parts[0].Text = "hi!" }},
	"Part.Text of reasoning":  {with: thought("hm", "")},
	"Part.Signature":          {without: thought("hm", ""), with: func(r *chat.Response) { r.Choices[0].Parts[1].Signature = "c2ln" }},
	"Part.Data":               {with: also(chat.Part{Kind: chat.RedactedReasoned, Origin: "test", Data: "eA=="})},
	"Part.Call":               {with: calls()},
	"Part.Call, a second":     {without: calls(), with: calls(func(c *chat.ToolCall) { c.ID, c.Name = "c-2", "g" })},
	"Part.Raw":                {with: also(chat.Part{Kind: chat.Foreign, Type: "image", Origin: "elsewhere", Raw: json.RawMessage(`{"type":"image"}`)})},
	"Part.Type":               {with: also(chat.Part{Kind: chat.Foreign, Type: "image", Origin: "elsewhere", Raw: json.RawMessage(`{"type":"image"}`)})},
	"Part.Origin":             {with: also(chat.Part{Kind: chat.Foreign, Type: "image", Origin: "anthropic.messages", Raw: json.RawMessage(`{"type":"image"}`)})},
	"Part.Citations":          {with: cited(`{"type":"url_citation","url":"https://a.example","title":"A"}`)},
	"Part.Citations, a place": {with: cited(`{"type":"char_location","cited_text":"x","document_index":0,"document_title":"d","start_char_index":0,"end_char_index":1}`)},
	"Part.Citations, a name":  {with: cited(`{"start":0,"end":1,"text":"h","sources":[{"type":"tool","id":"t"}]}`)},
	"ToolCall.ID":             {without: calls(), with: func(r *chat.Response) { r.Choices[0].Parts[1].Call.ID = "c-9" }},
	"ToolCall.Name":           {without: calls(), with: func(r *chat.Response) { r.Choices[0].Parts[1].Call.Name = "g" }},
	"ToolCall.Arguments":      {without: calls(), with: func(r *chat.Response) { r.Choices[0].Parts[1].Call.Arguments = `{"a":2}` }},
	"ToolCall.Signature":      {without: calls(), with: func(r *chat.Response) { r.Choices[0].Parts[1].Call.Signature = "c2ln" }},
}

// unreported are the fields that the report does not mention: those that other fields repeat,
// those that the gateway itself makes, and those that only requests have.
var unreported = map[string]string{
	"Response.Created":       "the gateway dates answers itself",
	"Response.ID":            "the gateway names answers itself where the shape has no place for it",
	"Response.Model":         "who asked knows, and the log tells it",
	"Response.ReportedTotal": "of the books", "Response.Billed": "of the books", "Response.PriceFacts": "of the books",
	"Choice.Index":  "told by what stands at it",
	"Choice.Native": "Stop says it in the client's words, and the log as it came",
	"Part.Origin":   "of reasoning it goes into the signature",
	"Part.Cache":    "of requests", "Part.Media": "of requests", "Part.Result": "of requests", "Part.At": "of requests",
	"ToolCall.ID":     "a function_call of older clients has none, and is answered without",
	"ToolCall.Custom": "tells how the arguments are to be read",
}

// notStreamed are the fields that no step of a stream has.
var notStreamed = []string{"Response.SystemFingerprint", "Response.ServiceTier", "Response.ReportedTotal", "Response.Billed"}

// writers are all shapes in which clients are answered.
func writers() map[string]chat.ResponseWriter {
	out := map[string]chat.ResponseWriter{"gemini": gemini.Generate{}, "converse": converse.Converse{}, "cohere": cohere.Chat{}}
	for name, d := range golden.Clients {
		out[name] = d
	}
	return out
}

// written is a response as a client gets it, and what the report says of it.
func written(d chat.ResponseWriter, r *chat.Response, o chat.Options, stream bool) (out []byte, missed []string) {
	var loss chat.Loss
	m := chat.NewLossReporter(d, &o, &loss)
	if stream {
		enc := d.NewStreamEncoder(&o)
		_ = r.Replay(func(step *chat.Delta) error {
			m.Piece(step)
			out = enc.Append(out, step)
			return nil
		})
		out = enc.Finish(out)
	} else {
		m.Examine(r)
		out = d.EncodeResponse(nil, r, &o)
	}
	return out, loss.Paths()
}

// TestNoMemberOfAnAnswerIsDroppedInSilence goes through the fields of a response, whole and
// streamed. Each field alone changes every client's response, or the report names it; never
// both.
func TestNoMemberOfAnAnswerIsDroppedInSilence(t *testing.T) {
	t.Parallel()
	members := map[string]bool{}
	for _, of := range []reflect.Type{reflect.TypeFor[chat.Response](), reflect.TypeFor[chat.Choice](), reflect.TypeFor[chat.Part](), reflect.TypeFor[chat.ToolCall]()} {
		for i := range of.NumField() {
			member := of.Name() + "." + of.Field(i).Name
			members[member] = true
			if _, tried := answers[member]; !tried && unreported[member] == "" {
				t.Errorf("%s is not tried", member)
			}
		}
	}
	for member := range unreported {
		if !members[member] {
			t.Errorf("%s is no member", member)
		}
	}
	ways := map[string]chat.Options{
		"strict":  {Strict: true},
		"lenient": {},
		"legacy":  {Strict: true, Request: &chat.Request{Legacy: true}},
	}
	for member, c := range answers {
		for client, d := range writers() {
			for way, o := range ways {
				for _, stream := range []bool{false, true} {
					if stream && slices.Contains(notStreamed, member) || unreported[member] != "" {
						continue
					}
					o.ID, o.Created, o.ProviderName, o.IncludeUsage, o.Origin = "gw-1", 1, "p", true, "elsewhere"
					without, with := baseResponse(), baseResponse()
					if c.without != nil {
						c.without(without)
						c.without(with)
					}
					c.with(with)
					before, known := written(d, without, o, stream)
					after, missed := written(d, with, o, stream)
					switch carried := !bytes.Equal(before, after); {
					case !carried && len(missed) == 0:
						t.Errorf("%s is dropped for %s in silence, %s, stream %v\n%s", member, client, way, stream, after)
					case carried && !slices.Equal(known, missed):
						t.Errorf("%s is carried to %s and reported, %s, stream %v: %q\n%s", member, client, way, stream, missed, after)
					}
				}
			}
		}
	}
}

// A name is the client's own, and what a shape gives in other words is not lost.
func TestWhatAnAnswerLosesIsNamedInTheClientsWords(t *testing.T) {
	t.Parallel()
	full := func() *chat.Response {
		r := baseResponse()
		for _, member := range slices.Sorted(maps.Keys(answers)) {
			if c := answers[member]; member != "Choice.Index" && c.without == nil {
				c.with(r)
			}
		}
		thought("hm", "c2ln")(r)
		calls(func(c *chat.ToolCall) { c.ID, c.Signature = "c-2", "c2ln" })(r)
		answers["Part.Citations, a name"].with(r)
		r.Choices[0].Stop, r.Choices[0].StopSequence = chat.StopSequence, "END"
		return r
	}
	want := map[string][]string{}
	for client, paths := range map[string]string{
		"openai":      `["choices[0].message.citations","choices[0].message.image","choices[0].message.redacted_thinking","choices[0].message.thinking","choices[0].message.thinking.signature","choices[0].message.tool_calls.thought_signature","choices[0].stop_sequence","choices[0].x"]`,
		"completions": `["choices[0].citations","choices[0].image","choices[0].logprobs","choices[0].redacted_thinking","choices[0].refusal","choices[0].stop_sequence","choices[0].thinking","choices[0].thinking.signature","choices[0].tool_calls","choices[0].x"]`,
		"anthropic":   `["choices[1]","content.citations","content.image","content.tool_calls.thought_signature","logprobs","service_tier","system_fingerprint","x"]`,
		"responses":   `["choices[1]","output.citations","output.image","output.tool_calls.thought_signature","stop_sequence","system_fingerprint","x"]`,
	} {
		var list []string
		if err := json.Unmarshal([]byte(paths), &list); err != nil {
			t.Fatal(err)
		}
		want[client] = list
	}
	for client, d := range golden.Clients {
		var got []string
		_, missed := written(d, full(), chat.Options{Strict: true, Origin: "elsewhere"}, false)
		for _, lost := range missed {
			path, ok := chat.ResponsePath(lost)
			if !ok {
				t.Errorf("%q is not of the answer", lost)
			}
			got = append(got, path)
		}
		slices.Sort(got)
		if diff := cmp.Diff(want[client], got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", client, diff)
		}
	}
}

// A report of a response of which nothing is lost costs nothing.
func TestAnAnswerThatIsWholeMakesNoReport(t *testing.T) {
	r := baseResponse()
	calls()(r)
	for client, d := range golden.Clients {
		if client == "completions" {
			continue
		}
		o := &chat.Options{Strict: true}
		var loss chat.Loss
		text := chat.Delta{Kind: chat.DeltaText, Call: -1, JSON: []byte(`"hi"`)}
		if n := testing.AllocsPerRun(100, func() {
			m := chat.NewLossReporter(d, o, &loss)
			m.Examine(r)
			m.Piece(&text)
		}); n > 0 || !loss.Empty() {
			t.Errorf("%s: %v allocations, %q", client, n, loss.Header())
		}
	}
}
