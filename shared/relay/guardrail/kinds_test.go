package guardrail

import (
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"
	"time"

	"gateway/shared/chat"
	"gateway/shared/dialect/anthropic"
	"gateway/shared/dialect/cohere"
	"gateway/shared/dialect/converse"
	"gateway/shared/dialect/gemini"
	"gateway/shared/dialect/openai"
	"gateway/shared/dialect/responses"
	"gateway/shared/fault"
	"gateway/shared/guard"
	"gateway/shared/guard/chain"
	"gateway/shared/pricing"
)

// marker is what the guardrails of this test deny or replace. Its white space makes it text in
// fields that are exempt while they contain an identifier.
const marker = "say hunter2 now"

const quoted = `"` + marker + `"`

// samples are streams for each kind of delta, each with the marker in another of its strings.
// Those of no string are empty.
var samples = map[string][][]chat.Delta{
	"DeltaStart": {{{Kind: chat.DeltaStart, ID: marker}}, {{Kind: chat.DeltaStart, Model: marker}}},
	"DeltaText":  {{{Kind: chat.DeltaText, Block: 1, Call: -1, JSON: []byte(quoted)}}},
	"DeltaRefusal": {
		{{Kind: chat.DeltaRefusal, Block: 1, Call: -1, JSON: []byte(quoted)}},
	},
	"DeltaThinking":  {{{Kind: chat.DeltaThinking, Block: 1, Call: -1, JSON: []byte(quoted)}}},
	"DeltaSignature": {{{Kind: chat.DeltaThinking, Block: 1, Call: -1, JSON: []byte(`"a"`)}, {Kind: chat.DeltaSignature, Block: 1, Call: -1, JSON: []byte(quoted)}}},
	"DeltaRedacted":  {{{Kind: chat.DeltaRedacted, Block: 1, Call: -1, JSON: []byte(quoted)}}},
	"DeltaCitation": {
		citing(`{"type":"url_citation","url_citation":{"url":"https://a.example","title":` + quoted + `,"start_index":0,"end_index":2}}`),
		citing(`{"type":"url_citation","url":"https://a.example","title":` + quoted + `,"start_index":0,"end_index":2}`),
		citing(`{"type":"web_search_result_location","url":"https://a.example","title":` + quoted + `,"cited_text":"x","encrypted_index":"e"}`),
		citing(`{"type":"web_search_result_location","url":"https://a.example","title":"x","cited_text":` + quoted + `,"encrypted_index":"e"}`),
		citing(`{"type":"char_location","document_index":0,"document_title":"x","start_char_index":0,"end_char_index":2,"cited_text":` + quoted + `}`),
		{{Kind: chat.DeltaCitation, Block: 7, Call: -1, JSON: []byte(`{"type":"url_citation","url":"https://a.example","title":` + quoted + `}`)}}, // of no text
	},
	"DeltaForeign": {
		foreign(`{"type":"mcp_call","id":"mcp_1","server_label":"s","name":"look","arguments":"{}","output":` + quoted + `}`),
		foreign(`{"type":"code_interpreter_call","id":"ci_1","status":"completed","container_id":"c","code":"1","outputs":[{"type":"logs","logs":` + quoted + `}]}`),
		foreign(`{"type":"web_search_call","id":"ws_1","status":"completed","action":{"type":"search","query":"q","sources":[{"type":"url","title":` + quoted + `}]}}`),
		foreign(`{"type":"web_search_tool_result","tool_use_id":"t","content":[{"type":"web_search_result","url":"https://a.example","title":` + quoted + `}]}`),
		foreign(`{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":` + quoted + `}}`),
	},
	"DeltaToolStart": {
		calling(chat.Delta{Kind: chat.DeltaToolStart, Block: 1, ID: "c", Name: marker}, `"{}"`),
		calling(chat.Delta{Kind: chat.DeltaToolStart, Block: 1, ID: marker, Name: "look"}, `"{}"`),
	},
	"DeltaToolArgs":  {calling(chat.Delta{Kind: chat.DeltaToolStart, Block: 1, ID: "c", Name: "look"}, `"{\"a\":\"`+marker+`\"}"`)},
	"DeltaImage":     {{{Kind: chat.DeltaImage, Block: 1, Call: -1, JSON: []byte(`"https://images.example/` + marker + `.png"`)}}},
	"DeltaBlockStop": {},
	"DeltaStop": {
		{{Kind: chat.DeltaStop, Stop: chat.StopSequence, Native: "stop_sequence", StopSequence: marker}},
		{{Kind: chat.DeltaStop, Stop: chat.StopEnd, Native: "stop", Extra: []chat.Field{{Name: "groundingMetadata", Raw: []byte(`{"webSearchQueries":[` + quoted + `]}`)}}}},
	},
	"DeltaUsage": {},
	"DeltaPing":  {},
}

