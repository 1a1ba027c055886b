package prompt

import (
	"encoding/json"
	"fmt"
	"slices"

	"gateway/shared/fault"
	"gateway/shared/fault/bound"
	"gateway/shared/resource"
)

// The kinds of records.
const (
	KindPrompt     resource.Kind = "PROMPT"
	KindPartial    resource.Kind = "PARTIAL"
	KindCollection resource.Kind = "COLLECTION"
	KindLabel      resource.Kind = "LABEL"
	// KindShare is the kind of shares with other workspaces: records of the organisation with
	// the id and the slug of the prompt.
	KindShare resource.Kind = "PROMPTSHARE"
)

// Types of templates.
const (
	Chat       = "chat"
	Completion = "completion"
)

// Bounds of names and texts, in characters.
const (
	MaxName   = 255
	maxNumber = 128 // tools and functions
)

// Prompt is the stored form of a prompt: the body of its record, and of each of
// its versions.
type Prompt struct {
	CollectionID string `json:"collection_id,omitempty" max:"255" doc:"Collection, by id or slug."`
	// String is the template: JSON text of messages, or plain text.
	String     string                     `json:"string,omitempty" min:"1" max:"300000" doc:"The template: JSON text of the messages, or the text of a completion."`
	Parameters map[string]json.RawMessage `json:"parameters,omitempty" max:"100" doc:"Parameters of the request, such as max_tokens."`
	Model      string                     `json:"model,omitempty" max:"255"`
	VirtualKey string                     `json:"virtual_key,omitempty" max:"255" doc:"Saved provider, by slug."`
	Functions  []json.RawMessage          `json:"functions,omitempty" max:"128"`
	Tools      []json.RawMessage          `json:"tools,omitempty" max:"128"`
	ToolChoice json.RawMessage            `json:"tool_choice,omitempty"`
	Metadata   map[string]json.RawMessage `json:"template_metadata,omitempty" max:"100" doc:"template_type is chat or completion."`
	Raw        int                        `json:"is_raw_template,omitempty" max:"1" doc:"1 renders the template before it is parsed as JSON."`
	// Description is what the version is about.
	Description string `json:"version_description,omitempty" max:"1024"`

	// Tests are the prompt's saved table. RequireTests says that a version must have passed
	// it before it is published. Both belong to the record, not to its versions.
	Tests        []Case `json:"tests,omitempty" max:"50"`
	RequireTests bool   `json:"require_tests,omitempty" doc:"A version can be published, labeled or used in an experiment only after it has passed the saved tests."`
}

// Type is chat or completion.
func (p *Prompt) Type() string {
	var said string
	if raw, ok := p.Metadata["template_type"]; ok && json.Unmarshal(raw, &said) == nil && said != "" {
		return said
	}
	var list []json.RawMessage
	if p.Raw == 1 || json.Unmarshal([]byte(p.String), &list) == nil {
		return Chat
	}
	return Completion
}

// Validate gives all errors of the prompt's own fields. The caller must look up what the
// prompt names (partials, collection, provider).
func (p *Prompt) Validate() []fault.Detail {
	bad := bound.Check(p)
	bad = append(bad, objects("functions", p.Functions)...)
	bad = append(bad, objects("tools", p.Tools)...)
	if len(p.ToolChoice) > 0 && p.ToolChoice[0] != '"' && p.ToolChoice[0] != '{' && string(p.ToolChoice) != "null" {
		bad = append(bad, fault.Detail{Field: "tool_choice", Message: "must be a string or an object"})
	}
	if t := p.Type(); t != Chat && t != Completion {
		return append(bad, fault.Detail{Field: "template_metadata.template_type", Message: "must be chat or completion"})
	}
	if p.String == "" {
		return bad
	}
	_, wrong := p.Compile()
	return append(bad, wrong...)
}

func objects(field string, list []json.RawMessage) (bad []fault.Detail) {
	for i, raw := range list {
		if len(raw) == 0 || raw[0] != '{' {
			bad = append(bad, fault.Detail{Field: fmt.Sprintf("%s[%d]", field, i), Message: "must be an object"})
		}
	}
	return bad
}

// Partials are the saved partials that the prompt's template names, each once. A
// template that does not parse names none.
func (p *Prompt) Partials() []Reference {
	c, bad := p.Compile()
	if len(bad) > 0 {
		return nil
	}
	return c.Partials()
}

// Saved is a version of a prompt in the form that requests use. It is shared and never
// changed.
type Saved struct {
	ID, Slug, Name, Status string
	Version                int64
	Prompt                 *Prompt
	Compiled               *Compiled
	base                   []member // base of its bodies
	size                   int      // size of base in bytes, roughly
}

// DecodePrompt reads a record, or one of its versions, for requests.
func DecodePrompt(rec resource.Record) (*Saved, error) {
	p := new(Prompt)
	if err := json.Unmarshal(rec.Body, p); err != nil {
		return nil, fmt.Errorf("prompt: stored prompt %s: %w", rec.ID, err)
	}
	c, bad := p.Compile()
	if len(bad) > 0 {
		return nil, fmt.Errorf("prompt: stored prompt %s: %s: %s", rec.ID, bad[0].Field, bad[0].Message)
	}
	s := &Saved{ID: rec.ID, Slug: rec.Slug, Name: rec.Name, Status: rec.Status, Version: rec.Version, Prompt: p, Compiled: c}
	s.base, s.size = p.members()
	return s, nil
}

// Share lists the other workspaces that see a prompt: the body of a record of KindShare.
type Share struct {
	Owner        string   `json:"owner"` // the prompt's workspace
	Organisation bool     `json:"organisation,omitempty" doc:"All workspaces of the organisation see it."`
	Workspaces   []string `json:"workspaces,omitempty" max:"1000" each:"min=1 max=255" doc:"Workspaces that see it, by id or slug."` // stored as ids
}

// OpenTo reports whether the share lets a workspace see the prompt.
func (s *Share) OpenTo(workspace string) bool {
	return workspace != s.Owner && (s.Organisation || slices.Contains(s.Workspaces, workspace))
}
