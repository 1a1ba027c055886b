package tenant

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/fault/bound"
	"gateway/shared/ledger"
	"gateway/shared/resource"
	"gateway/shared/store"
)

// KindWorkspace is the resource kind of workspaces. Their rows belong to the organization; the
// resources of a workspace are in the scope {Org, Workspace id}.
const KindWorkspace resource.Kind = "WORKSPACE"

// States of a workspace.
const (
	StatusActive   = "active"
	StatusArchived = "archived"
)

// Fields of a workspace's list row, set if the workspace is excluded from the organization's
// guardrails.
const (
	InputExcluded  = "no_input"
	OutputExcluded = "no_output"
)

// MaxName is the length limit of a workspace's name in characters.
const MaxName = 255

// Workspace is the stored form of a workspace: the body of its resource.
type Workspace struct {
	Description string              `json:"description,omitempty" max:"1024"`
	Icon        string              `json:"icon,omitempty" max:"32"` // an emoji, shown before the name
	Defaults    WorkspaceDefaults   `json:"defaults"`
	UsageLimits []ledger.UsageLimit `json:"usage_limits,omitempty" max:"10"`
	RateLimits  []ledger.RateLimit  `json:"rate_limits,omitempty" max:"10"`
	IsDefault   bool                `json:"is_default,omitempty"` // the shared workspace, which cannot be deleted
	// DefaultConfig is the id of the config for requests without a config and with a key
	// without one. Package configs sets it.
	DefaultConfig string `json:"default_config,omitempty"`
	// Whether the organization's guardrails skip the workspace.
	InputExcluded  bool `json:"input_guardrails_excluded,omitempty"`
	OutputExcluded bool `json:"output_guardrails_excluded,omitempty"`
}

// WorkspaceDefaults apply to every request of the workspace.
type WorkspaceDefaults struct {
	Metadata         map[string]string `json:"metadata,omitempty" max:"64" each:"max=128"`
	InputGuardrails  []string          `json:"input_guardrails,omitempty" max:"100" each:"min=1 max=255"`
	OutputGuardrails []string          `json:"output_guardrails,omitempty" max:"100" each:"min=1 max=255"`
	UserAPIKeyConfig string            `json:"user_api_key_config,omitempty" max:"255" doc:"Default config of user keys without one, by id or slug. It takes precedence over the workspace's default config."` // stored as the slug
}

// Validate returns the faults of the workspace's own fields; limits are validated when they are
// decoded.
func (w *Workspace) Validate(name string) []fault.Detail {
	return append(bound.Text("name", name, 1, MaxName), bound.Check(w)...)
}

// Effective is a workspace in the form that requests use. It is immutable and shared.
type Effective struct {
	Scope    store.Scope
	Slug     string
	Name     string
	Status   string
	Defaults WorkspaceDefaults
	// DefaultConfig is the id of the config for requests without another.
	DefaultConfig string
	Subject       *ledger.Subject // nil without limits

	inputExcluded, outputExcluded bool
}

// Guardrails returns the guardrails for every request of the workspace: first the
// organization's, unless the workspace is excluded from them, then its own. Each is an id or a
// slug of the workspace or the organization. The lists are shared and must not be changed.
func (e *Effective) Guardrails(of *Organisation) (input, output []string) {
	return merged(of.InputGuardrails, e.Defaults.InputGuardrails, e.inputExcluded), merged(of.OutputGuardrails, e.Defaults.OutputGuardrails, e.outputExcluded)
}

func merged(shared, own []string, excluded bool) []string {
	switch {
	case excluded || len(shared) == 0:
		return own
	case len(own) == 0:
		return shared
	}
	out := slices.Clone(shared)
	for _, name := range own {
		if !slices.Contains(shared, name) {
			out = append(out, name)
		}
	}
	return out
}

// ReadWorkspace decodes the stored form.
func ReadWorkspace(rec resource.Record) (*Workspace, error) {
	w := new(Workspace)
	if err := json.Unmarshal(rec.Body, w); err != nil {
		return nil, fmt.Errorf("tenant: workspace %s: %w", rec.ID, err)
	}
	return w, nil
}

// DecodeWorkspace decodes a workspace resource for requests.
func DecodeWorkspace(rec resource.Record) (*Effective, error) {
	var w Workspace
	if err := json.Unmarshal(rec.Body, &w); err != nil {
		return nil, fmt.Errorf("tenant: workspace %s: %w", rec.ID, err)
	}
	sc := store.Scope{Org: rec.Scope.Org, Workspace: rec.ID}
	e := &Effective{Scope: sc, Slug: rec.Slug, Name: rec.Name, Status: rec.Status, Defaults: w.Defaults, DefaultConfig: w.DefaultConfig, inputExcluded: w.InputExcluded, outputExcluded: w.OutputExcluded}
	e.Subject = WorkspaceSubject(sc, rec.Name, rec.Rev, &w)
	return e, nil
}

