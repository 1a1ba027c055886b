package upstream

import (
	"slices"
	"strconv"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// UnsupportedField is the usual reason of a loss.
const UnsupportedField = "not accepted by this provider"

// SchemaInPrompt is the reason of a loss if only the system prompt requests JSON from a model.
const SchemaInPrompt = "requested by text, and the response is checked"

// Path is where a message (part nil) or one of its parts is in the client's body.
func Path(m *chat.Message, p *chat.Part) string { return m.Path(p) }

// ReportLoss reports every field of r that is set and not in carried, by the names of the
// OpenAI shape: temperature, top_p, top_k, frequency_penalty, presence_penalty, seed,
// logit_bias, logprobs, stop, n, user, service_tier, tools, response_format, reasoning,
// and those of r.Extra. It rejects what would make a response wrong if it were ignored:
// several answers, a forced tool, a format. Model, messages, max_tokens and stream are
// always carried.
func ReportLoss(r *chat.Request, loss *chat.Loss, carried ...string) error {
	r.ReportUnread(loss)
	r.ReportBelow(loss, chat.BelowCitations|chat.BelowCallSignatures)
	r.ReportLoss(loss, UnsupportedField, carried...)
	if c := r.Completion; c != nil && c.Suffix != "" {
		loss.Add("suffix", UnsupportedField)
	}
	if !slices.Contains(carried, "logprobs") {
		loseLogprobs(r, loss)
	}
	for _, x := range r.Extra {
		outer, _, _ := strings.Cut(x.Name, ".")
		switch {
		case x.Name != reasoning && slices.Contains(carried, x.Name):
		case outer == "modalities" && strings.Contains(string(x.Raw), `"audio"`):
			loss.AddResponse(x.Name, UnsupportedField)
		default:
			loss.Add(x.Name, UnsupportedField)
		}
	}
	if !slices.Contains(carried, reasoning) {
		loseReasoning(r, loss)
	}
	if err := oneResponse(r, slices.Contains(carried, "n")); err != nil {
		return err
	}
	if r.Format.Kind != chat.FormatText && !slices.Contains(carried, "response_format") {
		return fault.New(fault.UnsupportedResponse, "response_format", "This provider has no JSON mode; response_format must be text or absent")
	}
	if !slices.Contains(carried, "tools") {
		return loseTools(r, loss)
	}
	return nil
}

// reasoning represents how much the model may think, regardless of the field by which the
// client requested it. It is not a field of that name in the body, which some clients
// send.
const reasoning = "reasoning"

func loseLogprobs(r *chat.Request, loss *chat.Loss) {
	switch {
	case r.Logprobs.Set && r.Logprobs.Value:
		loss.AddResponse("logprobs", UnsupportedField)
	case r.Logprobs.Set:
		loss.Add("logprobs", UnsupportedField)
	}
	if r.TopLogprobs.Set {
		loss.Add("top_logprobs", UnsupportedField)
	}
	if c := r.Completion; c != nil && c.Logprobs.Set {
		loss.AddResponse("logprobs", UnsupportedField)
	}
}

func loseReasoning(r *chat.Request, loss *chat.Loss) {
	g := r.Reasoning
	if g.Effort != "" && g.Effort != "none" && g.Effort != "minimal" {
		loss.Add("reasoning_effort", UnsupportedField)
	}
	if g.Thinking >= chat.ThinkingBudget {
		loss.Add("thinking", UnsupportedField)
	}
}

// oneResponse rejects requests for several answers, for a provider that gives one.
func oneResponse(r *chat.Request, several bool) error {
	if r.N.Set && r.N.Value > 1 && !several {
		return fault.Invalid("n", "n must be 1 for this provider, which returns one response")
	}
	if c := r.Completion; c != nil {
		switch {
		case c.Prompts > 1:
			return fault.Invalid("prompt", "prompt must be one text for this provider, not a list of %d", c.Prompts)
		case c.BestOf.Set && c.BestOf.Value > 1:
			return fault.Invalid("best_of", "best_of must be 1 for this provider, which returns one response")
		}
	}
	return nil
}

func loseTools(r *chat.Request, loss *chat.Loss) error {
	if r.ToolChoice.Forced() {
		return fault.Invalid("tool_choice", "tool_choice forces a tool, but this provider accepts no tools")
	}
	list := "tools"
	if r.Legacy {
		list = "functions"
	}
	for i := range r.Tools {
		loss.Add(list+"["+strconv.Itoa(i)+"]", UnsupportedField)
	}
	if r.ToolChoice.Mode != chat.ToolsUnset && len(r.Tools) > 0 && r.ToolChoice.Mode != chat.ToolsNone {
		loss.Add("tool_choice", UnsupportedField)
	}
	if r.Parallel.Set && len(r.Tools) > 0 {
		loss.Add("parallel_tool_calls", UnsupportedField)
	}
	return nil
}

// Flat is a message as one text, for wires that have nothing else. Tool calls and results
// are written out and reported; media is rejected; reasoning and blocks of other
// providers are reported and omitted.
func Flat(m *chat.Message, loss *chat.Loss) (string, error) {
	if m.Name != "" && m.Role != chat.ToolRole {
		loss.Add(Path(m, nil)+".name", UnsupportedField)
	}
	var lines []string
	for i := range m.Parts {
		p := &m.Parts[i]
		if p.Cache != chat.NoCache {
			loss.Add(Path(m, p)+".cache_control", UnsupportedField)
		}
		switch p.Kind {
		case chat.Text, chat.Refusal:
			lines = append(lines, p.Text)
		case chat.Image, chat.Document, chat.Audio:
			if p.Kind == chat.Image && m.Role == chat.Assistant {
				loss.Add(Path(m, p), chat.ImageOfAssistant)
				continue
			}
			return "", fault.Invalid(Path(m, p), "%s must be text: this provider accepts nothing else", Path(m, p))
		case chat.Call:
			loss.Add(Path(m, p), "written as text")
			lines = append(lines, "Call of the tool "+p.Call.Name+" ("+p.Call.ID+"): "+p.Call.Arguments)
		case chat.Result:
			loss.Add(Path(m, nil), "written as text")
			inner := chat.Message{At: m.At, Parts: p.Result.Parts}
			text, err := Flat(&inner, loss)
			if err != nil {
				return "", err
			}
			lines = append(lines, "Result of the tool call "+p.Result.CallID+": "+text)
		default:
			loss.Add(Path(m, p), UnsupportedField)
		}
	}
	return strings.Join(lines, "\n"), nil
}

// Prompt is the text of a completion's one prompt.
func Prompt(r *chat.Request) string {
	if len(r.Messages) == 0 {
		return ""
	}
	return r.Messages[0].Text()
}

// Arguments are the arguments of a tool call as one JSON object; field names them in a
// refusal. Free text becomes {"input": text}.
func Arguments(c *chat.ToolCall, field string) (string, error) {
	args := strings.TrimSpace(c.Arguments)
	switch {
	case c.Custom:
		return string(append(wire.AppendJSONString([]byte(`{"input":`), c.Arguments), '}')), nil
	case args == "":
		return "{}", nil
	case !IsObject([]byte(args)):
		return "", fault.Invalid(field, "%s of the call %q must be a JSON object", field, c.ID)
	}
	return args, nil
}

// IsObject reports whether raw is one JSON object.
func IsObject(raw []byte) bool {
	if wire.KindOf(raw) != wire.KindObject {
		return false
	}
	d := wire.NewDecoder(raw)
	d.Skip()
	return d.End() == nil
}

// MovedPrompts reports the system prompts that come after the first turn, for providers
// that take them only before the conversation.
func MovedPrompts(r *chat.Request, loss *chat.Loss) {
	turns := false
	for i := range r.Messages {
		switch m := &r.Messages[i]; {
		case m.Role != chat.System && m.Role != chat.Developer:
			turns = true
		case turns:
			loss.Add(Path(m, nil), "moved to the beginning of the conversation: this provider accepts no system prompt within it")
		}
	}
}

// Turn is one turn of a conversation as text.
type Turn struct {
	Role chat.Role // User or Assistant
	Text string
}

// Turns are the turns of a conversation, for wires that only know texts of two speakers
// in turn. Neighbors of one speaker are joined, tool results are the user's words, and
// system prompts are collected separately. A conversation without any word of the user is
// rejected.
func Turns(r *chat.Request, loss *chat.Loss) (turns []Turn, system string, err error) {
	var rules, words []string // words of the last turn
	users := false
	end := func() {
		if n := len(turns); n > 0 {
			turns[n-1].Text = strings.Join(words, "\n\n")
		}
	}
	for i := range r.Messages {
		m := &r.Messages[i]
		text, err := Flat(m, loss)
		if err != nil {
			return nil, "", err
		}
		role := chat.User
		switch m.Role {
		case chat.System, chat.Developer:
			rules = append(rules, text)
			continue
		case chat.Assistant:
			role = chat.Assistant
		}
		users = users || role == chat.User
		if n := len(turns); n > 0 && turns[n-1].Role == role {
			words = append(words, text)
			continue
		}
		end()
		words = []string{text}
		turns = append(turns, Turn{Role: role})
	}
	end()
	if !users {
		return nil, "", fault.Invalid("messages", "messages must contain a message of the user with content: this provider requires one")
	}
	return turns, strings.Join(rules, "\n\n"), nil
}
