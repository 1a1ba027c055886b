package guard

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"gateway/shared/fault"
)

// public takes hosts that are called example.
func public(raw, field string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err != nil || !strings.HasSuffix(u.Hostname(), "example.com") {
		return nil, fault.New(fault.BlockedHost, field, "must be a public address")
	}
	return u, nil
}

func TestTableIsConsistent(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, c := range Table() {
		for _, id := range append([]string{c.ID}, c.Aliases...) {
			if seen[id] || !strings.Contains(id, ".") {
				t.Errorf("%s is no id or stands twice", id)
			}
			seen[id] = true
		}
		if c.Phase == 0 || c.Category == "" || c.Doc == "" {
			t.Errorf("%s does not say when it runs, what it needs, or what it is", c.ID)
		}
		names := map[string]bool{}
		for _, p := range c.Parameters() {
			if p.Name == "" || p.Type == 0 || names[p.Name] {
				t.Errorf("%s: parameter %q", c.ID, p.Name)
			}
			names[p.Name] = true
			if p.Default == nil {
				continue
			}
			raw, err := json.Marshal(p.Default)
			if err != nil {
				t.Fatal(err)
			}
			r := &reader{url: public}
			if r.value(&p, raw, p.Name); len(r.bad) > 0 {
				t.Errorf("%s: the standard of %s is refused: %v", c.ID, p.Name, r.bad)
			}
		}
	}
	for _, id := range strings.Fields(`default.jwt default.modelWhitelist default.isAllLowerCase default.alluppercase default.alllowercase default.regexMatch default.regexReplace default.sentenceCount
		default.wordCount default.characterCount default.jsonSchema default.jsonKeys default.contains default.validUrls default.containsCode default.webhook default.endsWith default.log default.notNull
		default.requiredMetadataKeys default.requiredMetadataKeyPairs default.allowedRequestTypes default.requestParametersCheck default.addPrefix default.inlineImageUrls default.modelRules default.blockedTools
		gateway.moderateContent gateway.language gateway.pii gateway.gibberish sydelabs.sydeguard aporia.validateProject pillar.scanPrompt pillar.scanResponse patronus.phi patronus.pii patronus.isConcise
		patronus.isHelpful patronus.isPolite patronus.noApologies patronus.noGenderBias patronus.noRacialBias patronus.retrievalAnswerRelevance patronus.toxicity patronus.custom mistral.moderateContent
		bedrock.guard promptfoo.guard promptfoo.pii promptfoo.harm acuvity.scan lasso.classify azure.contentSafety azure.pii panw-prisma-airs.intercept`) {
		if !seen[id] {
			t.Errorf("%s is missing", id)
		}
	}
}

// sample returns a value that a parameter takes.
func sample(p *Param) string {
	switch p.Name {
	case "jwks":
		return `{"keys":[{"kty":"RSA"}]}`
	case "secret":
		return `"0123456789abcdef"`
	}
	switch p.Type {
	case Text:
		if len(p.Enum) > 0 {
			return fmt.Sprintf("%q", p.Enum[0])
		}
		return `"1d"`
	case Pattern, Replaced:
		return `"a+"`
	case URL:
		return `"https://checks.example.com/x"`
	case Integer, Number:
		return fmt.Sprint(max(p.Min, 1))
	case Flag:
		return "true"
	case Texts, Listed, TextOrList:
		if len(p.Enum) > 0 {
			return fmt.Sprintf("[%q]", p.Enum[0])
		}
		return `["a"]`
	case Headers:
		return `["x-tenant"]`
	case Schema:
		return `{"type":"object"}`
	case Mapped:
		return `[]`
	case Object:
		if p.Min > 0 {
			return `{"a":"b"}`
		}
		var members []string
		for i := range p.Members {
			if m := &p.Members[i]; m.Required {
				members = append(members, fmt.Sprintf("%q:%s", m.Name, sample(m)))
			}
		}
		return "{" + strings.Join(members, ",") + "}"
	}
	return `{}`
}

