package dialect_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/testkit/golden"
)

// pixel is an image of one point.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// userPart puts a part behind the user's text.
func userPart(p chat.Part) func(r *chat.Request) {
	return func(r *chat.Request) {
		m := &r.Messages[0]
		m.IsString, p.At = false, 1
		m.Parts = append(m.Parts, p)
	}
}

// lastPart is the part that was put in last.
func lastPart(r *chat.Request) *chat.Part {
	m := &r.Messages[len(r.Messages)-1]
	if m.Role == chat.Assistant { // the call of turned
		return &m.Parts[0]
	}
	return &m.Parts[len(m.Parts)-1]
}

func media(m chat.Media) func(r *chat.Request) {
	kind := chat.Image
	switch {
	case m.Format != "":
		kind = chat.Audio
	case m.MIME == "application/pdf" || m.Plain:
		kind = chat.Document
	}
	return func(r *chat.Request) {
		own := m
		userPart(chat.Part{Kind: kind, Media: &own})(r)
	}
}

// turned adds a turn of the model with a call, and its result.
func turned(r *chat.Request) {
	r.Tools = tools()
	r.Messages = append(r.Messages,
		chat.Message{Role: chat.Assistant, At: 1, Parts: []chat.Part{{Kind: chat.Call, At: 0, Call: &chat.ToolCall{ID: "call00001", Name: "f", Arguments: `{"a":"x"}`}}}},
		chat.Message{Role: chat.ToolRole, At: 2, Parts: []chat.Part{{Kind: chat.Result, At: 0, Result: &chat.ToolResult{CallID: "call00001", Name: "f", Plain: true, Parts: []chat.Part{{Kind: chat.Text, Text: "done"}}}}}})
}

func theCall(r *chat.Request) *chat.ToolCall     { return r.Messages[1].Parts[0].Call }
func theResult(r *chat.Request) *chat.ToolResult { return r.Messages[2].Parts[0].Result }

// answeredBy adds a turn of the model that begins with a part.
func answeredBy(p chat.Part) func(r *chat.Request) {
	return func(r *chat.Request) {
		r.Messages = append(r.Messages,
			chat.Message{Role: chat.Assistant, At: 1, Parts: []chat.Part{p, {Kind: chat.Text, Text: "ho", At: 1}}},
			chat.Message{Role: chat.User, At: 2, IsString: true, Parts: []chat.Part{{Kind: chat.Text, Text: "and"}}})
	}
}

func first(r *chat.Request) *chat.Part { return &r.Messages[1].Parts[0] }

func completes(r *chat.Request) { r.Completion = &chat.Completion{Prompts: 1} }

func withTools(r *chat.Request) { r.Tools = tools() }