// WorkspaceSubject returns the ledger subject of a workspace, or nil without limits.
func WorkspaceSubject(sc store.Scope, name string, revision int64, w *Workspace) *ledger.Subject {
	if len(w.UsageLimits) == 0 && len(w.RateLimits) == 0 {
		return nil
	}
	return &ledger.Subject{Scope: sc, Kind: ledger.Workspace, ID: sc.Workspace, Label: name, Rates: w.RateLimits, Budgets: w.UsageLimits, Revision: revision}
}

// NewWorkspace returns the record of a workspace with only a name.
func NewWorkspace(org store.Scope, name, slug string, schema *MetadataSchema, actor string) (*resource.Record, error) {
	body, err := json.Marshal(&Workspace{Defaults: WorkspaceDefaults{Metadata: schema.Complete(nil)}})
	if err != nil {
		return nil, fmt.Errorf("tenant: encode workspace: %w", err)
	}
	return &resource.Record{
		Scope: org.Organisation(), Kind: KindWorkspace, ID: resource.NewID(), Slug: slug, Name: name, Status: StatusActive, CreatedBy: actor, UpdatedBy: actor, Body: body,
	}, nil
}

// MetadataSchema describes the required metadata of new keys or workspaces: the part of JSON
// Schema (draft 07) for an object of strings.
type MetadataSchema struct {
	Schema     string                    `json:"$schema,omitempty"`
	Type       string                    `json:"type"`
	Properties map[string]MetadataMember `json:"properties,omitempty"`
	Required   []string                  `json:"required,omitempty"`
	Additional *bool                     `json:"additionalProperties,omitempty"`
}

// MetadataMember describes one field.
type MetadataMember struct {
	Type        string   `json:"type"`
	Title       string   `json:"title,omitempty"`
	Description string   `json:"description,omitempty"`
	Enum        []string `json:"enum,omitempty"`
	Default     *string  `json:"default,omitempty"`
	Pattern     string   `json:"pattern,omitempty"`
	MinLength   int      `json:"minLength,omitempty"`
	MaxLength   int      `json:"maxLength,omitempty"`
}

// maxMetadata is the number of fields of a schema.
const maxMetadata = 64

// CheckMetadataSchema returns the faults of a schema to be stored.
func CheckMetadataSchema(raw json.RawMessage) []fault.Detail {
	var s MetadataSchema
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return []fault.Detail{{Message: "must be a JSON schema of an object of strings: type, properties, required, additionalProperties; with these keywords for a property: type, title, description, enum, default, pattern, minLength, maxLength"}}
	}
	var bad []fault.Detail
	fail := func(field, format string, args ...any) {
		bad = append(bad, fault.Detail{Field: field, Message: fmt.Sprintf(format, args...)})
	}
	if s.Type != "object" {
		fail("type", "must be object")
	}
	if s.Additional != nil && !*s.Additional {
		fail("additionalProperties", "must be true")
	}
	if len(s.Properties) > maxMetadata || len(s.Required) > maxMetadata {
		fail("properties", "must have at most %d entries", maxMetadata)
		return bad
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		m, at := s.Properties[name], "properties."+name
		if m.Type != "string" {
			fail(at+".type", "must be string")
		}
		if _, err := regexp.Compile(m.Pattern); err != nil || len(m.Pattern) > 512 {
			fail(at+".pattern", "must be a regular expression (RE2) of at most 512 characters")
			continue
		}
		if m.Default != nil {
			for _, d := range m.check(*m.Default) {
				fail(at+".default", "%s", d)
			}
		}
	}
	return bad
}

func (m *MetadataMember) check(v string) (bad []string) {
	n := len([]rune(v))
	if len(m.Enum) > 0 && !slices.Contains(m.Enum, v) {
		bad = append(bad, "must be one of "+strings.Join(m.Enum, ", "))
	}
	if m.Pattern != "" {
		if p, err := regexp.Compile(m.Pattern); err != nil || !p.MatchString(v) {
			bad = append(bad, "must match "+m.Pattern)
		}
	}
	if n < m.MinLength || m.MaxLength > 0 && n > m.MaxLength {
		bad = append(bad, fmt.Sprintf("must have %d to %d characters", m.MinLength, m.MaxLength))
	}
	return bad
}

// Complete adds the schema's defaults to metadata. A nil schema has none.
func (s *MetadataSchema) Complete(metadata map[string]string) map[string]string {
	if s == nil {
		return metadata
	}
	out := maps.Clone(metadata)
	for name, m := range s.Properties {
		if _, present := out[name]; !present && m.Default != nil {
			if out == nil {
				out = make(map[string]string)
			}
			out[name] = *m.Default
		}
	}
	return out
}

// Check returns the faults of metadata; field is its name in faults. A nil schema has no
// requirements.
func (s *MetadataSchema) Check(field string, metadata map[string]string) (bad []fault.Detail) {
	if s == nil {
		return nil
	}
	for _, name := range s.Required {
		if _, present := metadata[name]; !present {
			bad = append(bad, fault.Detail{Field: field + "." + name, Message: "is required by the organization"})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(metadata)) {
		m, described := s.Properties[name]
		if !described {
			continue
		}
		for _, message := range m.check(metadata[name]) {
			bad = append(bad, fault.Detail{Field: field + "." + name, Message: message})
		}
	}
	return bad
}
