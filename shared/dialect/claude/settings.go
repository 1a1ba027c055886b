package claude

import (
	"strconv"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
)

const (
	// MaxMarkers bounds the cache markers of one request.
	MaxMarkers = 4
	// MinBudget is the least budget of thinking, in tokens.
	MinBudget = 1024
)

// CheckLimits tests the bound of tokens and the temperature. least is the
// least bound of tokens.
func CheckLimits(r *chat.Request, t *chat.Traits, least int64) error {
	if r.MaxTokens.Set && r.MaxTokens.Value < least {
		return fault.Invalid(r.MaxTokensField, "%s must be at least %d for this provider", r.MaxTokensField, least)
	}
	if v := r.Temperature; v.Set && v.Value > 1 && !t.ClampTemperature && t.Sampling != chat.SamplingNone {
		return fault.Invalid("temperature", "temperature must be between 0 and 1 for this provider")
	}
	return nil
}

// Stops returns the stop strings that Claude takes: those that are not only white space. The
// others are reported.
func Stops(r *chat.Request, loss *chat.Loss) []string {
	stops := make([]string, 0, len(r.Stop))
	for i, s := range r.Stop {
		if strings.TrimSpace(s) != "" {
			stops = append(stops, s)
			continue
		}
		field := "stop"
		if len(r.Stop) > 1 {
			field += "[" + strconv.Itoa(i) + "]"
		}
		loss.Add(field, "only white space, which this model rejects")
	}
	return stops
}

// Skipped returns how many cache markers are omitted, from the front: the last ones are
// retained. tools reports whether those of tools count.
func Skipped(r *chat.Request, tools bool) int {
	n := 0
	add := func(c chat.Cache) {
		if c != chat.NoCache {
			n++
		}
	}
	if tools {
		for i := range r.Tools {
			add(r.Tools[i].Cache)
		}
	}
	for i := range r.Messages {
		for j := range r.Messages[i].Parts {
			p := &r.Messages[i].Parts[j]
			add(p.Cache)
			if p.Result == nil {
				continue
			}
			for k := range p.Result.Parts {
				add(p.Result.Parts[k].Cache)
			}
		}
	}
	return max(0, n-MaxMarkers)
}

// JSON is the way in which a response is made JSON.
type JSON uint8

// The ways; the zero value is plain text.
const (
	NoJSON         JSON = iota
	Native              // by a field of the wire
	ByTool              // by the hidden tool
	SchemaInPrompt      // by a sentence in the system prompt
)

// PlanJSON selects the method for the format that r requests. byTool reports whether the
// hidden tool may replace a schema. thinks reports that the model thinks, which excludes
// a forced tool.
func PlanJSON(r *chat.Request, t *chat.Traits, byTool, thinks bool, loss *chat.Loss) (JSON, error) {
	for i := range r.Tools {
		if r.Tools[i].Name == chat.ResponseTool {
			return NoJSON, fault.Invalid("tools", "The tool name %s is reserved", chat.ResponseTool)
		}
	}
	r.HiddenResponse, r.UnboundJSON = false, false
	switch {
	case r.Format.Kind == chat.FormatJSON:
		r.UnboundJSON = true
		loss.Add("response_format", upstream.SchemaInPrompt)
		return SchemaInPrompt, nil
	case r.Format.Kind != chat.FormatSchema:
		return NoJSON, nil
	case t.Schema == chat.SchemaNative:
		return Native, nil
	case !byTool || t.NoTools:
		return NoJSON, fault.New(fault.UnsupportedResponse, "response_format", "This model cannot answer in a JSON schema")
	case thinks:
		return NoJSON, fault.New(fault.UnsupportedResponse, "response_format", "This model cannot answer in a JSON schema while it thinks")
	}
	r.HiddenResponse, r.UnboundJSON = true, true
	return ByTool, nil
}

// Choice is the tool choice to write, given what else the request wants: nothing is forced
// while the model thinks, and the hidden tool may be the only one. own counts the client's
// tools.
func Choice(r *chat.Request, way JSON, thinks bool, own int) chat.ToolChoice {
	c := r.ToolChoice
	if thinks && c.Forced() {
		c = chat.ToolChoice{Mode: chat.ToolsAuto}
	}
	switch {
	case way != ByTool:
	case own == 0 || c.Mode == chat.ToolsNone:
		c = chat.ToolChoice{Mode: chat.ToolsNamed, Name: chat.ResponseTool}
	case c.Mode != chat.ToolsNamed:
		c = chat.ToolChoice{Mode: chat.ToolsRequired}
	}
	return c
}

// FitBudget returns a budget of thinking tokens that Claude accepts: at least MinBudget
// and below maxTokens, which leaves tokens for the response. It reports a change. It
// returns 0 if maxTokens is too small for thinking.
func FitBudget(requested, maxTokens int64, loss *chat.Loss) int64 {
	most := maxTokens - 1
	if requested >= maxTokens {
		most = max(maxTokens/2, min(MinBudget, maxTokens-1))
	}
	if most < MinBudget {
		loss.Add("thinking", "max_tokens is too small for it")
		return 0
	}
	return chat.FitBudget(requested, MinBudget, most, loss)
}
