package prompt

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"gateway/shared/fault"
	"gateway/shared/store"
)

// Case is a row of a prompt's table of tests: variables, and what must hold for a model's
// answer to them.
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

// keepTested is how long a result is valid.
const keepTested = 90 * 24 * time.Hour

func testedKey(sc store.Scope, id string, version int64) store.Key {
	return sc.Partition("PROMPTTEST").Key("RUN", id, strconv.FormatInt(version, 10))
}

// Keep stores the result of a run, in place of the one before.
func (t Tests) Keep(ctx context.Context, sc store.Scope, id string, version int64, r *Tested) error {
	body, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("prompt: encode: %w", err)
	}
	row := store.Row{Key: testedKey(sc, id, version), Item: store.Item{"body": body}, Expires: r.At.Add(keepTested)}
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
