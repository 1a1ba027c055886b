package realtime

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"gateway/shared/dialect/realtime"
	"gateway/shared/egress"
	"gateway/shared/fault"
	"gateway/shared/guard/chain"
	"gateway/shared/relay/guardrail"
	"gateway/shared/relay/session"
)

// word is the word that the judge forbids or removes.
const word = "hunter2"

// judge forbids a word, or puts stars in its place.
type judge struct{ replaces, lets bool }

func (judge) JudgesInput() bool        { return true }
func (j judge) BuffersResponses() bool { return !j.lets }
func (j judge) JudgesResponses() bool  { return true }

func (j judge) say(body []byte) guardrail.SessionVerdict {
	// As the provider and the client read it, whatever the spelling.
	var v any
	if json.Unmarshal(body, &v) != nil {
		return guardrail.SessionVerdict{Denied: true}
	}
	plain, err := json.Marshal(v)
	switch {
	case err != nil:
		return guardrail.SessionVerdict{Denied: true}
	case !bytes.Contains(plain, []byte(word)):
		return guardrail.SessionVerdict{}
	case j.replaces:
		return guardrail.SessionVerdict{Body: bytes.ReplaceAll(plain, []byte(word), []byte("***"))}
	}
	return guardrail.SessionVerdict{Denied: true, Results: chain.Results{Before: []chain.Result{{ID: "hook"}}}}
}

func (j judge) JudgeInput(_ context.Context, body []byte) guardrail.SessionVerdict {
	return j.say(body)
}
func (j judge) JudgeBuffered(_ context.Context, _, body []byte) guardrail.SessionVerdict {
	return j.say(body)
}
func (j judge) JudgeSent(context.Context, []byte, []byte) guardrail.SessionVerdict {
	return guardrail.SessionVerdict{}
}

// told sends events of a provider through a guard, and returns the client's events.
func told(t testing.TB, g *Guard, events []string) (out, back []string) {
	t.Helper()
	var reader realtime.Reader
	for _, raw := range events {
		e, err := reader.Read([]byte(raw))
		if err != nil {
			continue
		}
		v := g.Provider(&e)
		if v.Unchanged {
			out = append(out, raw)
		}
		for _, body := range v.Replies {
			if !json.Valid(body) {
				t.Fatalf("%s is not JSON", body)
			}
			out = append(out, string(body))
		}
		for _, body := range v.Back {
			back = append(back, string(body))
		}
	}
	return out, back
}

func guardOf(j Guardrails) *Guard {
	return NewGuard(context.Background(), func() Guardrails { return j }, GuardedSession{ID: "s", Model: "m", Strict: true})
}

// sayer are the events of one that says a text in pieces.
func sayer(id string, pieces ...string) []string {
	whole := strings.Join(pieces, "")
	item := fmt.Sprintf(`{"id":"item_%s","type":"message","role":"assistant","content":[{"type":"output_text","text":%q}]}`, id, whole)
	out := []string{
		fmt.Sprintf(`{"type":"response.created","response":{"id":%q}}`, id),
		fmt.Sprintf(`{"type":"conversation.item.added","item":{"id":"item_%s","type":"message","role":"assistant","content":[]}}`, id),
		fmt.Sprintf(`{"type":"response.output_item.added","response_id":%q,"item":{"id":"item_%s"}}`, id, id),
	}
	for _, p := range pieces {
		out = append(out, fmt.Sprintf(`{"type":"response.output_text.delta","response_id":%q,"item_id":"item_%s","content_index":0,"delta":%q}`, id, id, p))
	}
	return append(out,
		fmt.Sprintf(`{"type":"response.output_text.done","response_id":%q,"item_id":"item_%s","content_index":0,"text":%q}`, id, id, whole),
		fmt.Sprintf(`{"type":"conversation.item.done","item":%s}`, item),
		fmt.Sprintf(`{"type":"response.done","response":{"id":%q,"status":"completed","output":[%s],"usage":{"input_tokens":3,"output_tokens":4}}}`, id, item))
}

