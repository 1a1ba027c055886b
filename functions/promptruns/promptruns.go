// Package promptruns is the family that uses saved prompts: it renders them and sends the
// result to models.
package promptruns

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"gateway/shared/dialect/openai"
	"gateway/shared/fault"
	"gateway/shared/fault/bound"
	"gateway/shared/guard/expect"
	"gateway/shared/prompt"
	"gateway/shared/provider"
	"gateway/shared/relay"
	"gateway/shared/relay/response"
	"gateway/shared/wire"
)

// completions is the scope of calls of models.
const completions = "completions.write"

// Routes are the family's routes.
func Routes() []relay.Route {
	chat := relay.Route{
		Method: "POST", Path: "/prompts/{promptId}/completions", Endpoint: "chatComplete", BodyMode: relay.Unified, Scope: completions,
		Client: openai.Chat{}, Operation: provider.Chat,
	}
	text := chat
	text.Endpoint, text.Client, text.Operation = "complete", openai.Completions{}, provider.Completions
	route := relay.Route{
		Method: "POST", Path: "/prompts/{promptId}/completions", Endpoint: "promptCompletions", BodyMode: relay.Unified, Scope: completions,
		Errors: openai.Chat{}, Handler: &relay.Prompt{Chat: &chat, Completion: &text},
	}
	return []relay.Route{
		route,
		{
			Method: "POST", Path: "/prompts/{promptId}/test", Endpoint: "promptTest", BodyMode: relay.Unified, Scope: completions, MaxBody: 1 << 20,
			NoModel: true, Free: true, NoOutput: true, Errors: openai.Chat{}, Handler: &relay.Composed{Inner: &route, Serve: test},
		},
		{
			Method: "POST", Path: "/prompts/{promptId}/render", Endpoint: "promptRender", BodyMode: relay.Unified, Scope: "prompts.render",
			NoModel: true, Free: true, NoOutput: true, Handler: &relay.Prompt{Render: true},
		},
	}
}

// Bounds of a run of tests.
const (
	atOnce      = 4 // cases
	caseTime    = 2 * time.Minute
	maxResponse = 4 << 20 // bytes of a response
	maxShown    = 4 << 10 // bytes of it in the response
)

// table is the body of a run: cases in place of the saved ones.
type table struct {
	Tests []prompt.Case `json:"tests" max:"50"`
}

