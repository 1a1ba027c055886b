package gemini

import (
	"maps"
	"strings"
	"testing"

	"gateway/shared/chat"
	"gateway/shared/dialect/openai"
)

// TestEveryMemberOfAFunctionResponseIsReadOrReported: pictures in parts continue beside
// the result.
func TestEveryMemberOfAFunctionResponseIsReadOrReported(t *testing.T) {
	r, err := Generate{}.DecodeRequest([]byte(`{"contents":[{"role":"user","parts":[{"text":"Hi"}]},{"role":"model","parts":[{"functionCall":{"name":"f","args":{}}}]},
		{"role":"user","parts":[{"functionResponse":{"name":"f","willContinue":true,"parts":[{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgo="}}],"response":{"output":"seen"}}}]}]}`))
	if err != nil {
		t.Fatal(err)
	}
	r.Model = "m"
	var loss chat.Loss
	sent, err := chat.Translate(nil, Generate{}, openai.Chat{}, r, &chat.Traits{}, &loss)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"content":"seen"`, `data:image/png;base64,iVBORw0KGgo=`} {
		if !strings.Contains(string(sent), want) {
			t.Errorf("%s is not in %s", want, sent)
		}
	}
	if !strings.Contains(loss.Header(), "willContinue") {
		t.Errorf("lost %q", loss.Header())
	}
}

// TestCallsWithoutResultGetOne: a picture that a tool returned may stand beside the results, as a part
// of the user. The call gets a result that says so, and later results without an id belong to later
// calls.
func TestCallsWithoutResultGetOne(t *testing.T) {
	t.Parallel()
	const picture = `{"inlineData":{"mimeType":"image/png","data":"iVBORw0KGgo="}},{"text":"returned this image"}`
	const call, result = `{"functionCall":{"name":"f","args":{}}}`, `{"functionResponse":{"name":"f","response":{"output":"one"}}}`
	const moved, none = "The result is in the next message.", "There is no result."
	for _, c := range []struct {
		name     string
		contents []string // of the model and the user in turn
		want     []string // the results
	}{
		{"a picture alone", []string{call, picture}, []string{moved}},
		{"of two calls", []string{call + "," + call, result + "," + picture}, []string{moved, "one"}},
		{"and a result later", []string{call, picture, call, result}, []string{moved, "one"}},
		{"another question", []string{call, `{"text":"never mind"}`}, []string{none}},
		{"a picture in a later turn", []string{call, `{"text":"never mind"}`, `{"text":"ok"}`, picture}, []string{none}},
		{"results in two contents", []string{call + "," + call, result, "", result}, []string{"one", "one"}},
		{"the last call", []string{call}, nil},
		{"an id twice", []string{`{"functionCall":{"id":"i","name":"f","args":{}}}`, `{"text":"more"}`, `{"functionCall":{"id":"i","name":"f","args":{}}}`}, []string{none}},
	} {
		body := `{"contents":[{"role":"user","parts":[{"text":"Hi"}]}`
		for i, parts := range c.contents {
			if parts != "" {
				body += `,{"role":"` + []string{"model", "user"}[i%2] + `","parts":[` + parts + `]}`
			}
		}
		r, err := Generate{}.DecodeRequest([]byte(body + "]}"))
		if err != nil {
			t.Fatal(err)
		}
		calls, ids := map[string]bool{}, map[string]bool{}
		var got []string
		for _, m := range r.Messages {
			for _, p := range m.Parts {
				switch {
				case p.Call != nil:
					calls[p.Call.ID] = true
				case p.Result != nil:
					got = append(got, p.Result.Parts[0].Text)
					ids[p.Result.CallID] = true
				}
			}
		}
		if strings.Join(got, "|") != strings.Join(c.want, "|") || c.want != nil && !maps.Equal(calls, ids) {
			t.Errorf("%s: %q of %v, want %q of %v", c.name, got, ids, c.want, calls)
		}
	}
}

// TestResponseTextIsUnwrapped: of a response that has only its text, the text is the result.
func TestResponseTextIsUnwrapped(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]struct {
		text   string
		failed bool
	}{
		`{"output":"x"}`:                        {"x", false},
		`{"error":"x"}`:                         {"x", true},
		`{"name":"f","content":"x"}`:            {"x", false},
		`{"error":"x","name":"f"}`:              {"x", true},
		`{"content":"x"}`:                       {`{"content":"x"}`, false},
		`{"name":"g","content":"x"}`:            {`{"name":"g","content":"x"}`, false},
		`{"name":"f","content":{"a":1}}`:        {`{"name":"f","content":{"a":1}}`, false},
		`{"name":"f","error":"x","output":"y"}`: {`{"name":"f","error":"x","output":"y"}`, false},
		`{"name":"f"}`:                          {`{"name":"f"}`, false},
		`"x"`:                                   {`"x"`, false},
	} {
		failed := false
		if got := responseText([]byte(raw), "f", &failed); got != want.text || failed != want.failed {
			t.Errorf("%s: %q %v", raw, got, failed)
		}
	}
}