func TestAResponseIsHeldAndDeniedOrChanged(t *testing.T) {
	t.Parallel()
	bad, good := sayer("r1", "my hun", "ter2", " ok"), sayer("r2", "all ", "well")
	again := `{"type":"conversation.item.retrieved","item":{"id":"item_r1","type":"message","role":"assistant","content":[{"type":"output_text","text":"my hunter2 ok"}]}}`
	events := append(append(append([]string{}, bad...), good...), again)

	g := guardOf(judge{})
	out, back := told(t, g, events)
	all := strings.Join(out, "\n")
	if strings.Contains(all, "hun") || !strings.Contains(all, `"status":"failed"`) || !strings.Contains(all, `"hook_results"`) || !strings.Contains(all, `"output_tokens":4`) || !strings.Contains(all, `"delta":"all "`) || strings.Contains(all, "retrieved") {
		t.Error(all)
	}
	if fmt.Sprint(back) != `[{"type":"conversation.item.delete","item_id":"item_r1"}]` {
		t.Error(back)
	}
	if o := g.Outcome("r1"); !o.Denied || g.Outcome("r1").Denied || g.Outcome("r2").Denied {
		t.Error(o)
	}
	out, _ = told(t, guardOf(judge{replaces: true}), events)
	if all = strings.Join(out, "\n"); strings.Contains(all, "hun") || strings.Count(all, "my *** ok") != 5 || strings.Count(all, `"all "`) != 1 || strings.Contains(all, "failed") {
		t.Error(all)
	}
	if out, _ = told(t, guardOf(judge{lets: true}), events); fmt.Sprint(out) != fmt.Sprint(events) {
		t.Errorf("what is judged when it is over is not sent as it comes: %v", out)
	}
}

// TestWhatIsWrittenDownWaits checks that partial transcripts of client audio are not sent, and
// items only without unjudged ones.
func TestWhatIsWrittenDownWaits(t *testing.T) {
	t.Parallel()
	item := func(kind, id, text string) string {
		return fmt.Sprintf(`{"type":"conversation.item.%s","item":{"id":%q,"type":"message","role":"user","content":[{"type":"input_audio","transcript":%q},{"type":"input_text","text":"written"}]}}`, kind, id, text)
	}
	heard := func(id, text string) []string {
		return []string{
			item("added", id, text),
			fmt.Sprintf(`{"type":"conversation.item.input_audio_transcription.delta","item_id":%q,"delta":%q}`, id, text),
			fmt.Sprintf(`{"type":"conversation.item.input_audio_transcription.segment","item_id":%q,"text":%q}`, id, text),
			fmt.Sprintf(`{"type":"conversation.item.input_audio_transcription.completed","item_id":%q,"transcript":%q,"logprobs":[{"token":%q}]}`, id, text, text),
			item("retrieved", id, text),
		}
	}
	for _, replaces := range []bool{false, true} {
		out, _ := told(t, guardOf(judge{replaces: replaces}), append(heard("bad", word), heard("good", "words")...))
		all := strings.Join(out, "\n")
		_, behind, _ := strings.Cut(all, `"transcript":"words","logprobs"`)
		if strings.Contains(all, word) || strings.Contains(all, ".delta") || strings.Contains(all, ".segment") || strings.Count(all, `"words"`) != 3 || strings.Count(behind, `"words"`) != 2 || replaces != strings.Contains(all, `"***"`) {
			t.Errorf("replaces %v: %s", replaces, all)
		}
	}
	for _, raw := range []string{
		`{"type":"conversation.item.input_audio_transcription.completed","item_id":"i","transcript":7}`,
		`{"type":"conversation.item.added","item":{"id":"i","role":"user","content":[7]}}`,
		`{"type":"conversation.item.added","item":7}`,
	} {
		if out, _ := told(t, guardOf(judge{}), []string{raw}); len(out) > 0 {
			t.Errorf("%s was sent", raw)
		}
	}
}