func readTable(body []byte) (t table, err error) {
	if len(bytes.TrimSpace(body)) == 0 {
		return t, nil
	}
	if err := wire.CheckStrict(body, wire.MaxDepth); err != nil {
		return t, err
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if err := d.Decode(&t); err != nil {
		return t, misread(err)
	}
	bad := append(bound.Check(&t), expect.Validate("tests", t.Tests)...)
	if t.Tests != nil && len(t.Tests) == 0 {
		bad = append(bad, fault.Detail{Field: "tests", Message: "must have at least one test; omit it to run the saved tests"})
	}
	if refused := fault.Invalids(bad); refused != nil {
		return t, refused
	}
	return t, nil
}

// misread returns the fault for a body field that has the wrong type or is unknown.
func misread(err error) error {
	if wrong, ok := err.(*json.UnmarshalTypeError); ok && wrong.Field != "" {
		return fault.Invalid(wrong.Field, "must not be a %s", wrong.Value)
	}
	if _, name, ok := strings.Cut(err.Error(), "unknown field "); ok {
		return fault.Invalid(fault.Clip(strings.Trim(name, `"`), 64), "is not a field of this body")
	}
	return fault.Invalid("", "The body must be a JSON object with the field tests")
}

// report is the response: what became of each case.
type report struct {
	Object  string   `json:"object"`
	Prompt  string   `json:"prompt_id"`
	Version int64    `json:"prompt_version"`
	Passed  bool     `json:"passed"`
	Saved   bool     `json:"counts"` // for require_tests: the saved table was run
	Cases   []result `json:"cases"`
}

type result struct {
	Name       string   `json:"name"`
	Passed     bool     `json:"passed"`
	Rendered   string   `json:"rendered,omitempty"`
	Answer     *string  `json:"answer"` // null: no model was called, or none responded
	Status     int      `json:"status,omitempty"`
	LatencyMS  int64    `json:"latency_ms,omitempty"`
	Problem    string   `json:"problem,omitempty"`
	Assertions []judged `json:"assertions"`
}

type judged struct {
	Type   string `json:"type"`
	On     string `json:"on"`
	Passed bool   `json:"passed"`
	Reason string `json:"reason,omitempty"`
}

// exam is one run of a table of tests.
type exam struct {
	*relay.Composition
	found *prompt.Found
	shelf prompt.View
}

// test runs a table of tests on the version that the path names.
func test(d *relay.Composition) ([]byte, error) {
	request, err := readTable(d.Body)
	if err != nil {
		return nil, err
	}
	shelf := prompt.View{View: d.View, Scope: d.Scope}
	found, saved, err := shelf.Examined(d.Context, d.ID)
	if err != nil {
		return nil, err
	}
	cases := request.Tests
	if cases == nil {
		if cases = saved; len(cases) == 0 {
			return nil, fault.Invalid("tests", "is required: this prompt has no saved tests")
		}
	}
	out := report{Object: "prompt-test", Prompt: found.ID, Version: found.Version, Cases: make([]result, len(cases))}
	x := exam{d, found, shelf}
	var wait sync.WaitGroup
	free := make(chan struct{}, atOnce)
	for i := range cases {
		free <- struct{}{}
		wait.Go(func() {
			defer func() { <-free }()
			out.Cases[i] = x.run(&cases[i])
		})
	}
	wait.Wait()
	out.Passed = !slices.ContainsFunc(out.Cases, func(r result) bool { return !r.Passed })
	if request.Tests == nil && found.Scope == d.Scope {
		if err := x.storeResult(saved, &out); err != nil {
			return nil, err
		}
		out.Saved = true
	}
	return json.Marshal(out)
}

// storeResult stores what the saved table found, by which the version may be published.
func (x exam) storeResult(table []prompt.Case, r *report) error {
	digest, err := prompt.Digest(x.found.Prompt, table)
	if err != nil {
		return err
	}
	t := prompt.Tested{Digest: digest, At: x.Now().UTC(), Cases: len(r.Cases)}
	for i := range r.Cases {
		if !r.Cases[i].Passed {
			t.Failed = append(t.Failed, r.Cases[i].Name)
		}
	}
	return prompt.Tests{Store: x.Store}.Save(x.Context, x.found.Scope, x.found.ID, r.Version, &t)
}

// run renders a case, calls the model if requested, and evaluates both.
func (x exam) run(c *prompt.Case) result {
	out := result{Name: c.Name, Assertions: []judged{}}
	ctx, cancel := context.WithTimeout(x.Context, caseTime)
	defer cancel()
	body, err := json.Marshal(map[string]any{"variables": c.Variables})
	if err != nil {
		out.Problem = "the variables cannot be encoded as JSON"
		return out
	}
	q, err := prompt.ParseRequest(body)
	var rendered []byte
	if err == nil {
		rendered, err = x.found.Body(q, x.shelf.Partials(ctx, x.found.Scope))
	}
	if err != nil {
		out.Problem = fault.From(err).Message
		return out
	}
	about := map[string]*expect.Outcome{prompt.OnRendered: {Text: textOf(rendered), Guard: func(name string) (bool, error) {
		return x.Guard(ctx, name, x.endpoint(), rendered, nil)
	}}}
	standard := prompt.OnRendered
	if c.RenderOnly {
		out.Rendered = fault.Clip(about[prompt.OnRendered].Text, maxShown)
	} else {
		standard = prompt.OnAnswer
		answer := x.callModel(ctx, body, rendered, &out)
		if answer == nil {
			return out
		}
		about[prompt.OnAnswer] = answer
	}
	out.Passed = true
	for i := range c.Assertions {
		a := &c.Assertions[i]
		on := a.On
		if on == "" {
			on = standard
		}
		holds, why := expect.Judge(ctx, a, about[on])
		out.Passed = out.Passed && holds
		out.Assertions = append(out.Assertions, judged{a.Type, on, holds, why})
	}
	return out
}

func (x exam) endpoint() string {
	if x.found.Compiled.Type == prompt.Completion {
		return "complete"
	}
	return "chatComplete"
}

// callModel has the model answer; nil: it did not, and the result explains why.
func (x exam) callModel(ctx context.Context, body, rendered []byte, out *result) *expect.Outcome {
	got := &response.Recorder{Max: maxResponse}
	begun := x.Now()
	broken := x.Send(ctx, got, x.found.ID+"@"+strconv.FormatInt(x.found.Version, 10), body)
	elapsed := x.Now().Sub(begun)
	out.Status, out.LatencyMS = got.Status, elapsed.Milliseconds()
	answer := got.Body.Bytes()
	switch {
	case broken || got.Overflowed || ctx.Err() != nil:
		out.Problem = "the response was truncated or is too long"
		return nil
	case got.Status < 200 || got.Status > 299:
		var completion struct {
			Error struct {
				Message string `json:"message"`
			} `json:"error"`
		}
		_ = json.Unmarshal(answer, &completion)
		if out.Problem = fault.Clip(completion.Error.Message, 500); out.Problem == "" {
			out.Problem = http.StatusText(got.Status)
		}
		return nil
	}
	text := responseText(answer)
	shown := fault.Clip(text, maxShown)
	out.Answer = &shown
	return &expect.Outcome{Text: text, Latency: elapsed, Guard: func(name string) (bool, error) {
		return x.Guard(ctx, name, x.endpoint(), rendered, answer)
	}}
}

// responseText is the text of a response, or where it has none the arguments of its first
// call of a tool.
func responseText(body []byte) string {
	var a struct {
		Choices []struct {
			Text    string `json:"text"`
			Message struct {
				Content   json.RawMessage `json:"content"`
				ToolCalls []struct {
					Function struct {
						Arguments string `json:"arguments"`
					} `json:"function"`
				} `json:"tool_calls"`
			} `json:"message"`
		} `json:"choices"`
	}
	if json.Unmarshal(body, &a) != nil || len(a.Choices) == 0 {
		return ""
	}
	first := &a.Choices[0]
	text := first.Text + contentOf(first.Message.Content)
	if text == "" && len(first.Message.ToolCalls) > 0 {
		text = first.Message.ToolCalls[0].Function.Arguments
	}
	return text
}

// contentOf is the text of a message's content, which is a text or a list of parts.
func contentOf(raw json.RawMessage) (text string) {
	if json.Unmarshal(raw, &text) == nil {
		return text
	}
	var parts []struct {
		Text string `json:"text"`
	}
	_ = json.Unmarshal(raw, &parts) // something else has no text
	for _, p := range parts {
		text += p.Text
	}
	return text
}

// textOf is the text of a rendered body: of its messages, one below the other, or of its
// prompt.
func textOf(body []byte) string {
	var b struct {
		Prompt   string `json:"prompt"`
		Messages []struct {
			Content json.RawMessage `json:"content"`
		} `json:"messages"`
	}
	if json.Unmarshal(body, &b) != nil {
		return ""
	}
	texts := make([]string, len(b.Messages))
	for i := range b.Messages {
		texts[i] = contentOf(b.Messages[i].Content)
	}
	return b.Prompt + strings.Join(texts, "\n")
}
