package chain

import (
	"encoding/json"
	"maps"
	"strings"
	"testing"
	"time"

	"gateway/shared/guard"
	"gateway/shared/guard/basic"
	"gateway/shared/guard/scan"
)

// quoting are parameters with which each local check reports as much as it can of a text.
var quoting = map[string][]string{
	"default.regexMatch":               {`{"rule":"(?<who>[a-z.]+)@(\\w+)"}`, `{"rule":"mary","not":true}`, `{"rule":"about.*"}`},
	"default.regexReplace":             {`{"rule":"about"}`},
	"default.sentenceCount":            {`{"maxSentences":0}`},
	"default.wordCount":                {`{"maxWords":1}`},
	"default.characterCount":           {`{"maxCharacters":1}`},
	"default.jsonSchema":               {`{"schema":{"type":"object"}}`, `{"schema":{"type":"object","properties":{"m":{"type":"integer"},"n":{"enum":[1]}}}}`, `{"schema":{"type":"object","properties":{"m":{"pattern":"^x"}}}}`},
	"default.jsonKeys":                 {`{"keys":["m"]}`, `{"keys":["x"]}`},
	"default.contains":                 {`{"words":["project-7"],"operator":"none"}`},
	"default.containsCode":             {`{"format":"Go"}`},
	"default.alluppercase":             {`{}`},
	"default.alllowercase":             {`{}`},
	"default.endsWith":                 {`{"suffix":"x"}`},
	"default.notNull":                  {`{}`},
	"default.addPrefix":                {`{"prefix":"Answer: "}`},
	"default.modelwhitelist":           {`{"models":["x"]}`},
	"default.modelRules":               {`{"rules":{"defaults":["x"]}}`},
	"default.requiredMetadataKeys":     {`{"metadataKeys":["x"]}`},
	"default.requiredMetadataKeyPairs": {`{"metadataPairs":{"team":"x"}}`},
	"default.allowedRequestTypes":      {`{"blockedTypes":["chatComplete"]}`},
	"default.requestParametersCheck":   {`{"params":{"values":{"user":{"allowedValues":["x"]}}}}`, `{"params":{"values":{"user":{"blockedValues":["mary.poppins@example.com"]}}}}`},
	"default.blockedTools":             {`{"blockedTypes":["function"]}`},
	"gateway.pii":                      {`{"categories":["EMAIL_ADDRESS"]}`, `{"categories":["EMAIL_ADDRESS","NAME"],"redact":true}`},
	"gateway.secrets":                  {`{}`},
	"gateway.promptInjection":          {`{}`},
	"gateway.moderateContent":          {`{"categories":["violence"]}`},
	"gateway.language":                 {`{"language":["deu_Latn"]}`},
	"gateway.gibberish":                {`{}`},
	"gateway.profanity":                {`{}`},
	"gateway.invisibleUnicode":         {`{}`},
	"gateway.systemPromptLeak":         {`{}`},
}

// TestRedactedTextIsInNoResult: no local check quotes what another check of the same phase
// has removed, whichever comes first, in one hook or in two, and whether one denies or not.
func TestRedactedTextIsInNoResult(t *testing.T) {
	t.Parallel()
	makers := basic.Makers()
	maps.Copy(makers, scan.Makers())
	kit := NewCheckRegistry(makers)
	const text = `{"m":"mary.poppins@example.com","n":5551234567} about project-7, mail Mary.Poppins@example.com`
	quoted, _ := json.Marshal(text)
	request := []byte(`{"model":"m","messages":[{"role":"system","content":"x"},{"role":"user","content":` + string(quoted) + `}]}`)
	answer := []byte(`{"choices":[{"message":{"role":"assistant","content":` + string(quoted) + `}}]}`)
	const redactor = `{"id":"default.regexReplace","parameters":{"rule":"/[A-Za-z.]+@[a-z.]+|5551234567/g","redactText":"***"}}`
	for _, row := range guard.Table() {
		if row.Category != guard.Basic && row.Category != guard.Model {
			continue
		}
		if len(quoting[row.ID]) == 0 {
			t.Errorf("%s: has no row here", row.ID)
		}
		for _, params := range quoting[row.ID] {
			one := `{"id":"` + row.ID + `","parameters":` + params + `}`
			ready := func(checks, more string) *Hook {
				return kit.Prepare(guard.ReadHook(json.RawMessage(`{"checks":[`+checks+`]`+more+`}`), true, false))
			}
			for name, hooks := range map[string]Hooks{
				"before it":          {ready(redactor+","+one, `,"deny":true`)},
				"after it":           {ready(one+","+redactor, `,"deny":true`)},
				"one by one":         {ready(one+","+redactor, `,"deny":true,"sequential":true`)},
				"in two hooks":       {ready(redactor, ""), ready(one, `,"deny":true`)},
				"the other way":      {ready(one, ``), ready(redactor, `,"deny":true`)},
				"in a hook that has": {ready(one+","+redactor, ""), ready(one+","+redactor, `,"deny":true`)},
			} {
				for _, phase := range []guard.Phase{guard.Before, guard.After} {
					in := &Call{Kind: "chatComplete", Model: "m", Request: request, Now: time.Now, Metadata: map[string]string{"team": "ads"}}
					if phase == guard.After {
						in.Response, in.Status = answer, 200
					}
					o := hooks.Run(t.Context(), phase, in)
					results := string((&Results{Before: o.Results, After: o.Results}).Append(nil, true))
					if !strings.Contains(params, "poppins") {
						for _, part := range []string{"poppins", "Poppins", "@example", "5551234567", `"mary`} {
							if strings.Contains(results, part) {
								t.Errorf("%s %s, %s, phase %d: %q is told: %s", row.ID, params, name, phase, part, results)
							}
						}
					}
					if strings.Contains(string(o.Body), "poppins") || o.Body == nil {
						t.Errorf("%s %s, %s, phase %d: the body is %s", row.ID, params, name, phase, o.Body)
					}
				}
			}
		}
	}
}

// TestSecondRunPreservesTheDenialOfAHook: its second run, on what another hook has left,
// does not take back that it failed.
func TestSecondRunPreservesTheDenialOfAHook(t *testing.T) {
	t.Parallel()
	o := Hooks{
		hook(`{"regexReplace":{"rule":"/hunter2/g","redactText":"***"}}`),
		hook(`{"regexMatch":{"rule":"hunter2","not":true},"regexReplace":{"rule":"/b/g","redactText":"c"},"deny":true}`),
	}.Run(t.Context(), guard.Before, call("hunter2 b"))
	if !o.Denied || !strings.Contains(string(o.Body), "*** c") {
		t.Errorf("denied is %t: %s", o.Denied, o.Body)
	}
}