// TestWhatIsHeldIsCounted checks that held events count against the memory of large messages
// until they are sent; the session ends if there is none.
func TestWhatIsHeldIsCounted(t *testing.T) {
	t.Parallel()
	memory := egress.NewMemory(1 << 20)
	guard := func(j judge) *Guard {
		return NewGuard(context.Background(), func() Guardrails { return j }, GuardedSession{ID: "s", Model: "m", Strict: true, Memory: memory, Tenant: "org"})
	}
	send := func(g *Guard, raw string) session.Judgement {
		var reader realtime.Reader
		e, err := reader.Read([]byte(raw))
		if err != nil {
			t.Fatal(err)
		}
		return g.Provider(&e)
	}
	sound := func(id string, n int) string {
		return fmt.Sprintf(`{"type":"response.output_audio.delta","response_id":%q,"delta":%q}`, id, strings.Repeat("A", n))
	}
	g := guard(judge{})
	events := sayer("r1", "all ", "well")
	send(g, events[0])
	if send(g, sound("r1", 300_000)); memory.Used() < 230_000 {
		t.Errorf("%d bytes are counted", memory.Used())
	}
	if v := send(g, events[len(events)-1]); v.Err != nil || len(v.Replies) != 2 {
		t.Errorf("%v, %d events", v.Err, len(v.Replies))
	}
	if send(g, `{"type":"rate_limits.updated"}`); memory.Used() != 0 {
		t.Errorf("%d bytes are counted of what was told", memory.Used())
	}
	send(g, sayer("r2", "a")[0])
	if v := send(g, sound("r2", 900_000)); !fault.Is(v.Err, fault.ServiceUnavailable) || v.Unchanged || len(v.Replies) > 0 {
		t.Errorf("%v: more is held than there is memory", v.Err)
	}
	send(g, sayer("r3", "a")[0])
	send(g, sound("r3", 300_000))
	if g.Close(); memory.Used() != 0 {
		t.Errorf("%d bytes are counted of a session that is over", memory.Used())
	}
	g = guard(judge{lets: true}) // forwarded events hold no memory, but their text does
	defer g.Close()
	send(g, events[0])
	if v := send(g, sound("r1", 900_000)); !v.Unchanged || memory.Used() != 0 {
		t.Errorf("%v, %d bytes are counted", v, memory.Used())
	}
	if v := send(g, fmt.Sprintf(`{"type":"response.output_text.delta","response_id":"r1","item_id":"i","delta":%q}`, strings.Repeat("a", 300_000))); !v.Unchanged || memory.Used() < 230_000 {
		t.Errorf("%d bytes are counted", memory.Used())
	}
}

// TestAResponseIsJudgedAsItBegan: guardrails that come or go meanwhile hold for the next.
func TestAResponseIsJudgedAsItBegan(t *testing.T) {
	t.Parallel()
	var now Guardrails = none{}
	g := NewGuard(context.Background(), func() Guardrails { return now }, GuardedSession{ID: "s", Model: "m", Strict: true})
	first, second, third := sayer("r1", word), sayer("r2", word), sayer("r3", word)
	out, _ := told(t, g, first[:4])
	now = judge{}
	more, _ := told(t, g, first[4:])
	if out = append(out, more...); fmt.Sprint(out) != fmt.Sprint(first) {
		t.Errorf("a response that had begun: %v", out)
	}
	out, _ = told(t, g, second[:4])
	now = none{}
	more, _ = told(t, g, second[4:])
	if all := fmt.Sprint(append(out, more...)); strings.Contains(all, word) || !strings.Contains(all, "guardrail_denied") {
		t.Error(all)
	}
	if out, _ = told(t, g, third); fmt.Sprint(out) != fmt.Sprint(third) {
		t.Errorf("no guardrail holds any more: %v", out)
	}
}

// none judges nothing.
type none struct{ judge }

func (none) JudgesInput() bool      { return false }
func (none) BuffersResponses() bool { return false }
func (none) JudgesResponses() bool  { return false }