func schemaFormat(r *chat.Request) {
	r.Format = chat.Format{Kind: chat.FormatSchema, Set: true, Name: "n", Schema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`)}
}

func inlineImage(r *chat.Request) { media(chat.Media{Data: pixel, MIME: "image/png"})(r) }
func inlineText(r *chat.Request) {
	media(chat.Media{Data: "words", MIME: "text/plain", Plain: true})(r)
}
func inlineAudio(r *chat.Request) { media(chat.Media{Data: "AAAA", Format: "wav"})(r) }

// requestPair is a request without a field and with it.
type requestPair struct{ without, with func(r *chat.Request) }

// nested sets one field below a request to a value that cannot be mistaken for its
// absence. A field with several meanings has several lines.
var nested = map[string]requestPair{
	"Message.Role": {with: func(r *chat.Request) {
		r.Messages = append([]chat.Message{{Role: chat.System, At: -1, IsString: true, Parts: []chat.Part{{Kind: chat.Text, Text: "be kind"}}}}, r.Messages...)
	}},
	"Message.Name":            {with: func(r *chat.Request) { r.Messages[0].Name = "ann" }},
	"Message.Name, assistant": {without: answeredBy(chat.Part{Kind: chat.Text, Text: "so"}), with: func(r *chat.Request) { r.Messages[1].Name = "bob" }},
	"Message.Parts":           {with: userPart(chat.Part{Kind: chat.Text, Text: "ho"})},

	"Part.Kind":              {with: answeredBy(chat.Part{Kind: chat.Refusal, Text: "no"})},
	"Part.Cache":             {with: func(r *chat.Request) { r.Messages[0].Parts[0].Cache = chat.Cache1h }},
	"Part.Cache of media":    {without: inlineImage, with: func(r *chat.Request) { lastPart(r).Cache = chat.Cache1h }},
	"Part.Cache of a call":   {without: turned, with: func(r *chat.Request) { r.Messages[1].Parts[0].Cache = chat.CacheShort }},
	"Part.Cache of a result": {without: turned, with: func(r *chat.Request) { r.Messages[2].Parts[0].Cache = chat.CacheShort }},
	"Part.Cache of an answer": {without: answeredBy(chat.Part{Kind: chat.Text, Text: "so"}),
		with: func(r *chat.Request) { first(r).Cache = chat.CacheShort }},
	"Part.Text":              {with: func(r *chat.Request) { r.Messages[0].Parts[0].Text = "hello" }},
	"Part.Text of reasoning": {with: answeredBy(chat.Part{Kind: chat.Reasoned, Text: "hm"})},
	"Part.Signature": {without: answeredBy(chat.Part{Kind: chat.Reasoned, Text: "hm", Origin: "elsewhere"}),
		with: func(r *chat.Request) { first(r).Signature = "c2ln" }},
	"Part.Data":   {with: answeredBy(chat.Part{Kind: chat.RedactedReasoned, Data: "eA==", Origin: "elsewhere"})},
	"Part.Media":  {with: inlineImage},
	"Part.Call":   {with: turned},
	"Part.Result": {without: turned, with: func(r *chat.Request) { theResult(r).Parts[0].Text = "failed" }},
	"Part.Raw":    {with: userPart(chat.Part{Kind: chat.Foreign, Type: "search_result", Origin: "elsewhere", Raw: json.RawMessage(`{"type":"search_result"}`)})},
	"Part.Citations": {without: answeredBy(chat.Part{Kind: chat.Text, Text: "so"}), with: func(r *chat.Request) {
		first(r).Citations = json.RawMessage(`[{"type":"url_citation","url":"https://a.example"}]`)
	}},

	"Media.URL":                {with: media(chat.Media{URL: "https://a.example/a.png"})},
	"Media.Data":               {with: media(chat.Media{Data: "JVBERi0=", MIME: "application/pdf"})},
	"Media.FileID":             {with: media(chat.Media{FileID: "file-1"})},
	"Media.FileID, a document": {with: media(chat.Media{FileID: "file-1", MIME: "application/pdf"})},
	"Media.MIME":               {without: inlineImage, with: func(r *chat.Request) { lastPart(r).Media.MIME = "image/webp" }},
	"Media.Plain":              {with: inlineText},
	"Media.Name":               {without: inlineText, with: func(r *chat.Request) { lastPart(r).Media.Name = "notes.txt" }},
	"Media.Name of a PDF":      {without: media(chat.Media{Data: "JVBERi0=", MIME: "application/pdf"}), with: func(r *chat.Request) { lastPart(r).Media.Name = "a.pdf" }},
	"Media.Detail":             {without: inlineImage, with: func(r *chat.Request) { lastPart(r).Media.Detail = "low" }},
	"Media.Format":             {without: inlineAudio, with: func(r *chat.Request) { lastPart(r).Media.Format = "mp3" }},
	"Media.Context":            {without: inlineText, with: func(r *chat.Request) { lastPart(r).Media.Context = "of the meeting" }},
	"Media.Citations":          {without: inlineText, with: func(r *chat.Request) { lastPart(r).Media.Citations = json.RawMessage(`{"enabled":true}`) }},
	"ToolCall.ID":              {without: turned, with: func(r *chat.Request) { theCall(r).ID, theResult(r).CallID = "call00002", "call00002" }},
	"ToolCall.Name":            {without: turned, with: func(r *chat.Request) { r.Tools[0].Name, theCall(r).Name, theResult(r).Name = "g", "g", "g" }},
	"ToolCall.Arguments":       {without: turned, with: func(r *chat.Request) { theCall(r).Arguments = `{"a":"y"}` }},
	"ToolCall.Custom":          {without: turned, with: func(r *chat.Request) { theCall(r).Custom, theCall(r).Arguments = true, "free" }},
	"ToolCall.Signature":       {without: turned, with: func(r *chat.Request) { theCall(r).Signature = "c2ln" }},
	"ToolResult.Parts": {without: turned, with: func(r *chat.Request) {
		theResult(r).Plain, theResult(r).Parts = false, append(theResult(r).Parts, chat.Part{Kind: chat.Text, Text: "more", At: 1})
	}},
	"ToolResult.Parts, media": {without: turned, with: func(r *chat.Request) {
		theResult(r).Plain, theResult(r).Parts = false, append(theResult(r).Parts, chat.Part{Kind: chat.Image, At: 1, Media: &chat.Media{Data: pixel, MIME: "image/png"}})
	}},
	"ToolResult.Parts, a cache": {without: turned, with: func(r *chat.Request) { theResult(r).Plain, theResult(r).Parts[0].Cache = false, chat.CacheShort }},
	"ToolResult.IsError":        {without: turned, with: func(r *chat.Request) { theResult(r).IsError = true }},

	"Tool.Name":        {without: withTools, with: func(r *chat.Request) { r.Tools[0].Name = "g" }},
	"Tool.Description": {without: withTools, with: func(r *chat.Request) { r.Tools[0].Description = chat.Some("does it") }},
	"Tool.Schema": {without: withTools, with: func(r *chat.Request) {
		r.Tools[0].Schema = json.RawMessage(`{"type":"object","properties":{"b":{"type":"string"}}}`)
	}},
	"Tool.Strict": {without: withTools, with: func(r *chat.Request) { r.Tools[0].Strict = chat.Some(true) }},
	"Tool.Cache":  {without: withTools, with: func(r *chat.Request) { r.Tools[0].Cache = chat.Cache1h }},
	"Tool.Extra": {without: withTools, with: func(r *chat.Request) {
		r.Tools[0].Extra = []chat.Field{{Name: "defer_loading", Raw: json.RawMessage(`true`)}}
	}},
	"Tool.ForeignType": {without: withTools, with: func(r *chat.Request) {
		r.Tools = append(r.Tools, chat.Tool{ForeignType: "web_search", Raw: json.RawMessage(`{"type":"web_search"}`)})
	}},
	"ToolChoice.Mode":       {without: withTools, with: func(r *chat.Request) { r.ToolChoice.Mode = chat.ToolsRequired }},
	"ToolChoice.Mode, none": {without: withTools, with: func(r *chat.Request) { r.ToolChoice.Mode = chat.ToolsNone }},
	"ToolChoice.HostMode": {without: func(r *chat.Request) { r.Tools, r.ToolChoice.Mode = tools(), chat.ToolsAuto },
		with: func(r *chat.Request) { r.ToolChoice.HostMode = "validated" }},
	"ToolChoice.Name":    {without: withTools, with: func(r *chat.Request) { r.ToolChoice = chat.ToolChoice{Mode: chat.ToolsNamed, Name: "f"} }},
	"Format.Kind":        {with: func(r *chat.Request) { r.Format = chat.Format{Kind: chat.FormatJSON, Set: true} }},
	"Format.Name":        {without: schemaFormat, with: func(r *chat.Request) { r.Format.Name = "m" }},
	"Format.Description": {without: schemaFormat, with: func(r *chat.Request) { r.Format.Description = "how it is" }},
	"Format.Schema": {without: schemaFormat, with: func(r *chat.Request) {
		r.Format.Schema = json.RawMessage(`{"type":"object","properties":{"b":{"type":"string"}},"required":["b"],"additionalProperties":false}`)
	}},
	"Format.Strict":      {without: schemaFormat, with: func(r *chat.Request) { r.Format.Strict = chat.Some(true) }},
	"Reasoning.Effort":   {with: func(r *chat.Request) { r.Reasoning.Effort = "low" }},
	"Reasoning.Thinking": {with: func(r *chat.Request) { r.Reasoning.Thinking = chat.ThinkingAdaptive }},
	"Reasoning.Budget": {with: func(r *chat.Request) {
		r.Reasoning.Thinking, r.Reasoning.Budget = chat.ThinkingBudget, chat.Some[int64](2000)
	}},
	"Reasoning.UnknownType": {without: func(r *chat.Request) { r.Reasoning.Thinking = chat.ThinkingAdaptive }, with: func(r *chat.Request) { r.Reasoning.UnknownType = "someday" }},
	"Completion.Suffix":     {without: completes, with: func(r *chat.Request) { r.Completion.Suffix = "the end" }},
	"Completion.BestOf":     {without: completes, with: func(r *chat.Request) { r.Completion.BestOf = chat.Some[int64](2) }},
	"Completion.Logprobs":   {without: completes, with: func(r *chat.Request) { r.Completion.Logprobs = chat.Some[int64](2) }},
	"Completion.Prompts":    {without: completes, with: func(r *chat.Request) { r.Messages, r.Completion.Prompts = append(r.Messages, r.Messages[0]), 2 }},
	"Reasoning.Display":     {without: func(r *chat.Request) { r.Reasoning.Thinking = chat.ThinkingAdaptive }, with: func(r *chat.Request) { r.Reasoning.Display = "omitted" }},
}

// untested are the fields below a request of which nothing is tested separately.
var untested = map[string]string{
	"Message.At": "a place", "Message.IsString": "how the content was written", "Part.At": "a place", "Part.Type": "of Raw", "Part.Origin": "of a signature",
	"ToolResult.CallID": "tried with ToolCall.ID", "ToolResult.Name": "the call says it too", "ToolResult.Plain": "how the content was written",
	"Tool.Custom": "how calls are given back", "Tool.Raw": "of Foreign", "Tool.Namespace": "a part of Name",
	"Format.Set": "the text that is the answer anyway", "Format.AssumedStrict": "of Strict",
	"Completion.Echo": "the gateway writes the prompt in front of the answer",
}

// without are the fields that wires do without: the providers, or all.
var without = map[string]struct{ why, providers string }{
	"Format.Name":   {"a label, which the shapes that have it demand", ""},
	"Format.Strict": {"who has no word for it holds to every schema, or the report says that the format is asked for in words", ""},
	"ToolCall.ID":   {"a result brings its call", "oci"},
}

// lastName is where a field of nested stands, up to its own name.
func lastName(member string) string {
	for prefix, at := range map[string]string{
		"Tool.": "tools[0]", "ToolChoice.": "tools[0]", "Reasoning.": "thinking", "ToolCall.": "messages[1].tool_calls[0]", "Part.Cache of a call": "messages[1].tool_calls[0]",
		"ToolResult.": "messages[2]", "Part.Cache of a result": "messages[2]", "Part.Result": "messages[2]", "Part.Signature": "messages[1].content[0]",
	} {
		if strings.HasPrefix(member, prefix) {
			return at
		}
	}
	return ""
}

// makers are models and families for which encoders of hosts with several makers write
// different bodies.
var makers = map[string]string{"command-r": "cohere", "cohere.command-r": "cohere", "anthropic.claude": "anthropic", "amazon.nova": "amazon", "meta.llama": "meta", "mistral.x": "mistral", "unknown": ""}

// TestNoMemberBelowARequestIsDroppedInSilence goes through the fields below a request.
// Each field alone changes every provider's body, or the report names it or what it
// belongs to, or the request is rejected because of it.
func TestNoMemberBelowARequestIsDroppedInSilence(t *testing.T) {
	t.Parallel()
	known := map[string]bool{}
	for _, of := range []reflect.Type{
		reflect.TypeFor[chat.Message](), reflect.TypeFor[chat.Part](), reflect.TypeFor[chat.Media](), reflect.TypeFor[chat.ToolCall](), reflect.TypeFor[chat.ToolResult](),
		reflect.TypeFor[chat.Tool](), reflect.TypeFor[chat.ToolChoice](), reflect.TypeFor[chat.Format](), reflect.TypeFor[chat.Reasoning](), reflect.TypeFor[chat.Completion](),
	} {
		for i := range of.NumField() {
			member := of.Name() + "." + of.Field(i).Name
			known[member] = true
			if _, tried := nested[member]; tried == (untested[member] != "") {
				t.Errorf("%s: tried %v, exempt for %q", member, tried, untested[member])
			}
		}
	}
	for member := range untested {
		if !known[member] {
			t.Errorf("%s is no member", member)
		}
	}
	for member, c := range nested {
		for provider, d := range golden.Providers {
			if provider == "completions" {
				continue // its texts are sent as the client wrote them, never translated
			}
			if baseRequest(provider).Completion != nil && !strings.HasPrefix(member, "Completion.") {
				continue // it takes texts only, of which nothing is below
			}
			for model, family := range makers {
				checkBelow(t, member, provider, d, c, &chat.Traits{Provider: "p", Family: family}, model)
			}
		}
	}
}

func checkBelow(t *testing.T, member, provider string, d chat.Provider, c requestPair, traits *chat.Traits, model string) {
	write := func(change ...func(*chat.Request)) ([]byte, *chat.Loss, error) {
		r := baseRequest(provider)
		r.Model = model
		for _, by := range change {
			if by != nil {
				by(r)
			}
		}
		loss := new(chat.Loss)
		out, err := d.EncodeRequest(nil, r, traits, loss)
		if f := fault.From(err); err != nil && (f.Status() != 400 || f.Field == "") {
			t.Errorf("%s to %s, %s: %v", member, provider, model, err)
		}
		return out, loss, err
	}
	before, known, err := write(c.without)
	if err != nil {
		return // what it belongs to is rejected
	}
	after, loss, err := write(c.without, c.with)
	if err != nil || !bytes.Equal(before, after) || len(loss.Entries) > len(known.Entries) {
		return
	}
	at := lastName(member)
	for _, e := range loss.Entries {
		if e.Path == at || at == "thinking" && e.Path == "reasoning_effort" {
			return
		}
	}
	if w, ok := without[member]; ok && (w.providers == "" || slices.Contains(strings.Fields(w.providers), provider)) {
		return
	}
	t.Errorf("%s is dropped for %s, %s, in silence: %q\n%s", member, provider, model, loss.Header(), after)
}
