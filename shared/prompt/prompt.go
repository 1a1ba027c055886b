// Package prompt contains saved prompts: their stored forms with their limits, the template
// language, and how versions are named. It compiles a version once, so that rendering does not
// parse the template again. The loader cache of package resource stores the result:
//
//	resource.LoadVersion(ctx, view, scope, prompt.KindPrompt, id, n, prompt.DecodePrompt)
//
// The language is Mustache, as in mustache.js, without HTML escaping and without other
// delimiters, and with two kinds of partials: {{>slug}} is a saved one, optionally of a version
// ({{>slug@5}}, {{>slug@latest}}); {{>>name}} is one that the caller sends as a variable.
// Rendering is limited in output and depth.
//
// Do not add HTTP, calls of models, or lookups of records. Callers do that and pass it as
// functions.
package prompt

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"gateway/shared/fault"
	"gateway/shared/fault/bound"
	"gateway/shared/resource"
	"gateway/shared/store"
)

// The kinds of records.
const (
	KindPrompt     resource.Kind = "PROMPT"
	KindPartial    resource.Kind = "PARTIAL"
	KindCollection resource.Kind = "COLLECTION"
	KindLabel      resource.Kind = "LABEL"
	// KindShare is the kind of shares with other workspaces: records of the organization with
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

	// Tests are the prompt's saved table. RequireTests means that a version must have passed
	// it before it is published. Both belong to the record, not to its versions.
	Tests        []Case `json:"tests,omitempty" max:"50"`
	RequireTests bool   `json:"require_tests,omitempty" doc:"A version can be published, labeled or used in an experiment only after it has passed the saved tests."`
}

// Type is chat or completion.
func (p *Prompt) Type() string {
	var text string
	if raw, ok := p.Metadata["template_type"]; ok && json.Unmarshal(raw, &text) == nil && text != "" {
		return text
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
	Organisation bool     `json:"organisation,omitempty" doc:"All workspaces of the organization see it."`
	Workspaces   []string `json:"workspaces,omitempty" max:"1000" each:"min=1 max=255" doc:"Workspaces that see it, by id or slug."` // stored as ids
}

// OpenTo reports whether the share lets a workspace see the prompt.
func (s *Share) OpenTo(workspace string) bool {
	return workspace != s.Owner && (s.Organisation || slices.Contains(s.Workspaces, workspace))
}

// Fields of list rows.
const (
	FieldCollection = "collection_id" // of a prompt: the id of its collection
	FieldParent     = "parent_id"     // of a collection
	FieldDefault    = "is_default"    // "1": the default collection of its workspace
	FieldPartials   = "partials"      // "1": some version includes partials
	FieldProvider   = "provider"      // of a prompt: the slug of its saved provider
	FieldUpdated    = "updated"       // Unix milliseconds of the last change
)

// UniversalLabels are the labels that every organization has.
var UniversalLabels = []string{"production", "staging", "development"}

// firstID returns an id that is the same in every process, so that a record created on first
// use is created only once.
func firstID(sc store.Scope, k resource.Kind, name string) string {
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte("gateway:"+sc.Org+"#"+sc.Workspace+"#"+string(k)+"#"+name)).String()
}

// DefaultCollection gives the id of a workspace's default collection, and makes the
// collection if there is none.
func DefaultCollection(ctx context.Context, r *resource.Resources, sc store.Scope) (string, error) {
	id := firstID(sc, KindCollection, "default")
	rows, err := r.List(ctx, sc, KindCollection)
	if err != nil || slices.ContainsFunc(rows, func(row resource.Row) bool { return row.ID == id }) {
		return id, err
	}
	rec := resource.Record{
		Scope: sc, Kind: KindCollection, ID: id, Slug: "default-" + id[:6], Name: "Default", Status: "active",
		Fields: map[string]string{FieldDefault: "1"},
	}
	return id, makeFirst(ctx, r, rec, Collection{IsDefault: true})
}

// EnsureLabels makes those universal labels of an organization that do not exist yet.
func EnsureLabels(ctx context.Context, r *resource.Resources, org string) error {
	sc := store.Scope{Org: org}
	rows, err := r.List(ctx, sc, KindLabel)
	if err != nil {
		return err
	}
	for _, name := range UniversalLabels {
		id := firstID(sc, KindLabel, name)
		if slices.ContainsFunc(rows, func(row resource.Row) bool { return row.ID == id }) {
			continue
		}
		rec := resource.Record{Scope: sc, Kind: KindLabel, ID: id, Slug: name, Name: name, Status: "active"}
		if err := makeFirst(ctx, r, rec, Label{Universal: true}); err != nil {
			return err
		}
	}
	return nil
}

