package guard

import (
	"encoding/json"
	"errors"
	"fmt"

	"gateway/shared/resource"
)

// KindGuardrail is the kind of saved guardrails of an organisation or a workspace.
const KindGuardrail resource.Kind = "GUARDRAIL"

// SealedChecks is the name under which the checks of a guardrail are sealed together if they
// contain secrets. The record's body then shows them masked.
const SealedChecks = "checks"

// MaxChecks is the number of checks of one guardrail.
const MaxChecks = 50

// Guardrail is the stored form of a guardrail: the body of its record, and of each
// of its versions.
type Guardrail struct {
	Checks  []Applied `json:"checks,omitempty"`
	Actions Actions   `json:"actions"`
	// Sent are checks and actions as the client wrote them, for reads; secrets are masked.
	// Empty in guardrails from before they were stored.
	Sent Sent `json:"sent,omitzero"`
}

// Sent is JSON as a client wrote it.
type Sent struct {
	Checks  json.RawMessage `json:"checks,omitempty"`
	Actions json.RawMessage `json:"actions,omitempty"`
}

// checkMembers are the members of a check that reads repeat.
var checkMembers = []string{"id", "name", "is_enabled", "forward_headers"}

// Echo returns the checks that a client sent, with the members that it sent and the
// parameters of the masked ones. raw has passed ParseChecks.
func Echo(raw json.RawMessage, masked []Applied) (json.RawMessage, error) {
	var sent []map[string]json.RawMessage
	if err := json.Unmarshal(raw, &sent); err != nil {
		return nil, err
	}
	out := make([]map[string]any, len(sent))
	for i, one := range sent {
		out[i] = make(map[string]any, len(one))
		for _, name := range checkMembers {
			if v, ok := one[name]; ok {
				out[i][name] = v
			}
		}
		if p, ok := one["parameters"]; ok {
			out[i]["parameters"] = masked[i].Parameters
			if string(p) == "null" {
				out[i]["parameters"] = nil
			}
		}
	}
	return json.Marshal(out)
}

// Applied is a check of a guardrail with its parameters.
type Applied struct {
	ID         string                     `json:"id"`
	Name       string                     `json:"name,omitempty"`
	Enabled    bool                       `json:"is_enabled"`
	Parameters map[string]json.RawMessage `json:"parameters"`
	Forward    []string                   `json:"forward_headers,omitempty"`
}

// Actions configure the reaction to each outcome.
type Actions struct {
	Deny       bool   `json:"deny"`
	Async      bool   `json:"async"`
	Sequential bool   `json:"sequential"`
	Soft       bool   `json:"soft_deny_200"` // a denial has status 200
	OnSuccess  Branch `json:"on_success"`
	OnFail     Branch `json:"on_fail"`
	// Stream sets when an output guardrail judges a stream: after, hold or window. Window is
	// its width in characters.
	Stream When `json:"stream,omitempty"`
	Window int  `json:"stream_window,omitempty"`
	// Unread names the routes that are allowed although the guardrail denies and their bodies
	// cannot be read: request types, or path prefixes below the base URL.
	Unread []string `json:"allow_unread,omitempty"`
}

// Branch is the reaction to one outcome.
type Branch struct {
	Feedback Feedback `json:"feedback"`
}

// Feedback is recorded on the request's trace.
type Feedback struct {
	Value    int64           `json:"value"`
	Weight   float64         `json:"weight"`
	Metadata json.RawMessage `json:"metadata"`
}

// StandardActions returns the default actions.
func StandardActions() Actions {
	none := json.RawMessage(`""`)
	return Actions{OnSuccess: Branch{Feedback{5, 1, none}}, OnFail: Branch{Feedback{-5, 1, none}}}
}

// ErrSealed is returned for checks with secrets that have not been opened.
var ErrSealed = errors.New("guard: the checks are sealed")

// Saved is a version of a guardrail in the form that requests use. It is immutable and shared.
type Saved struct {
	ID, Slug, Name, Status, VersionID string
	Guardrail
}

// Decode decodes a record or one of its versions. opened are its secrets, see
// resource.Record.OpenSecrets; they are required if the checks are sealed.
func Decode(rec resource.Record, opened map[string][]byte) (*Saved, error) {
	s := &Saved{ID: rec.ID, Slug: rec.Slug, Name: rec.Name, Status: rec.Status, VersionID: rec.VersionID}
	if err := json.Unmarshal(rec.Body, &s.Guardrail); err != nil {
		return nil, fmt.Errorf("guard: stored guardrail %s: %w", rec.ID, err)
	}
	if !rec.HasSecret(SealedChecks) {
		return s, nil
	}
	whole, ok := opened[SealedChecks]
	if !ok {
		return nil, ErrSealed
	}
	s.Checks = nil
	if err := json.Unmarshal(whole, &s.Checks); err != nil {
		return nil, fmt.Errorf("guard: sealed checks of guardrail %s: %w", rec.ID, err)
	}
	return s, nil
}
