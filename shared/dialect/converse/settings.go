package converse

import (
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// passed are fields of a client's body that go to the wire as they are, under the same or
// another name.
var passed = map[string]struct {
	to   string
	kind wire.Kind
}{
	"guardrailConfig":                       {"guardrailConfig", wire.KindObject},
	"guardrail_config":                      {"guardrailConfig", wire.KindObject},
	"performanceConfig":                     {"performanceConfig", wire.KindObject},
	"performance_config":                    {"performanceConfig", wire.KindObject},
	"requestMetadata":                       {"requestMetadata", wire.KindObject},
	"metadata":                              {"requestMetadata", wire.KindObject},
	"additionalModelResponseFieldPaths":     {"additionalModelResponseFieldPaths", wire.KindArray},
	"additional_model_response_field_paths": {"additionalModelResponseFieldPaths", wire.KindArray},
}

// additionalNames are the names of the object that goes to the model itself.
var additionalNames = map[string]bool{"additionalModelRequestFields": true, "additional_model_request_fields": true}

// claudeMembers are fields that only Claude gets.
var claudeMembers = map[string]bool{"anthropic_beta": true, "anthropic_version": true}

// carried names what this wire has a place for; everything else is reported.
func carried(e *requestEncoder) []string {
	names := []string{"temperature", "top_p", "stop", "service_tier", "reasoning", "response_format", "tools"}
	for _, x := range e.r.Extra {
		_, known := passed[x.Name]
		if known || additionalNames[x.Name] || claudeMembers[x.Name] && claudes(e) {
			names = append(names, x.Name)
		}
	}
	switch e.t.Family {
	case familyAnthropic:
		names = append(names, "top_k", "user")
	case familyCohere:
		names = append(names, "top_k", "frequency_penalty", "presence_penalty", "seed", "logit_bias")
	case familyAI21:
		names = append(names, "frequency_penalty", "presence_penalty")
		for _, x := range e.r.Extra {
			switch x.Name {
			case "frequencyPenalty", "presencePenalty", "countPenalty":
				names = append(names, x.Name)
			}
		}
	case familyAmazon, familyMistral:
		names = append(names, "top_k")
	case "":
		names = append(names, "top_k")
	}
	return names
}

// claudes reports whether the model is Claude, or may be Claude because it follows an
// ARN.
func claudes(e *requestEncoder) bool { return e.t.Family == familyAnthropic || e.t.Family == "" }

// tiers are the service tiers of this provider by the client's word.
var tiers = map[string]string{"auto": "default", "default": "default", "standard": "default", "standard_only": "default", "priority": "priority", "flex": "flex", "reserved": "reserved"}

// settings writes the fields beside the conversation.
func settings(e *requestEncoder) error {
	written := map[string]bool{}
	for _, x := range e.r.Extra {
		to, ok := passed[x.Name]
		if !ok {
			continue
		}
		if got := wire.KindOf(x.Raw); got != to.kind {
			return fault.Invalid(x.Name, "%s must be %s, not %s", x.Name, to.kind, got)
		}
		switch {
		case written[to.to]:
			e.loss.Add(x.Name, to.to+" was given too")
			continue
		case to.to == "requestMetadata" && !metadataFits(x.Raw):
			e.loss.Add(x.Name, "this provider accepts up to 16 short texts")
			continue
		}
		written[to.to] = true
		e.Raw(to.to, x.Raw)
	}
	if tier := e.r.ServiceTier; tier != "" {
		if own := tiers[tier]; own != "" {
			e.Key("serviceTier")
			e.Open('{')
			e.Str("type", own)
			e.Close('}')
		} else {
			e.loss.Add("service_tier", notTaken)
		}
	}
	outputConfig(e)
	return nil
}

// metadataFits reports whether raw is what requestMetadata takes: up to 16 texts
// of up to 256 letters, digits and some signs.
func metadataFits(raw []byte) bool {
	d := wire.NewDecoder(raw)
	n, fits := 0, true
	for key := range d.Object {
		n++
		fits = fits && len(key) > 0 && metadataText(string(key)) && d.Kind() == wire.KindString && metadataText(d.Str())
	}
	return fits && n > 0 && n <= 16 && d.End() == nil
}

func metadataText(s string) bool {
	if len(s) > 256 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune(" \t\n:_@$#=/+,-.", rune(c)) {
			return false
		}
	}
	return true
}

// additional writes additionalModelRequestFields: what the client put there, and what only
// this maker's models know. The client's own fields win.
func additional(e *requestEncoder) error {
	start := len(e.B)
	e.Key("additionalModelRequestFields")
	e.Open('{')
	open := len(e.B)
	own := map[string]bool{}
	for _, x := range e.r.Extra {
		if !additionalNames[x.Name] {
			continue
		}
		if wire.KindOf(x.Raw) != wire.KindObject {
			return fault.Invalid(x.Name, "%s must be %s", x.Name, wire.KindObject)
		}
		d := wire.NewDecoderAt(x.Raw, x.Name)
		for key := range d.Object {
			member := string(key)
			if own[member] {
				return fault.Invalid(x.Name+"."+member, "%s.%s is sent twice", x.Name, member)
			}
			own[member] = true
			e.Text(member)
			e.B = append(append(e.B, ':'), d.Raw()...)
		}
		if err := d.End(); err != nil {
			return err
		}
	}
	body := e.Object
	e.Object = *upstream.Begin(nil)
	ofFamily(e)
	e.Close('}')
	made := e.B
	e.Object = body
	d := wire.NewDecoder(made)
	for key := range d.Object {
		if !own[string(key)] {
			e.Text(string(key))
			e.B = append(append(e.B, ':'), d.Raw()...)
		}
	}
	if len(e.B) == open {
		e.B = e.B[:start]
		return nil
	}
	e.Close('}')
	return nil
}