// wrong are values that a parameter does not take.
func wrong(p *Param) (out []string) {
	switch p.Type {
	case Text, Pattern, Replaced, URL:
		out = []string{"5", "[]", "{}", "true"}
		if len(p.Enum) > 0 {
			out = append(out, `"nothing like it"`)
		}
		if p.Required {
			out = append(out, `""`)
		}
	case Integer:
		out = []string{`"5"`, "1.5", "true", "[]", "1e30"}
		if p.Min > 0 {
			out = append(out, fmt.Sprint(p.Min-1))
		}
		if p.Max > 0 {
			out = append(out, fmt.Sprint(p.Max+1))
		}
		out = append(out, "-1")
	case Number:
		out = []string{`"5"`, "true", "-0.1", "1.1"}
	case Flag:
		out = []string{`"true"`, "1", "[]"}
	case Texts:
		out = []string{"5", `"a"`, "[1]", "{}", `[""]`}
		if len(p.Enum) > 0 {
			out = append(out, `["nothing like it"]`)
		}
		if p.Min > 0 {
			out = append(out, "[]")
		}
	case Listed, TextOrList:
		out = []string{"5", "[1]", "{}"}
		if len(p.Enum) > 0 {
			out = append(out, `["nothing like it"]`, `"nothing like it"`)
		}
	case Headers:
		out = []string{"5", `["Authorization"]`, `["authorization"]`, `["x-api-key"]`, `["cookie"]`, `["x-gateway-config"]`, `["te"]`, `["metadata-flavor"]`, `["a b"]`, `[""]`}
	case Object:
		out = []string{"5", "[]", `"x"`}
	case Mapped:
		out = []string{"5", `"x"`, `{}`, `[5]`, `[{}]`, `[{"target_field":"credentials.nothing","secret_reference_id":"r"}]`, `[{"target_field":"credentials.apiKey"}]`, `[{"target_field":"x","secret_reference_id":"r","other":1}]`}
	case Schema:
		out = []string{"5", `"x"`, "[]", `{"type":"thing"}`, `{"pattern":"("}`, `{"$ref":"https://example.com/s.json"}`, `{"$ref":"#/nowhere"}`}
	}
	switch p.Type {
	case Pattern, Replaced:
		out = append(out, `"("`, `"[a"`, `"a{2,1}"`, `"*"`, `"\\"`)
	case URL:
		out = append(out, `"http://127.0.0.1/"`, `"nothing"`)
	}
	return out
}

// Each parameter of each check takes what it takes, and names itself where not.
func TestEveryParameterIsChecked(t *testing.T) {
	t.Parallel()
	parse := func(id string, params map[string]string) []fault.Detail {
		var parts []string
		for name, v := range params {
			parts = append(parts, fmt.Sprintf("%q:%s", name, v))
		}
		_, bad := ParseChecks(json.RawMessage(`[{"id":"`+id+`","parameters":{`+strings.Join(parts, ",")+`}}]`), public)
		return bad
	}
	names := func(bad []fault.Detail, name string) bool {
		return slices.ContainsFunc(bad, func(d fault.Detail) bool { return strings.HasPrefix(d.Field, "[0].parameters."+name) })
	}
	cases := 0
	for _, c := range Table() {
		whole := map[string]string{}
		for _, p := range c.Parameters() {
			if p.Required || c.ID == "default.jwt" && p.Name == "jwksUri" {
				whole[p.Name] = sample(&p)
			}
		}
		if bad := parse(c.ID, whole); len(bad) > 0 {
			t.Errorf("%s: %v", c.ID, bad)
			continue
		}
		for _, p := range c.Parameters() {
			with := func(v string) map[string]string {
				out := map[string]string{p.Name: v}
				for name, w := range whole {
					if name != p.Name {
						out[name] = w
					}
				}
				return out
			}
			if bad := parse(c.ID, with(sample(&p))); len(bad) > 0 {
				t.Errorf("%s: %s: %s is refused: %v", c.ID, p.Name, sample(&p), bad)
			}
			for _, v := range wrong(&p) {
				if bad := parse(c.ID, with(v)); !names(bad, p.Name) {
					t.Errorf("%s: %s: %s is not refused there: %v", c.ID, p.Name, v, bad)
				}
				cases++
			}
			if p.Required {
				if bad := parse(c.ID, with("null")); !names(bad, p.Name) {
					t.Errorf("%s: without %s: %v", c.ID, p.Name, bad)
				}
			}
		}
	}
	if cases < 1000 {
		t.Errorf("only %d cases", cases)
	}
}

