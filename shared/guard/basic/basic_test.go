package basic

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"gateway/shared/guard"
	"gateway/shared/guard/judge"
)

// TestChecksByExample: each check with a text that passes and its twin that fails, or
// that it cannot judge.
func TestChecksByExample(t *testing.T) {
	t.Parallel()
	const yes, no, bad = "passes", "fails", "cannot judge"
	const long = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"
	for _, c := range []struct{ id, params, text, want string }{
		{"regexMatch", `{"rule":"(?<=a)b"}`, "ab", yes}, {"regexMatch", `{"rule":"(?<=a)b"}`, "cb", no}, {"regexMatch", `{"rule":"b","not":true}`, "b", no},
		{"regexMatch", `{"rule":"^.$"}`, "😀", yes}, {"regexMatch", `{"rule":"[😀]"}`, "😁", no}, {"regexMatch", `{"rule":"b"}`, "", bad}, {"regexMatch", `{}`, "b", bad}, {"regexMatch", `{"rule":"^(a+)+$"}`, long, bad},
		{"regexReplace", `{"rule":"a"}`, "a", yes}, {"regexReplace", `{"rule":"a","failOnDetection":true}`, "a", no}, {"regexReplace", `{"rule":"("}`, "a", bad},
		{"sentenceCount", `{"minSentences":1,"maxSentences":2}`, "One. Two!", yes}, {"sentenceCount", `{"minSentences":1,"maxSentences":2}`, "", no}, {"sentenceCount", `{"minSentences":"1"}`, "One.", bad},
		{"wordCount", `{"minWords":2,"maxWords":2}`, " one\u00a0two\n", yes}, {"wordCount", `{"minWords":2,"maxWords":2}`, "one", no}, {"wordCount", `{"minWords":1.5}`, "one", bad}, {"wordCount", `{"minWords":0}`, "", bad},
		{"characterCount", `{"minCharacters":2,"maxCharacters":2}`, "😀", yes}, {"characterCount", `{"maxCharacters":1}`, "😀", no},
		{"jsonSchema", `{"schema":{"type":"object","required":["a"]}}`, "so: {\"a\":{\"b\":1}}", yes}, {"jsonSchema", `{"schema":{"type":"object","required":["a"]}}`, "```json\n{\"b\":1}\n```", no},
		{"jsonSchema", `{"schema":{"type":"object","required":["a"]},"not":true}`, "none", no}, {"jsonSchema", `{"schema":{"type":5}}`, "{}", bad},
		{"jsonKeys", `{"keys":["a","b"],"operator":"all"}`, "{\"b\":1} {\"a\":1,\"b\":2}", yes}, {"jsonKeys", `{"keys":["a"]}`, "none", no}, {"jsonKeys", `{"keys":["a"],"operator":"none"}`, "{\"a\":1}", no},
		{"jsonKeys", `{"keys":["a"],"operator":"some"}`, "{\"a\":1}", bad}, {"jsonKeys", `{"keys":[]}`, "{}", bad},
		{"contains", `{"words":["a","b"]}`, "xbx", yes}, {"contains", `{"words":["a","b"],"operator":"all"}`, "xbx", no}, {"contains", `{"words":["a"],"operator":"none"}`, "", yes}, {"contains", `{"words":["A"]}`, "a", no},
		{"contains", `{"words":[]}`, "a", no}, {"contains", `{"words":[],"operator":"all"}`, "a", yes}, {"contains", `{"words":[],"operator":"none"}`, "a", yes}, {"contains", `{"words":["a"],"operator":"some"}`, "a", no}, {"contains", `{"words":null}`, "a", bad}, {"contains", `{}`, "a", bad},
		{"containsCode", `{"format":"Python"}`, "```py\nx\n```", yes}, {"containsCode", `{"format":"Python"}`, "```go\nx\n```", no}, {"containsCode", `{"format":"Python","not":true}`, "none", yes},
		{"alluppercase", `{}`, "ABC 1é", yes}, {"alluppercase", `{}`, "ABc", no}, {"alluppercase", `{}`, "", bad},
		{"alllowercase", `{}`, "abc", yes}, {"alllowercase", `{}`, "aBc", no},
		{"endsWith", `{"suffix":"end"}`, "the end.", yes}, {"endsWith", `{"suffix":"end"}`, "the end!", no}, {"endsWith", `{}`, "x", bad},
		{"notNull", `{}`, "x", yes}, {"notNull", `{}`, " \n", no},
		{"modelwhitelist", `{"models":["m"]}`, "x", yes}, {"modelwhitelist", `{"models":["m"],"not":true}`, "x", no},
		{"modelRules", `{"rules":{"defaults":["z"],"metadata":{"team":{"ads":["m"]}}}}`, "x", yes}, {"modelRules", `{"rules":{"defaults":["z"]}}`, "x", no}, {"modelRules", `{"rules":{"defaults":["*"]}}`, "x", yes}, {"modelRules", `{"rules":{}}`, "x", bad},
		{"requiredMetadataKeys", `{"metadataKeys":["team"]}`, "x", yes}, {"requiredMetadataKeys", `{"metadataKeys":["team","user"]}`, "x", no}, {"requiredMetadataKeys", `{"metadataKeys":["user"],"operator":"none"}`, "x", yes},
		{"requiredMetadataKeyPairs", `{"metadataPairs":{"team":["ops","ads"]}}`, "x", yes}, {"requiredMetadataKeyPairs", `{"metadataPairs":{"team":"^o"},"matchType":"regex"}`, "x", no},
		{"allowedRequestTypes", `{"allowedTypes":"chatComplete, embed"}`, "x", yes}, {"allowedRequestTypes", `{"blockedTypes":["chatComplete"]}`, "x", no}, {"allowedRequestTypes", `{}`, "x", yes},
		{"allowedRequestTypes", `{"allowedTypes":["embed"],"blockedTypes":["embed"]}`, "x", bad},
		{"requestParametersCheck", `{"params":{"values":{"temperature":{"allowedValues":[0.5]}}}}`, "x", yes}, {"requestParametersCheck", `{"params":{"blockedKeys":["tools"]}}`, "x", no},
		{"blockedTools", `{"blockedFunctionNames":["f"]}`, "x", no}, {"blockedTools", `{"blockedFunctionNames":["g"]}`, "x", yes}, {"blockedTools", `{"blockedTypes":["a"],"allowedTypes":["a"]}`, "x", bad},
		{"requestParametersCheck", `{"tools":{"allowedFunctionNames":["g"]}}`, "x", no}, {"requestParametersCheck", `{"tools":{"blockedTypes":["a"],"allowedTypes":["a"]}}`, "x", bad},
	} {
		var params map[string]json.RawMessage
		if err := json.Unmarshal([]byte(c.params), &params); err != nil {
			t.Fatal(err)
		}
		s := &judge.Subject{Phase: guard.Before, Kind: "chatComplete", Model: "m", Texts: []string{c.text}, Metadata: map[string]string{"team": "ads"}, Request: []byte(`{"tools":[{"type":"function","function":{"name":"f"}}]}`)}
		v := Makers()["default."+c.id](params)(context.Background(), s)
		got := no
		switch {
		case v.Err != nil:
			got = bad
		case v.Pass:
			got = yes
		}
		if got != c.want {
			t.Errorf("%s %s %q: %s, want %s: %+v", c.id, c.params, c.text, got, c.want, v.Err)
		}
	}
}

