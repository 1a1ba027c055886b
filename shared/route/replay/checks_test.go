package replay

import (
	"encoding/json"
	"testing"
	"time"

	"gateway/shared/guard"
)

func TestGuardrailsTrip(t *testing.T) {
	t.Parallel()
	k := NewChecks(func() time.Time { return noon })
	add := func(name, raw string, phase guard.Phase) {
		k.Add(name, k.Kit().Prepare(guard.ReadHook(json.RawMessage(raw), phase == guard.Before, false)), phase)
	}
	add("no secrets", `{"default.contains":{"operator":"none","words":["secret"]},"deny":true}`, guard.Before)
	add("short", `{"default.characterCount":{"maxCharacters":40}}`, guard.Before)
	add("polite", `{"default.contains":{"operator":"none","words":["rude"]},"deny":true}`, guard.After)
	add("remote", `{"default.webhook":{"webhookURL":"https://a.example/"},"deny":true}`, guard.Before)
	body := func(text string) []byte {
		raw, _ := json.Marshal(map[string]any{"model": "gpt", "messages": []any{map[string]string{"role": "user", "content": text}}})
		return raw
	}
	answer := func(text string) []byte {
		raw, _ := json.Marshal(map[string]any{"choices": []any{map[string]any{"message": map[string]string{"role": "assistant", "content": text}}}})
		return raw
	}
	l := limitOf(t, `{"type":"cost","credit_limit":1,"conditions":[{"key":"api_key","value":"*"}],"group_by":[{"key":"api_key"}]}`, false)
	run := New(Changes{Checks: k, Limits: []*Limit{l}}, installation{})
	for i, b := range []Bodies{
		{body("hello"), answer("hello")},
		{body("my secret"), answer("hello")},
		{body("hello"), answer("a rude word")},
		{body("a text that is longer than forty characters are"), answer("hello")},
		{nil, nil},
		{body("hello"), nil},
	} {
		if err := run.Simulate(t.Context(), plain(i), b); err != nil {
			t.Fatal(err)
		}
	}
	stream := plain(6)
	stream.Stream = true
	if err := run.Simulate(t.Context(), stream, Bodies{body("my secret"), []byte("data: {}\n\n")}); err != nil {
		t.Fatal(err)
	}
	got := run.Result()
	for i, want := range []CheckSum{{Name: "no secrets", Run: 6, Failed: 2}, {Name: "short", Run: 6, Failed: 1}, {Name: "polite", Run: 3, Failed: 1}, {Name: "remote", Not: got.Guardrails[3].Not}} {
		if got.Guardrails[i] != want || want.Name == "remote" && want.Not == "" {
			t.Errorf("%+v, want %+v", got.Guardrails[i], want)
		}
	}
	// A denial before the call costs nothing; one after it does.
	if got.requests("tripped") != 4 || got.requests("denied") != 3 || got.After.Denied != 3 || got.After.Cost != 5*3e-6 || got.unjudged() != "no_body 2" || got.Limits[0].Counted != 7 {
		t.Errorf("%+v", got)
	}
}