// FuzzHeld checks that for any events of a provider, in any order, no forbidden content is sent
// as part of a response, and all output is JSON.
func FuzzHeld(f *testing.F) {
	f.Add(strings.Join(sayer("r1", "my hun", "ter2"), "\n"), true)
	f.Add(strings.Join(sayer("r1", "my ", word), "\n"), false)
	f.Add(`{"type":"response.output_text.delta","response_id":"r9","delta":"hunter2"}`, false)
	f.Add(strings.Join(append(sayer("r1", "a")[:4], `{"type":"response.output_audio_transcript.delta","response_id":"r1","item_id":"item_r1","content_index":1,"delta":"hunter2"}`, sayer("r1", "a")[6]), "\n"), true)
	f.Add(strings.Join([]string{sayer("r1", "a")[0], `{"type":"response.delta","response_id":"r1","delta":"hunter2"}`, sayer("r1", "a")[6]}, "\n"), true)
	f.Add(strings.Join([]string{sayer("r1", "a")[0], `{"type":"response.function_call_arguments.delta","response_id":"r1","delta":"hunter2"}`, sayer("r1", "a")[6]}, "\n"), true)
	f.Add(strings.Replace(sayer("r1", word)[6], "response.done", "response.created", 1), false)
	f.Add(`{"type":"conversation.item.input_audio_transcription.completed","item_id":"i","transcript":"hunter2"}`, true)
	f.Add(`{"type":"conversation.item.input_audio_transcription.delta","item_id":"i","delta":"hunter2"}`, true)
	f.Fuzz(func(t *testing.T, events string, replaces bool) {
		out, _ := told(t, guardOf(judge{replaces: replaces}), strings.Split(events, "\n"))
		for _, raw := range out {
			var e struct {
				Type, Delta, Transcript string
				ResponseID              string `json:"response_id"`
			}
			if json.Unmarshal([]byte(raw), &e) != nil {
				continue
			}
			if strings.HasPrefix(e.Type, "response.") && strings.HasSuffix(e.Type, ".delta") && e.ResponseID != "" && strings.Contains(e.Delta, word) || strings.HasPrefix(e.Type, "conversation.item.input_audio_transcription.") && strings.Contains(e.Transcript+e.Delta, word) {
				t.Fatalf("%s was sent of %s", raw, events)
			}
		}
	})
}

// TestResultsOfHostedToolsAreJudged: a response is more than its texts and calls.
func TestResultsOfHostedToolsAreJudged(t *testing.T) {
	t.Parallel()
	for _, item := range []string{
		`{"id":"i","type":"mcp_call","server_label":"l","name":"n","arguments":"{}","output":"my hunter2"}`,
		`{"id":"i","type":"mcp_call","server_label":"l","name":"n","arguments":"{}","error":{"message":"my hunter2"}}`,
		`{"id":"i","type":"mcp_approval_request","server_label":"l","name":"n","arguments":"hunter2"}`,
		`{"id":"i","type":"item_of_tomorrow","texts":["hunter2"]}`,
		`{"id":"i","type":"message","role":"assistant","content":[{"type":"output_text","text":"hunter2"}]}`,
	} {
		events := []string{
			`{"type":"response.created","response":{"id":"r"}}`,
			`{"type":"response.output_item.added","response_id":"r","item":{"id":"i"}}`,
			`{"type":"response.output_item.done","response_id":"r","item":` + item + `}`,
			`{"type":"conversation.item.done","item":` + item + `}`,
			`{"type":"response.done","response":{"id":"r","status":"completed","output":[` + item + `]}}`,
		}
		for _, j := range []judge{{}, {replaces: true}} {
			out, _ := told(t, guardOf(j), events)
			if all := strings.Join(out, "\n"); strings.Contains(all, "hunter2") {
				t.Errorf("%s: %s", item, all)
			}
		}
		if out, _ := told(t, guardOf(judge{replaces: true}), []string{
			strings.ReplaceAll(events[0], "hunter2", "ok"), strings.ReplaceAll(events[2], "hunter2", "ok"), strings.ReplaceAll(events[4], "hunter2", "ok"),
		}); len(out) != 3 || strings.Contains(strings.Join(out, ""), "failed") {
			t.Errorf("%s: %s", item, out)
		}
	}
}