// The errors of a schema are a list whenever there was JSON: clients count them.
func TestValidationErrorsAreAListForJSON(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"a":1}`: `"validationErrors":[]`, `{"b":1}`: `"validationErrors":[{"path":"/","message":`, "none": `"matchedJson":null,"not":false,"explanation":"The response has no JSON"}`,
	} {
		v := jsonSchema(map[string]json.RawMessage{"schema": json.RawMessage(`{"required":["a"]}`)})(context.Background(), &judge.Subject{Texts: []string{text}})
		if got, err := json.Marshal(v.Data); err != nil || !strings.Contains(string(got), want) {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}

func TestPrefixes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ kind, params, body, want string }{
		{"chatComplete", `{"prefix":"P "}`, `{"messages":[{"role":"user","content":"x"}]}`, `"content":"P x"`},
		{"chatComplete", `{"prefix":"P ","applyToRole":"system"}`, `{"messages":[{"role":"user","content":"x"}]}`, `[{"role":"system","content":"P "},{"role":"user"`},
		{"chatComplete", `{"prefix":"P ","addToExisting":false}`, `{"messages":[{"role":"user","content":"x"}]}`, `[{"role":"user","content":"P "},{"role":"user","content":"x"}]`},
		{"chatComplete", `{"prefix":"P ","onlyIfEmpty":true}`, `{"messages":[{"role":"user","content":"x"}]}`, ``},
		{"chatComplete", `{"prefix":"P "}`, `{"messages":[{"role":"user","content":[{"type":"image_url"},{"type":"text","text":"x"}]}]}`, `"text":"P x"`},
		{"complete", `{"prefix":"P "}`, `{"prompt":["x","y"]}`, `["P x","y"]`},
		{"messages", `{"prefix":"P ","applyToRole":"system"}`, `{"messages":[]}`, `"system":"P "`},
		{"createModelResponse", `{"prefix":"P "}`, `{"input":"x"}`, `"content":"P x"`},
	} {
		var params map[string]json.RawMessage
		_ = json.Unmarshal([]byte(c.params), &params)
		v := addPrefix(params)(context.Background(), &judge.Subject{Kind: c.kind, Request: []byte(c.body)})
		if !v.Pass || !strings.Contains(string(v.Body), c.want) || c.want == "" && v.Body != nil {
			t.Errorf("%s %s: %s, want %s", c.kind, c.params, v.Body, c.want)
		}
	}
}
