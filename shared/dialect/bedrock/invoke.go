package bedrock

import (
	"net/http"
	"strconv"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/ai21"
	"gateway/shared/dialect/cohere"
	"gateway/shared/dialect/converse"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/pricing"
)

// Invoke is InvokeModel of the text models that Converse does not support: Cohere's first
// Command models and AI21's Jurassic-2. Their bodies are the makers' own, with one prompt;
// a conversation becomes a text of its turns.
type Invoke struct{}

var (
	_ chat.Provider     = Invoke{}
	_ chat.HeaderReader = Invoke{}
)

// Name implements chat.Dialect.
func (Invoke) Name() string { return "bedrock.invoke" }

// The makers of these models.
const (
	familyAI21   = "ai21"
	familyCohere = "cohere"
)

// EncodeRequest implements chat.RequestWriter.
func (Invoke) EncodeRequest(dst []byte, r *chat.Request, t *chat.Traits, loss *chat.Loss) ([]byte, error) {
	for _, x := range r.Extra {
		// A response that no guardrail has seen must not look like one that passed it.
		if strings.HasPrefix(x.Name, "guardrailConfig") || strings.HasPrefix(x.Name, "guardrail_config") {
			return dst, fault.Invalid(x.Name, "%s is not accepted by this model; use a model that is served by Converse", x.Name)
		}
	}
	o := upstream.Begin(dst)
	var err error
	switch t.Family {
	case familyAI21:
		err = encodeJurassic(o, r, loss)
	default:
		err = encodeCommand(o, r, loss)
	}
	if err != nil {
		return dst, err
	}
	o.Close('}')
	return o.B, loss.Err()
}

// Bounds of the models.
const (
	maxCommandTemperature = 5
	maxCommandTokens      = 4096
	maxCommandResponses   = 5
	maxJurassicTokens     = 8191
)

// commandMembers are fields that only Command models know.
var commandMembers = []string{"truncate", "return_likelihoods"}

// encodeCommand writes the body of a Command model. A stream must be requested in the
// body too: otherwise the response arrives in one piece.
func encodeCommand(o *upstream.Object, r *chat.Request, loss *chat.Loss) error {
	switch {
	case r.N.Set && r.N.Value > maxCommandResponses:
		return fault.Invalid("n", "n must be at most %d for this model", maxCommandResponses)
	case r.Temperature.Set && r.Temperature.Value > maxCommandTemperature:
		return fault.Invalid("temperature", "temperature must be between 0 and %d for this model", maxCommandTemperature)
	}
	if err := upstream.ReportLoss(r, loss, append([]string{"temperature", "top_p", "top_k", "stop", "n"}, commandMembers...)...); err != nil {
		return err
	}
	prompt, err := promptOf(r, loss)
	if err != nil {
		return err
	}
	o.Str("prompt", prompt)
	o.IntIf("max_tokens", atMost(r, maxCommandTokens, loss))
	o.FloatIf("temperature", r.Temperature)
	o.FloatIf("p", r.TopP)
	o.IntIf("k", r.TopK)
	o.ListIf("stop_sequences", r.Stop)
	o.IntIf("num_generations", r.N)
	chat.Fields(r.Extra).Pass(o.Raw, commandMembers...)
	if r.Stream {
		o.Bool("stream", true)
	}
	return nil
}

// jurassicMembers are fields that only Jurassic models know.
var jurassicMembers = []string{"countPenalty"}

// encodeJurassic writes the body of a Jurassic model.
func encodeJurassic(o *upstream.Object, r *chat.Request, loss *chat.Loss) error {
	switch {
	case r.Temperature.Set && r.Temperature.Value > 1:
		return fault.Invalid("temperature", "temperature must be between 0 and 1 for this model")
	case r.PresencePenalty.Value < 0:
		return fault.Invalid("presence_penalty", "presence_penalty must not be below 0 for this model")
	case r.FrequencyPenalty.Value < 0:
		return fault.Invalid("frequency_penalty", "frequency_penalty must not be below 0 for this model")
	}
	if err := upstream.ReportLoss(r, loss, append([]string{"temperature", "top_p", "presence_penalty", "frequency_penalty", "stop"}, jurassicMembers...)...); err != nil {
		return err
	}
	prompt, err := promptOf(r, loss)
	if err != nil {
		return err
	}
	o.Str("prompt", prompt)
	o.IntIf("maxTokens", atMost(r, maxJurassicTokens, loss))
	o.FloatIf("temperature", r.Temperature)
	o.FloatIf("topP", r.TopP)
	o.ListIf("stopSequences", r.Stop)
	ai21.Penalty(o, "presencePenalty", r.PresencePenalty)
	ai21.Penalty(o, "frequencyPenalty", r.FrequencyPenalty)
	chat.Fields(r.Extra).Pass(o.Raw, jurassicMembers...)
	return nil
}

// atMost is the bound of output tokens, lowered to what the model can give: it rejects
// more, and no response can be longer.
func atMost(r *chat.Request, limit int64, loss *chat.Loss) chat.Opt[int64] {
	n := r.MaxTokens
	if n.Set && n.Value > limit {
		n.Value = limit
		loss.Add(r.MaxTokensField, "cut to "+strconv.FormatInt(limit, 10)+", the most of this model")
	}
	return n
}

// speakers are the words that begin each turn in a prompt.
var speakers = map[chat.Role]string{chat.Assistant: "Assistant"}

// promptOf returns the prompt of a completion unchanged. A conversation becomes a text
// with a line for each system prompt and turn, and at its end the beginning of the
// requested turn.
func promptOf(r *chat.Request, loss *chat.Loss) (string, error) {
	if r.Completion != nil {
		return upstream.Prompt(r), nil
	}
	upstream.MovedPrompts(r, loss)
	turns, system, err := upstream.Turns(r, loss)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	if system != "" {
		b.WriteString("System: " + system + "\n")
	}
	for _, t := range turns {
		name := speakers[t.Role]
		if name == "" {
			name = "User"
		}
		b.WriteString(name + ": " + t.Text + "\n")
	}
	b.WriteString("Assistant:")
	return b.String(), nil
}

// DecodeResponse implements chat.ResponseReader. A Command model reports its usage only in
// headers, see ReadHeader.
func (Invoke) DecodeResponse(body []byte, t *chat.Traits) (*chat.Response, error) {
	if t.Family == familyAI21 {
		return ai21.Complete{}.DecodeResponse(body, t)
	}
	return cohere.Generate{}.DecodeResponse(body, t)
}

// ReadHeader implements chat.HeaderReader. It reads the service's own counts, which are billed.
func (Invoke) ReadHeader(h http.Header, r *chat.Response) {
	for name, class := range map[string]pricing.Class{"X-Amzn-Bedrock-Input-Token-Count": pricing.Input, "X-Amzn-Bedrock-Output-Token-Count": pricing.Output} {
		if n, err := strconv.ParseInt(h.Get(name), 10, 64); err == nil && n >= 0 {
			r.Usage.Set(class, n)
		}
	}
	if r.ID == "" {
		r.ID = h.Get("X-Amzn-Requestid")
	}
}

// DecodeError implements chat.ErrorReader.
func (Invoke) DecodeError(status int, h http.Header, body []byte) *fault.Fault {
	return converse.Converse{}.DecodeError(status, h, body)
}

// NewStreamDecoder implements chat.ResponseReader. Jurassic models do not stream.
func (w Invoke) NewStreamDecoder(t *chat.Traits) chat.StreamDecoder {
	if t.Family == familyAI21 {
		return upstream.NewBufferedDecoder(w, t)
	}
	return new(commandDecoder)
}
