package openai_test

import (
	"encoding/json"
	"strings"
	"testing"

	"gateway/shared/chat"
	"gateway/shared/dialect/hosts"
	"gateway/shared/testkit/golden"
)

// thinkingRequests are requests of clients that say whether the model is to think.
var thinkingRequests = map[string]struct{ client, body string }{
	"messages off":  {"anthropic", `{"model":"MODEL","max_tokens":64000,"thinking":{"type":"disabled"},"messages":[{"role":"user","content":"Hi"}]}`},
	"messages on":   {"anthropic", `{"model":"MODEL","max_tokens":64000,"thinking":{"type":"enabled","budget_tokens":31999},"messages":[{"role":"user","content":"Hi"}]}`},
	"responses off": {"responses", `{"model":"MODEL","reasoning":{"effort":"none"},"input":"Hi"}`},
	"responses on":  {"responses", `{"model":"MODEL","reasoning":{"effort":"high"},"input":"Hi"}`},
	"gemini off":    {"gemini", `{"contents":[{"role":"user","parts":[{"text":"Hi"}]}],"generationConfig":{"thinkingConfig":{"thinkingBudget":0}}}`},
}

// TestThinkingIsSwitchedInTheFormOfTheHost asks every host of the table, in the shapes of
// several clients: what the client said reaches the host in its own form, or is reported.
func TestThinkingIsSwitchedInTheFormOfTheHost(t *testing.T) {
	for _, host := range hosts.ThinkingControls {
		for name, req := range thinkingRequests {
			client := golden.AllClients()[req.client]
			model := "gpt-5.2"
			r, err := client.DecodeRequest([]byte(strings.Replace(req.body, "MODEL", model, 1)))
			if err != nil {
				t.Fatal(name, err)
			}
			r.Model = model
			loss := chat.Loss{}
			sent, err := chat.Translate(nil, client, golden.Providers["openai"], r, &chat.Traits{Provider: host.Host, MaxTokensField: "max_completion_tokens"}, &loss)
			if err != nil {
				t.Fatal(host.Host, name, err)
			}
			var got struct {
				Thinking        struct{ Type string }
				EnableThinking  *bool  `json:"enable_thinking"`
				ThinkingBudget  int64  `json:"thinking_budget"`
				ReasoningEffort string `json:"reasoning_effort"`
			}
			if err := json.Unmarshal(sent, &got); err != nil {
				t.Fatal(err)
			}
			off := strings.HasSuffix(name, " off")
			ok := false
			switch host.Switch {
			case hosts.ThinkingType:
				ok = off && got.Thinking.Type == "disabled" && got.ReasoningEffort == "" ||
					name == "messages on" && got.Thinking.Type == "enabled" && (host.Efforts == "" || got.ReasoningEffort == "high") && strings.Contains(loss.Header(), "budget_tokens") ||
					name == "responses on" && got.ReasoningEffort == "high"
			case hosts.EnableThinking:
				ok = off && got.EnableThinking != nil && !*got.EnableThinking ||
					name == "messages on" && *got.EnableThinking && got.ThinkingBudget == 31999 ||
					name == "responses on" && got.ReasoningEffort == "high"
			case hosts.EffortOnly:
				ok = off && got.ReasoningEffort == "none" || !off && got.ReasoningEffort == "high" && (name != "messages on" || strings.Contains(loss.Header(), "budget_tokens"))
			}
			if !ok {
				t.Errorf("%s, %s: %s, lost %s", host.Host, name, sent, loss.Header())
			}
		}
	}
}

// TestThinkingThatCannotBeSwitchedIsReported asks hosts without a row, and models that do not
// know how not to think.
func TestThinkingThatCannotBeSwitchedIsReported(t *testing.T) {
	for _, c := range []struct{ provider, model, effort string }{
		{"", "qwen3", ""}, {"vllm", "qwen3", ""}, {"openai", "o3", "low"}, {"openai", "gpt-5", "minimal"}, {"openai", "openai/gpt-5-pro", "high"}, {"openai", "other", ""},
	} {
		req := thinkingRequests["messages off"]
		client := golden.AllClients()[req.client]
		r, err := client.DecodeRequest([]byte(req.body))
		if err != nil {
			t.Fatal(err)
		}
		r.Model = c.model
		loss := chat.Loss{}
		sent, err := chat.Translate(nil, client, golden.Providers["openai"], r, &chat.Traits{Provider: c.provider}, &loss)
		if err != nil {
			t.Fatal(err)
		}
		effort := `"reasoning_effort":"` + c.effort + `"`
		if !strings.Contains(loss.Header(), "thinking.type") || c.effort != "" && !strings.Contains(string(sent), effort) {
			t.Errorf("%s %s: %s, lost %q", c.provider, c.model, sent, loss.Header())
		}
	}
}