func citing(citation string) []chat.Delta {
	return []chat.Delta{{Kind: chat.DeltaCitation, Call: -1, JSON: []byte(citation)}}
}

func foreign(block string) []chat.Delta {
	return []chat.Delta{{Kind: chat.DeltaForeign, Block: 1, Call: -1, JSON: []byte(block)}}
}

func calling(start chat.Delta, args string) []chat.Delta {
	return []chat.Delta{start, {Kind: chat.DeltaToolArgs, Block: 1, JSON: []byte(args)}, {Kind: chat.DeltaBlockStop, Block: 1}}
}

// kinds are the names of all kinds of delta, from the source.
func kinds(t *testing.T) (out []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "../../chat/delta.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok {
			for _, name := range v.Names {
				if strings.HasPrefix(name.Name, "Delta") {
					out = append(out, name.Name)
				}
			}
		}
		return true
	})
	if len(out) < 14 {
		t.Fatalf("kinds: %v", out)
	}
	return out
}

// scripted is a decoder that returns deltas, one for each event.
type scripted struct {
	deltas []chat.Delta
	done   bool
}

func (s *scripted) Event(_ string, _ []byte, emit func(*chat.Delta) error) error {
	if len(s.deltas) == 0 {
		s.done = true
		return nil
	}
	d := s.deltas[0]
	s.deltas = s.deltas[1:]
	return emit(&d)
}
func (s *scripted) End() error            { return nil }
func (s *scripted) Meter() chat.Meter     { return chat.Meter{Started: true, Complete: s.done} }
func (s *scripted) Signed() []chat.Signed { return nil }

// around returns a complete stream around deltas.
func around(sample []chat.Delta) []chat.Delta {
	out := []chat.Delta{{Kind: chat.DeltaStart, ID: "id", Model: "m"}, {Kind: chat.DeltaText, Call: -1, JSON: []byte(`"It is so."`)}}
	end := chat.Delta{Kind: chat.DeltaStop, Stop: chat.StopEnd, Native: "stop"}
	for _, d := range sample {
		switch d.Kind {
		case chat.DeltaStart:
			out[0] = d
		case chat.DeltaStop:
			end = d
		default:
			out = append(out, d)
		}
	}
	var u pricing.Usage
	u.Set(pricing.Output, 3)
	return append(out, end, chat.Delta{Kind: chat.DeltaUsage, Usage: &u})
}