func TestParseChecksReportsAllFaults(t *testing.T) {
	t.Parallel()
	for raw, fields := range map[string]string{
		`{}`: "", `[]`: "", `null`: "", `"x"`: "", `[1]`: "[0]", `[{}]`: "[0].id", `[{"id":5}]`: "[0].id", `[{"id":"default.nothing"}]`: "[0].id",
		`[{"id":"default.contains"}]`:                                             "[0].parameters.words",
		`[{"id":"default.contains","parameters":[]}]`:                             "[0].parameters",
		`[{"id":"default.alluppercase","is_enabled":"yes","name":5}]`:             "[0].name [0].is_enabled",
		`[{"id":"default.alluppercase","forward_headers":["Authorization","x"]}]`: "[0].forward_headers[0]",
		`[{"id":"default.regexMatch","parameters":{"rule":"("}},{"id":"x"},{"id":"default.wordCount","parameters":{"minWords":"a","not":1}}]`: "[0].parameters.rule [1].id [2].parameters.minWords [2].parameters.not",
		`[{"id":"default.wordCount","parameters":{"minWords":5,"maxWords":4}}]`:                                                               "[0].parameters.minWords",
		`[{"id":"default.allowedRequestTypes","parameters":{"allowedTypes":"embed, rerank","blockedTypes":["rerank"]}}]`:                      "[0].parameters.blockedTypes",
		`[{"id":"default.requestParametersCheck","parameters":{"tools":{"allowedTypes":["a"],"blockedTypes":["a"]}}}]`:                        "[0].parameters.tools.blockedTypes",
		`[{"id":"default.requestParametersCheck","parameters":{"params":{"values":{"n":{"blockedValues":1}}}}}]`:                              "[0].parameters.params.values.n.blockedValues",
		`[{"id":"default.modelRules","parameters":{"rules":{"metadata":{"team":{"a":"gpt"}}}}}]`:                                              "[0].parameters.rules.metadata.team.a",
		`[{"id":"default.requiredMetadataKeyPairs","parameters":{"metadataPairs":{"a":"("},"matchType":"regex"}}]`:                            "[0].parameters.metadataPairs.a",
		`[{"id":"default.jwt","parameters":{}}]`:                      "[0].parameters.jwksUri",
		`[{"id":"new-vendor.scan","parameters":1},{"id":"no check"}]`: "[0].parameters [1].id",
	} {
		_, bad := ParseChecks(json.RawMessage(raw), public)
		var got []string
		for _, d := range bad {
			got = append(got, d.Field)
		}
		if len(bad) == 0 || strings.Join(got, " ") != fields {
			t.Errorf("%s: %q, want %q", raw, got, fields)
		}
	}
}

func TestPatternsAreThoseOfJavaScript(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		rule, text string
		global     bool
		want       bool
	}{
		{`(?=a)a`, "ba", false, true}, {`(?<!x)a`, "xa", false, false}, {`^\d+$`, "１", false, false}, {`\bword\b`, "a word.", false, true}, {`(a)\1`, "aa", false, true},
		{`/A/i`, "a", false, true}, {`/a/gi`, "A", true, true}, {`/a.b/s`, "a\nb", false, true}, {`/^b/m`, "a\nb", false, true}, {`/a/x`, "/a/x", false, true}, {`a/b`, "a/b", false, true}, {`(?<n>a)\k<n>`, "aa", false, true},
	} {
		re, global, err := CompileReplaced(c.rule)
		if err != nil {
			t.Errorf("%s: %v", c.rule, err)
			continue
		}
		if ok, err := re.Match(t.Context(), c.text); err != nil || ok != c.want || global != c.global {
			t.Errorf("%s on %q: %v %v %v", c.rule, c.text, ok, global, err)
		}
	}
	re, err := CompilePattern(`^(a+)+$`)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := re.Match(t.Context(), strings.Repeat("a", 64)+"!"); err == nil {
		t.Error("a search without an end ends without an error")
	}
	if _, err := CompilePattern("secretpattern("); err == nil || strings.Contains(err.Error(), "secretpattern") {
		t.Errorf("%v", err)
	}
}

func TestSecretsOfChecksAreMasked(t *testing.T) {
	t.Parallel()
	checks, bad := ParseChecks(json.RawMessage(`[{"id":"aporia.validateProject","parameters":{"projectID":"p","credentials":{"apiKey":"sk-very-secret"}}},
		{"id":"default.webhook","parameters":{"webhookURL":"https://a.example.com","headers":{"X-Team":"team-secret"}}},{"id":"default.webhook","parameters":{"webhookURL":"https://a.example.com","headers":"{\"X\":\"text-secret\"}"}},
		{"id":"default.jsonKeys","parameters":{"keys":["a","b"]}},{"id":"default.jwt","parameters":{"jwksUri":"https://a.example.com","headerKey":"X-Token"}}]`), public)
	if len(bad) > 0 {
		t.Fatal(bad)
	}
	checks[0].Parameters["clientSecret"] = json.RawMessage(`"another-secret"`) // saved before unknown parameters were errors
	masked, found, bad := MaskChecks(checks)
	text, _ := json.Marshal(masked)
	if !found || len(bad) > 0 || strings.Contains(string(text), "secret\"") || strings.Contains(string(text), "very-secret") || strings.Contains(string(text), "text-secret") {
		t.Errorf("%s %v", text, bad)
	}
	for _, plain := range []string{`"keys":["a","b"]`, `"headerKey":"X-Token"`, `"projectID":"p"`} {
		if !strings.Contains(string(text), plain) {
			t.Errorf("%s is masked: %s", plain, text)
		}
	}
	if _, _, bad := MaskChecks(masked); len(bad) != 4 {
		t.Errorf("masked ones are taken: %v", bad)
	}
	if whole, _ := json.Marshal(checks); !strings.Contains(string(whole), "sk-very-secret") {
		t.Error("the checks themselves were masked")
	}
}