// ofFamily writes what the models of one maker know.
func ofFamily(e *requestEncoder) {
	r := e.r
	switch e.t.Family {
	case familyAnthropic:
		ofClaude(e)
		return
	case familyCohere:
		e.IntIf("k", r.TopK)
		e.FloatIf("frequency_penalty", r.FrequencyPenalty)
		e.FloatIf("presence_penalty", r.PresencePenalty)
		e.IntIf("seed", r.Seed)
		if r.LogitBias != nil {
			e.Raw("logitBias", r.LogitBias)
		}
	case familyAI21:
		penalty(e, "frequencyPenalty", "frequency_penalty", r.FrequencyPenalty)
		penalty(e, "presencePenalty", "presence_penalty", r.PresencePenalty)
		for _, x := range r.Extra {
			switch x.Name {
			case "frequencyPenalty", "presencePenalty", "countPenalty":
				e.Raw(x.Name, x.Raw)
			}
		}
	case familyAmazon:
		if r.TopK.Set {
			e.Key("inferenceConfig")
			e.Open('{')
			e.IntIf("topK", r.TopK)
			e.Close('}')
		}
		if e.think.On() {
			e.Key("reasoningConfig")
			e.Open('{')
			e.Str("type", "enabled")
			e.Str("maxReasoningEffort", e.think.Effort)
			e.Close('}')
		}
	case familyMistral:
		e.IntIf("top_k", r.TopK)
		e.StrIf("reasoning_effort", e.think.Effort)
	case "":
		e.IntIf("top_k", r.TopK)
		e.ListIf("anthropic_beta", betas(e))
		forwardThinking(e)
	default: // of OpenAI, and of makers that use its names
		e.StrIf("reasoning_effort", e.think.Effort)
	}
	foreignTools(e) // reported: Claude alone has such tools
	if r.Parallel.Set && !r.Parallel.Value && !e.flat {
		e.loss.Add("parallel_tool_calls", "not accepted by this model")
	}
}

// forwardThinking forwards the thinking settings in the format of the client's dialect.
func forwardThinking(e *requestEncoder) {
	if e.think.Mode >= chat.ThinkingBudget {
		claudeThinking(e)
	}
	switch {
	case e.think.Effort == "":
	case e.r.Dialect == messages:
		claudeEffort(e)
	default:
		e.Str("reasoning_effort", e.think.Effort)
	}
}

// penalty writes a penalty in the form of this maker's older models. The newer ones take a
// number.
func penalty(e *requestEncoder, old, current string, v chat.Opt[float64]) {
	if !v.Set {
		return
	}
	if strings.Contains(e.r.Model, "jamba") {
		e.FloatIf(current, v)
		return
	}
	e.Key(old)
	e.Open('{')
	e.FloatIf("scale", v)
	e.Close('}')
}

// ofClaude writes the fields that only Claude knows.
func ofClaude(e *requestEncoder) {
	r := e.r
	if topK := r.TopK; topK.Set {
		switch {
		case e.t.Sampling == chat.SamplingNone:
			e.loss.Add("top_k", "not accepted by this model")
		case e.think.On():
			e.loss.Add("top_k", "not accepted with thinking")
		default:
			e.IntIf("top_k", topK)
		}
	}
	switch e.think.Mode {
	case chat.ThinkingOff:
		e.Raw("thinking", []byte(`{"type":"disabled"}`))
	case chat.ThinkingBudget, chat.ThinkingAdaptive:
		claudeThinking(e)
	}
	claudeEffort(e)
	if r.User != "" {
		e.Key("metadata")
		e.Open('{')
		e.Str("user_id", r.User)
		e.Close('}')
	}
	for _, x := range r.Extra {
		if x.Name == "anthropic_version" {
			e.Raw(x.Name, x.Raw)
		}
	}
	e.ListIf("anthropic_beta", betas(e))
	foreignTools(e)
	if single(e) {
		claudeChoice(e)
	}
}

func claudeThinking(e *requestEncoder) {
	e.Key("thinking")
	e.Open('{')
	switch {
	case e.r.Reasoning.UnknownType != "":
		e.Str("type", e.r.Reasoning.UnknownType)
	case e.think.Mode == chat.ThinkingAdaptive:
		e.Str("type", "adaptive")
	default:
		e.Str("type", "enabled")
	}
	if e.think.Budget > 0 {
		e.Int("budget_tokens", e.think.Budget)
	}
	e.StrIf("display", e.r.Reasoning.Display)
	e.Close('}')
}

func claudeEffort(e *requestEncoder) {
	if e.think.Effort != "" {
		e.Key("output_config")
		e.Open('{')
		e.Str("effort", e.think.Effort)
		e.Close('}')
	}
}

// betas are the beta features that the client and the credential ask for. The
// client may write a list, or a text with commas.
func betas(e *requestEncoder) []string {
	var all []string
	add := func(list string) {
		for _, one := range strings.Split(list, ",") {
			if one = strings.TrimSpace(one); one != "" && !contains(all, one) {
				all = append(all, one)
			}
		}
	}
	for _, x := range e.r.Extra {
		if x.Name != "anthropic_beta" {
			continue
		}
		d := wire.NewDecoder(x.Raw)
		if d.Kind() == wire.KindArray {
			for range d.Array {
				add(upstream.OptString(d))
			}
		} else {
			add(upstream.OptString(d))
		}
	}
	for _, beta := range e.t.Betas {
		add(beta)
	}
	return all
}

func contains(list []string, s string) bool {
	for _, one := range list {
		if one == s {
			return true
		}
	}
	return false
}
