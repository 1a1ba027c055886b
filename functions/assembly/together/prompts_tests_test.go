package together_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"gateway/shared/prompt"
	"gateway/shared/store"
	"gateway/shared/testkit/admintest"
)

const aTable = `[{"name":"greets","variables":{"name":"Ada"},"assertions":[{"type":"contains","value":"Ada"}]},{"name":"is short","render_only":true,"assertions":[{"type":"regex","value":"^.{1,99}$"}]}]`

// ran stores what a run of the prompt's saved table found of a version, as the data
// plane does.
func (h *promptInstallation) ran(id string, version int64, failed ...string) {
	ctx, sc := context.Background(), store.Scope{Org: admintest.Org, Workspace: h.One}
	head, _, err := h.Resources.Get(ctx, sc, prompt.KindPrompt, id)
	var p, v prompt.Prompt
	if err == nil {
		err = json.Unmarshal(head.Body, &p)
	}
	rec, _, verr := h.Resources.Version(ctx, sc, prompt.KindPrompt, id, version)
	if err == nil && verr == nil {
		err = json.Unmarshal(rec.Body, &v)
	}
	digest, derr := prompt.Digest(&v, p.Tests)
	if err != nil || verr != nil || derr != nil {
		panic(fmt.Sprint(err, verr, derr))
	}
	run := prompt.Tested{Digest: digest, At: time.Now(), Cases: 2, Failed: failed}
	if err := (prompt.Tests{Store: h.Resources.Store()}).Save(ctx, sc, id, version, &run); err != nil {
		panic(err)
	}
}

func TestVersionsThatFailTheirTestsAreNotPublished(t *testing.T) {
	t.Parallel()
	h := newPromptInstallation(t)
	at := h.withVersions()
	id := strings.TrimPrefix(at, "/prompts/")
	label := h.Do("GET", "/labels", key, nil).OK().Text("data", "0", "id")
	experiment := at + "/experiments/" + h.Do("POST", at+"/experiments", key, halves).OK().Text("id")
	refused := func(message string) {
		t.Helper()
		for _, c := range []struct{ method, path, body string }{
			{"PUT", at + "/makeDefault", `{"version":2}`}, {"PUT", at + "/versions/2", `{"label_id":"` + label + `"}`}, {"POST", experiment + "/start", ""},
		} {
			var body any
			if c.body != "" {
				body = c.body
			}
			if got := h.Do(c.method, c.path, key, body).RequireFault(409, "AB07", "version"); !strings.Contains(string(got.Body), message) {
				t.Errorf("%s %s: %s, want %q", c.method, c.path, got.Body, message)
			}
		}
		if got := h.Do("GET", at, key, nil).OK(); got.At("prompt_version") != 1.0 {
			t.Errorf("published: %s", got.Body)
		}
	}
	h.Do("PUT", at, key, `{"require_tests":true}`).OK()
	refused("has none")
	h.Do("PUT", at, key, `{"tests":`+aTable+`}`).OK()
	got := h.Do("GET", at, key, nil).OK()
	if got.At("require_tests") != true || got.At("tests", "0", "assertions", "0", "value") != "Ada" || got.At("prompt_version") != 1.0 {
		t.Errorf("%s", got.Body)
	}
	refused("were not run")
	h.ran(id, 1)
	h.ran(id, 2, "greets")
	refused("1 of 2 tests failed: greets")
	h.ran(id, 2)
	h.Do("PUT", at, key, `{"tests":`+strings.Replace(aTable, "Ada", "Bob", 2)+`}`).OK()
	refused("were changed")
	h.ran(id, 1)
	h.ran(id, 2)
	h.Do("PUT", at+"/versions/2", key, `{"label_id":"`+label+`"}`).OK()
	h.Do("PUT", at+"/versions/3", key, `{"label_id":null}`).OK() // takes none on
	h.Do("POST", experiment+"/start", key, nil).OK()
	h.Do("POST", experiment+"/promote", key, `{"version":2}`).OK()
	h.Do("PUT", at+"/makeDefault", key, `{"version":3}`).RequireFault(409, "AB07", "version")
	h.Do("PUT", at, key, `{"require_tests":false}`).OK()
	h.Do("PUT", at+"/makeDefault", key, `{"version":3}`).OK()
}

func TestBadTablesOfTestsAreRefused(t *testing.T) {
	t.Parallel()
	h := newPromptInstallation(t)
	at := "/prompts/" + h.create("").OK().Text("id")
	one := func(assertion string) string {
		return `{"tests":[{"name":"a","assertions":[` + assertion + `]}]}`
	}
	for _, c := range []struct{ body, field string }{
		{one(`{"type":"is","value":"x"}`), "tests[0].assertions[0].type"}, {one(`{"type":"contains"}`), "tests[0].assertions[0].value"},
		{one(`{"type":"contains","value":""}`), "tests[0].assertions[0].value"}, {one(`{"type":"contains","value":7}`), "tests[0].assertions[0].value"},
		{one(`{"type":"regex","value":"("}`), "tests[0].assertions[0].value"}, {one(`{"type":"json_schema","value":{"type":"thing"}}`), "tests[0].assertions[0].value"},
		{one(`{"type":"json_schema","value":"{}"}`), "tests[0].assertions[0].value"}, {one(`{"type":"max_latency_ms","value":0}`), "tests[0].assertions[0].value"},
		{one(`{"type":"max_latency_ms","value":5,"on":"rendered"}`), "tests[0].assertions[0].type"}, {one(`{"type":"equals","value":"x","on":"moon"}`), "tests[0].assertions[0].on"},
		{one(``), "tests[0].assertions"}, {`{"tests":[{"assertions":[{"type":"equals","value":"x"}]}]}`, "tests[0].name"}, {`{"tests":[7]}`, "tests[0]"}, {`{"tests":{}}`, "tests"},
		{`{"tests":[{"name":"a","variables":[],"assertions":[{"type":"equals","value":"x"}]}]}`, "tests[0].variables"},
		{`{"tests":[{"name":"a","render_only":true,"assertions":[{"type":"equals","value":"x","on":"answer"}]}]}`, "tests[0].assertions[0].on"},
		{`{"tests":[{"name":"a","assertions":[{"type":"equals","value":"x"}]},{"name":"a","assertions":[{"type":"equals","value":"x"}]}]}`, "tests[1].name"},
		{`{"tests":[` + strings.Repeat(`{"name":"a","assertions":[{"type":"equals","value":"x"}]},`, 50) + `{"name":"b","assertions":[{"type":"equals","value":"x"}]}]}`, "tests"},
		{one(strings.Repeat(`{"type":"equals","value":"`+strings.Repeat("x", 9000)+`"},`, 8) + `{"type":"equals","value":"x"}`), "tests"}, {`{"require_tests":"yes"}`, "require_tests"},
	} {
		h.Do("PUT", at, key, c.body).RequireFault(400, "AB01", c.field)
	}
	// All at once.
	got := h.Do("PUT", at, key, `{"tests":[{"name":"a","assertions":[{"type":"regex","value":"("},{"type":"equals","value":7}]}]}`)
	if !strings.Contains(string(got.Body), "assertions[0].value") || !strings.Contains(string(got.Body), "assertions[1].value") {
		t.Errorf("%s", got.Body)
	}
}
