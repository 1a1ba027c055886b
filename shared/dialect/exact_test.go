package dialect_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"gateway/shared/chat"
	"gateway/shared/testkit/golden"
)

// exactArguments are arguments that break when numbers become floats, when fields are
// sorted, or when text is escaped in another way.
const exactArguments = `{"zeta":12345678901234567890,"small":0.10000000000000000001,"alpha":{"b":[1,2],"a":-0},"text":"é \u2028 \"x\""}`

// TestArgumentsAndNamesAreExact: the arguments of a call reach every client, and go back to
// every provider, with their numbers and the order of their fields. A tool whose name a
// provider does not accept keeps its name for the client.
func TestArgumentsAndNamesAreExact(t *testing.T) {
	const name = "files.read: é"
	bodies := map[string]string{
		"openai":    `"messages":[{"role":"user","content":"go"},{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":%[1]q,"arguments":%[2]q}}]},{"role":"tool","tool_call_id":"c1","content":"x"}],"tools":[{"type":"function","function":{"name":%[1]q,"parameters":{"type":"object","properties":{"zeta":{"type":"integer","maximum":12345678901234567890}}}}}]`,
		"anthropic": `"max_tokens":100,"messages":[{"role":"user","content":"go"},{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":%[1]q,"input":%[2]s}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"x"}]}],"tools":[{"name":%[1]q,"input_schema":{"type":"object","properties":{"zeta":{"type":"integer","maximum":12345678901234567890}}}}]`,
		"responses": `"input":[{"role":"user","content":"go"},{"type":"function_call","call_id":"c1","name":%[1]q,"arguments":%[2]q},{"type":"function_call_output","call_id":"c1","output":"x"}],"tools":[{"type":"function","name":%[1]q,"parameters":{"type":"object","properties":{"zeta":{"type":"integer","maximum":12345678901234567890}}}}]`,
	}
	for client, body := range bodies {
		for provider, traits := range loopTraits {
			if client == provider {
				continue
			}
			t.Run(client+"-"+provider, func(t *testing.T) {
				body := fmt.Sprintf(`{"model":"m",`+body+`}`, name, exactArguments)
				r, err := golden.Clients[client].DecodeRequest([]byte(body))
				if err != nil {
					t.Fatalf("%v: %s", err, body)
				}
				up, err := chat.Translate(nil, golden.Clients[client], golden.Providers[loopWire(provider)], r, &traits, &chat.Loss{})
				if err != nil {
					t.Fatal(err)
				}
				if sent := bytes.Contains(up, []byte(exactArguments)) || bytes.Contains(up, []byte(quoted(exactArguments))); !sent && !containsText(t, up, exactArguments) {
					t.Errorf("the arguments were changed on their way:\n%s\n%s", exactArguments, up)
				}
				if !bytes.Contains(up, []byte(`"maximum":12345678901234567890`)) {
					t.Errorf("the schema was changed on its way: %s", up)
				}
				taken := name
				for own, clients := range r.ToolNames {
					if clients == name {
						taken = own
					}
				}
				s := &script{calls: []string{exactArguments}, stop: loopStops[provider]}
				plain, stream := scripts[loopWire(provider)](s, 0)
				plain, stream = strings.ReplaceAll(plain, `"now"`, quoted(taken)), strings.ReplaceAll(stream, `"now"`, quoted(taken))
				o := &chat.Options{Strict: true, ID: "gw-1", Model: "m", Created: 1, Request: r, Origin: golden.Providers[loopWire(provider)].Name()}
				answer, err := golden.Providers[loopWire(provider)].DecodeResponse([]byte(plain), &traits)
				if err != nil {
					t.Fatal(err)
				}
				checkExactCall(t, "whole", golden.Clients[client].EncodeResponse(nil, answer, o), name)
				out, m, _ := golden.Stream(t, golden.Clients[client], golden.Providers[loopWire(provider)], &chat.Traits{}, o, []byte(stream), len(stream))
				if m.Err != nil {
					t.Fatal(m.Err)
				}
				golden.CheckStream(t, golden.Clients[client].Name(), out, false)
				a := &answered{plain: out}
				switch client {
				case "openai":
					checkExactCall(t, "streamed", []byte(openAITurn(t, a, true)), name)
				case "anthropic":
					checkExactCall(t, "streamed", []byte(messagesTurn(t, a, true)), name)
				default:
					checkExactCall(t, "streamed", []byte(itemsTurn(t, a, true)), name)
				}
			})
		}
	}
}

// checkExactCall wants the call of a tool with its name and its arguments, as
// JSON or as text that holds it.
func checkExactCall(t *testing.T, how string, raw []byte, name string) {
	t.Helper()
	if !containsText(t, raw, name) {
		t.Errorf("%s: the client's own name is lost: %s", how, raw)
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, raw); err != nil {
		t.Fatalf("%v: %s", err, raw)
	}
	if !bytes.Contains(compact.Bytes(), []byte(exactArguments)) && !containsText(t, raw, exactArguments) {
		t.Errorf("%s: the arguments were changed on their way:\n%s\n%s", how, exactArguments, raw)
	}
}

// containsText reports whether a string of a body is text.
func containsText(t *testing.T, raw []byte, text string) bool {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	for {
		token, err := d.Token()
		if err != nil {
			return false
		}
		if s, ok := token.(string); ok && s == text {
			return true
		}
	}
}