// makeFirst makes a record unless another process was faster.
func makeFirst(ctx context.Context, r *resource.Resources, rec resource.Record, form any) error {
	var err error
	if rec.Body, err = json.Marshal(form); err != nil {
		return fmt.Errorf("prompt: encode %s: %w", rec.Kind, err)
	}
	err = r.Change(ctx, rec.Scope, func(tx *resource.Tx) error {
		one := rec
		return tx.Create(&one)
	})
	if fault.Is(err, fault.Conflict) {
		return nil
	}
	return err
}

// Case is a row of a prompt's table of tests: variables, and what must hold for a model's
// response to them.
type Case struct {
	Name      string                     `json:"name" min:"1" max:"128"`
	Variables map[string]json.RawMessage `json:"variables,omitempty" max:"200"`
	// RenderOnly calls no model: every assertion is about the rendered prompt.
	RenderOnly bool        `json:"render_only,omitempty"`
	Assertions []Assertion `json:"assertions" min:"1" max:"20"`
}

// Kinds of assertions.
const (
	Contains    = "contains"
	NotContains = "not_contains"
	Equals      = "equals"
	Regex       = "regex"
	JSONSchema  = "json_schema"
	Guardrail   = "guardrail"
	MaxLatency  = "max_latency_ms"
)

// Assertions lists the kinds of assertions.
var Assertions = []string{Contains, NotContains, Equals, Regex, JSONSchema, Guardrail, MaxLatency}

// What an assertion is about.
const (
	OnAnswer   = "answer"
	OnRendered = "rendered"
)

// Assertion is one thing that must hold.
type Assertion struct {
	Type  string          `json:"type"`
	Value json.RawMessage `json:"value"`
	On    string          `json:"on,omitempty"` // OnAnswer or OnRendered; empty: the answer, if there is one
}

// MaxTable bounds the JSON of a table, in bytes.
const MaxTable = 64 << 10

// Tested is the result of the last run of a prompt's saved table for one version.
type Tested struct {
	Digest string    `json:"digest"` // identifies the tested version and cases: see Digest
	At     time.Time `json:"at"`
	Cases  int       `json:"cases"`
	Failed []string  `json:"failed,omitempty"` // names of cases
}

// Digest identifies a version's content together with a table. If one of them changes, the
// result of a run no longer applies.
func Digest(version *Prompt, table []Case) (string, error) {
	p := *version
	p.CollectionID, p.Description, p.Tests, p.RequireTests = "", "", table, false
	raw, err := json.Marshal(&p)
	if err != nil {
		return "", fmt.Errorf("prompt: encode: %w", err)
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:]), nil
}

// Tests stores the results of runs: a row of the usage table for each version, in the partition
// PROMPTTEST of the workspace.
type Tests struct{ Store store.Store }

// resultTTL is how long a result is valid.
const resultTTL = 90 * 24 * time.Hour

func testedKey(sc store.Scope, id string, version int64) store.Key {
	return sc.Partition("PROMPTTEST").Key("RUN", id, strconv.FormatInt(version, 10))
}

// Save stores the result of a run, in place of the one before.
func (t Tests) Save(ctx context.Context, sc store.Scope, id string, version int64, r *Tested) error {
	body, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("prompt: encode: %w", err)
	}
	row := store.Row{Key: testedKey(sc, id, version), Item: store.Item{"body": body}, Expires: r.At.Add(resultTTL)}
	if err := t.Store.Table(store.Usage).Put(ctx, row); err != nil {
		return fault.Unavailable(err)
	}
	return nil
}

// Last is the result of the last run of a version; nil: there was none.
func (t Tests) Last(ctx context.Context, sc store.Scope, id string, version int64) (*Tested, error) {
	item, ok, err := t.Store.Table(store.Usage).Get(ctx, testedKey(sc, id, version), true)
	if err != nil {
		return nil, fault.Unavailable(err)
	}
	if !ok {
		return nil, nil
	}
	r := new(Tested)
	if err := json.Unmarshal(item.Bytes("body"), r); err != nil {
		return nil, fmt.Errorf("prompt: stored test of %s: %w", id, err)
	}
	return r, nil
}