// TestStreamsAreJudgedAsPlainResponses covers all kinds of delta, modes of judging a stream and
// client formats. Content that is denied in the buffered response is denied in the stream, and
// content that is replaced in it is replaced in the stream, before the client gets any of it. A
// stream that passes is the one that a client without guardrails gets.
func TestStreamsAreJudgedAsPlainResponses(t *testing.T) {
	t.Parallel()
	clients := []chat.TwoWayDialect{openai.Chat{}, openai.Completions{}, anthropic.Messages{}, responses.Responses{}, gemini.Generate{}, converse.Converse{}, cohere.Chat{}}
	ready := func(raw string) chain.Hooks {
		return chain.Hooks{localKit.Prepare(guard.ReadHook(json.RawMessage(raw), false, false))}
	}
	const deny, redact = `{"regexMatch":{"rule":"hunter2","not":true},"deny":true,"stream":%q}`, `{"regexReplace":{"rule":"/hunter2/g","redactText":"***"},"stream":%q}`
	reached, judged := map[string]bool{}, map[string]bool{}
	for _, name := range kinds(t) {
		list, ok := samples[name]
		if !ok {
			t.Errorf("%s has no sample: decide how guardrails judge it", name)
		}
		for i, sample := range list {
			for _, client := range clients {
				for _, origin := range []string{client.Name(), "anthropic.messages", "gemini"} {
					for _, strict := range []bool{true, false} {
						o := chat.Options{ID: "gw-1", Model: "m", Origin: origin, Strict: strict, Created: 1, IncludeUsage: true}
						at := fmt.Sprintf("%s %d, %s from %s, strict %t", name, i, client.Name(), origin, strict)
						free, _, err := sentOf(nil, client, o, sample)
						if err != nil {
							t.Fatalf("%s: %v", at, err)
						}
						reached[name] = reached[name] || strings.Contains(free, "hunter2")
						clean, _, _ := sentOf(nil, client, o, harmless(sample))
						for _, way := range []string{"window", "hold"} {
							for _, guardrail := range []string{deny, redact} {
								hooks := ready(fmt.Sprintf(guardrail, way))
								plain, caught := judgedPlain(hooks, client, o, sample)
								judged[name] = judged[name] || caught
								got, refused, err := sentOf(hooks, client, o, sample)
								switch {
								case err != nil:
									t.Errorf("%s, %s: %v", at, way, err)
								case strings.Contains(got, "hunter2") && (caught || !strings.Contains(plain, "hunter2")):
									t.Errorf("%s, %s: not judged\n%s\nplain\n%s", at, way, got, plain)
								case guardrail == deny && caught && !refused:
									t.Errorf("%s, %s: the plain response is denied, the stream is not\n%s", at, way, plain)
								case guardrail == redact && refused:
									t.Errorf("%s, %s: denied by a redaction", at, way)
								case refused && !caught && (name == "DeltaForeign" || name == "DeltaStop"):
									t.Errorf("%s, %s: denied for what the client does not get", at, way)
								}
								got, refused, err = sentOf(hooks, client, o, harmless(sample))
								if untexted := name == "DeltaCitation" && sample[0].Block == 7; err != nil || refused || got != clean && (way == "window" || !untexted) {
									t.Errorf("%s, %s: without guardrails\n%s\nwith\n%s%v", at, way, clean, got, err)
								}
							}
						}
					}
				}
			}
		}
	}
	for name, list := range samples {
		if len(list) > 0 && !reached[name] && name != "DeltaRedacted" { // which is not text
			t.Errorf("no client gets the text of %s", name)
		}
		// Checks of the last message judge neither reasoning nor arguments of tools.
		if within := name == "DeltaThinking" || name == "DeltaSignature" || name == "DeltaRedacted" || name == "DeltaToolArgs"; len(list) > 0 && judged[name] == within {
			t.Errorf("%s is judged: %t", name, !within)
		}
	}
}

// harmless returns a sample with other words in place of the marker.
func harmless(sample []chat.Delta) []chat.Delta {
	other := func(s string) string { return strings.ReplaceAll(s, "hunter2", "goodbye") }
	out := append([]chat.Delta(nil), sample...)
	for i := range out {
		d := &out[i]
		d.ID, d.Name, d.Model, d.StopSequence, d.JSON = other(d.ID), other(d.Name), other(d.Model), other(d.StopSequence), []byte(other(string(d.JSON)))
		for j, x := range d.Extra {
			d.Extra = append([]chat.Field(nil), d.Extra...)
			d.Extra[j].Raw = []byte(other(string(x.Raw)))
		}
	}
	return out
}

// sentOf returns what a client gets of a stream with a sample.
func sentOf(hooks chain.Hooks, client chat.TwoWayDialect, o chat.Options, sample []chat.Delta) (sent string, denied bool, err error) {
	s := stateOf(hooks)
	deltas := around(sample)
	dec := s.Decoder(&scripted{deltas: deltas}, Shape{Client: client, Options: o, Traits: &chat.Traits{}})
	enc := client.NewStreamEncoder(&o)
	var out []byte
	emit := func(d *chat.Delta) error { out = enc.Append(out, d); return nil }
	for range len(deltas) + 1 {
		if err = dec.Event("", nil, emit); err != nil {
			break
		}
	}
	if err == nil {
		err = dec.End()
	}
	if fault.ByGuardrail(err) {
		return string(out), true, nil
	}
	return string(enc.Finish(out)), false, err
}

// judgedPlain judges the response that a stream with a sample makes; caught: it is denied or
// changed.
func judgedPlain(hooks chain.Hooks, client chat.TwoWayDialect, o chat.Options, sample []chat.Delta) (body string, caught bool) {
	var into chat.Collector
	for _, d := range around(sample) {
		into.Add(&d)
	}
	r := into.Response()
	r.Attribute(o.Origin)
	s := stateOf(hooks)
	raw := client.EncodeResponse(nil, r, &o)
	f := s.Output(raw)
	return string(raw), f != nil || s.Changed
}

func stateOf(hooks chain.Hooks) *State {
	s := &State{Enabled: true, hooks: found{out: hooks}, ctx: context.Background()}
	s.call = chain.Call{Kind: "chatComplete", Model: "m", Request: json.RawMessage(prompt), Now: time.Now, Stream: true, Budget: guard.NewBudget()}
	return s
}