func TestActionsHaveDefaults(t *testing.T) {
	t.Parallel()
	a, bad := ParseActions(json.RawMessage(`{}`))
	if len(bad) > 0 || a.Deny || a.Async || a.OnFail.Feedback.Value != -5 || a.OnSuccess.Feedback.Value != 5 || a.OnFail.Feedback.Weight != 1 {
		t.Errorf("%+v %v", a, bad)
	}
	for raw, deny := range map[string]bool{`{"deny":true}`: true, `{"onFail":"block"}`: true, `{"onFail":"warn"}`: false, `{"onFail":"block","deny":false}`: false, `{"message":"x"}`: false} {
		if a, bad := ParseActions(json.RawMessage(raw)); len(bad) > 0 || a.Deny != deny {
			t.Errorf("%s: %+v %v", raw, a, bad)
		}
	}
	for raw, field := range map[string]string{
		`[]`: "", `{"deny":1}`: "deny", `{"async":"x"}`: "async", `{"on_fail":5}`: "on_fail", `{"on_fail":{"feedback":5}}`: "on_fail.feedback", `{"onFail":"maybe"}`: "onFail",
		`{"on_fail":{"feedback":{"value":11}}}`: "on_fail.feedback.value", `{"on_fail":{"feedback":{"value":1.5}}}`: "on_fail.feedback.value",
		`{"on_success":{"feedback":{"weight":2}}}`: "on_success.feedback.weight", `{"on_success":{"feedback":{"metadata":5}}}`: "on_success.feedback.metadata",
	} {
		if _, bad := ParseActions(json.RawMessage(raw)); len(bad) != 1 || bad[0].Field != field {
			t.Errorf("%s: %v, want %s", raw, bad, field)
		}
	}
}

func FuzzParseChecks(f *testing.F) {
	f.Add(`[{"id":"default.regexMatch","parameters":{"rule":"a(b"}}]`)
	f.Add(`[{"id":"default.jsonSchema","parameters":{"schema":{"type":"object","pattern":"["}}}]`)
	f.Add(`[{"id":"default.modelRules","parameters":{"rules":{"metadata":{"a":{"b":["c"]}}}}}]`)
	f.Fuzz(func(t *testing.T, raw string) {
		checks, bad := ParseChecks(json.RawMessage(raw), public)
		if len(bad) == 0 && len(checks) == 0 {
			t.Error("nothing, and nothing is wrong with it")
		}
		if len(bad) == 0 {
			MaskChecks(checks)
		}
	})
}

// TestUnknownParametersAreErrors: of every check, in every form in which it is saved or
// comes with a request; the error names the parameter and those that there are. A stored
// guardrail with one is still read.
func TestUnknownParametersAreErrors(t *testing.T) {
	t.Parallel()
	const wrong = "entities"
	for _, row := range Table() {
		params := map[string]json.RawMessage{wrong: json.RawMessage(`["EMAIL_ADDRESS"]`)}
		var names []string
		for _, p := range row.Parameters() {
			names = append(names, p.Name)
			params[p.Name] = json.RawMessage(`null`)
		}
		raw, _ := json.Marshal(params)
		listed := json.RawMessage(`[{"id":"` + row.ID + `","parameters":` + string(raw) + `}]`)
		inline := json.RawMessage(`{"` + row.ID + `":` + string(raw) + `}`)
		inList := json.RawMessage(`{"checks":` + string(listed) + `}`)
		_, saved := ParseChecks(listed, public)
		for form, bad := range map[string][]fault.Detail{
			".parameters": saved, "config, short": CheckHook(inline, public), "config, listed": CheckHook(inList, public),
			"request, short": UnknownParameters(inline), "request, listed": UnknownParameters(inList),
		} {
			n := 0
			for _, d := range bad {
				if strings.HasSuffix(d.Field, "."+wrong) && strings.Contains(d.Message, strings.Join(names, ", ")) {
					n++
				} else if strings.Contains(d.Message, "is not a parameter") {
					t.Errorf("%s, %s: %+v", row.ID, form, d)
				}
			}
			if n != 1 {
				t.Errorf("%s, %s: %d errors name it: %v", row.ID, form, n, bad)
			}
		}
		if h := ReadHook(inline, true, false); len(h.Checks) != 1 || h.Checks[0].ID != row.ID {
			t.Errorf("%s: %+v", row.ID, h)
		}
	}
}
