package guardrail

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"gateway/shared/guard"
	"gateway/shared/guard/chain"
	"gateway/shared/wire"
)

// TestDenialsQuoteNothing denies a text by each local check, before the target and after it.
// Neither the message nor the results that the client gets contain a word of the text.
func TestDenialsQuoteNothing(t *testing.T) {
	t.Parallel()
	texts := []string{strings.Join(fragments, " "), "alphabetagamma", "ALPHABETAGAMMA", "123-45 and hunter2, a@b.example"}
	denied := map[string]bool{}
	for _, row := range guard.Table() {
		for i, params := range forbidding[row.ID] {
			hook := func(mutates bool) chain.Hooks {
				raw := fmt.Sprintf(`{"name":"people","checks":[{"id":%q,"parameters":%s}],"deny":true}`, row.ID, params)
				redact := `{"regexReplace":{"rule":"/alpha|secret/gi","redactText":"#"}}`
				hooks := chain.Hooks{localKit.Prepare(guard.ReadHook(json.RawMessage(raw), false, false))}
				if mutates {
					hooks = append(hooks, localKit.Prepare(guard.ReadHook(json.RawMessage(redact), false, false)))
				}
				return hooks
			}
			for _, text := range texts {
				for _, mutates := range []bool{false, true} {
					s := &State{Enabled: true, hooks: found{out: hook(mutates)}, ctx: context.Background()}
					s.call = chain.Call{Kind: "chatComplete", Model: "m", Request: json.RawMessage(prompt), Now: time.Now}
					f := s.Output(append(wire.AppendJSONString([]byte(`{"choices":[{"message":{"role":"assistant","content":`), text), `}}]}`...))
					if f == nil {
						continue
					}
					denied[row.ID] = true
					if want := `The guardrail checks defined in the config failed. Guardrail "people", check ` + row.ID + "."; f.Message != want || f.Status() != 446 {
						t.Errorf("%s %d: %q", row.ID, i, f.Message)
					}
					told := strings.ReplaceAll(f.Message+string(s.WithResults([]byte(`{}`), true))+string(s.LastEvent("chatComplete", false)), row.ID, "")
					if !strings.Contains(told, `"verdict":false`) {
						t.Errorf("%s %d: no verdict in %s", row.ID, i, told)
					}
					for word := range strings.FieldsSeq(text) {
						if len(word) >= 6 && !slices.Contains([]string{"config", "guardrail"}, word) && strings.Contains(told, word) {
							t.Errorf("%s %d: %q is in %s", row.ID, i, word, told)
						}
					}
				}
			}
		}
	}
	if len(denied) < 15 {
		t.Errorf("only %d checks denied", len(denied))
	}
}

// TestResultsOfPassedResponsesKeepTheirData checks that the results of a response that is not
// denied contain their data.
func TestResultsOfPassedResponsesKeepTheirData(t *testing.T) {
	t.Parallel()
	s := &State{Enabled: true, ctx: context.Background(), hooks: found{out: chain.Hooks{localKit.Prepare(guard.ReadHook(json.RawMessage(`{"regexMatch":{"rule":"sunny"},"deny":true}`), false, false))}}}
	s.call = chain.Call{Kind: "chatComplete", Status: http.StatusOK, Request: json.RawMessage(prompt), Now: time.Now}
	if f := s.Output([]byte(`{"choices":[{"message":{"role":"assistant","content":"it is sunny"}}]}`)); f != nil {
		t.Fatal(f)
	}
	if told := string(s.WithResults([]byte(`{}`), true)); !strings.Contains(told, "it is sunny") {
		t.Error(told)
	}
}
