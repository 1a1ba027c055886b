package chain

import (
	"strings"
	"testing"
	"time"

	"gateway/shared/guard"
)

// TestEachChoiceIsJudged runs local checks on responses with two alternatives, in each format
// that has them. A check judges each choice as if it were the only one, wherever it stands.
func TestEachChoiceIsJudged(t *testing.T) {
	t.Parallel()
	formats := map[string][2]string{
		"chatComplete":    {`{"message":{"role":"assistant","content":"TEXT"}}`, "choices"},
		"complete":        {`{"text":"TEXT"}`, "choices"},
		"generateContent": {`{"content":{"role":"model","parts":[{"text":"TEXT"}]}}`, "candidates"},
		"generate":        {`{"text":"TEXT"}`, "generations"},
	}
	for kind, f := range formats {
		response := func(texts ...string) string {
			var list []string
			for _, text := range texts {
				list = append(list, strings.Replace(f[0], "TEXT", text, 1))
			}
			return `{"` + f[1] + `":[` + strings.Join(list, ",") + `]}`
		}
		for name, c := range map[string]struct {
			check, one, other string
			denied            bool
			now               string // the changed texts
		}{
			"a word":               {`"contains":{"words":["hunter2"],"operator":"none"}`, "fine", "hunter2", true, ""},
			"a required word":      {`"contains":{"words":["yes"]}`, "yes", "no", true, ""},
			"required in both":     {`"contains":{"words":["yes"]}`, "yes", "yes", false, ""},
			"a pattern":            {`"regexMatch":{"rule":"hunter[0-9]","not":true}`, "fine", "hunter2", true, ""},
			"a required pattern":   {`"regexMatch":{"rule":"^[a-z]+$"}`, "fine", "2", true, ""},
			"a pattern across two": {`"regexMatch":{"rule":"fine\\s+too","not":true}`, "fine", "too", false, ""},
			"counts":               {`"wordCount":{"maxWords":2}`, "two words", "two words", false, ""},
			"too many":             {`"wordCount":{"maxWords":2}`, "two words", "three words here", true, ""},
			"empty":                {`"notNull":{}`, "fine", "", true, ""},
			"an end":               {`"endsWith":{"suffix":"end"}`, "no", "the end", true, ""},
			"redaction":            {`"regexReplace":{"rule":"hunter2","redactText":"x"}`, "hunter2 a", "b hunter2", false, response("x a", "b x")},
			"one redaction":        {`"regexReplace":{"rule":"hunter2","redactText":"x"}`, "a", "hunter2", false, response("a", "x")},
		} {
			for _, swapped := range []bool{false, true} {
				one, other := c.one, c.other
				if swapped {
					if c.now != "" {
						continue
					}
					one, other = other, one
				}
				body := response(one, other)
				o := Hooks{hook(`{` + c.check + `,"deny":true}`)}.Run(t.Context(), guard.After, &Call{Kind: kind, Response: []byte(body), Status: 200, Now: time.Now})
				if o.Denied != c.denied || string(o.Body) != c.now {
					t.Errorf("%s, %s: %s: denied %t, body %s, %+v", kind, name, body, o.Denied, o.Body, o.Results[0].Checks)
				}
			}
		}
	}
	calls := `{"choices":[{"message":{"content":null,"tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}},{"message":{"content":CONTENT}}]}`
	for content, denied := range map[string]bool{`"fine"`: false, `null`: true} {
		o := Hooks{hook(`{"notNull":{},"deny":true}`)}.Run(t.Context(), guard.After, &Call{Kind: "chatComplete", Response: []byte(strings.Replace(calls, "CONTENT", content, 1)), Status: 200, Now: time.Now})
		if o.Denied != denied {
			t.Errorf("a call beside %s: denied %t", content, o.Denied)
		}
	}
}
