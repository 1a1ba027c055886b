package prompt

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/fault/bound"
	"gateway/shared/resource"
)

// Partial is the stored form of a partial: a text that templates of prompts and other
// partials include.
type Partial struct {
	String      string `json:"string,omitempty" min:"1" max:"300000" doc:"The template."`
	Description string `json:"version_description,omitempty" max:"1024"`
}

// Validate gives all errors of the partial's own fields.
func (p *Partial) Validate() []fault.Detail {
	bad := bound.Check(p)
	if _, err := Parse(p.String); err != nil {
		bad = append(bad, fault.Detail{Field: "string", Message: err.Error()})
	}
	return bad
}

// Partials are the partials that it names itself, each once.
func (p *Partial) Partials() []Reference {
	t, err := Parse(p.String)
	if err != nil {
		return nil
	}
	return t.Partials()
}

// DecodePartial reads a record, or one of its versions, for requests.
func DecodePartial(rec resource.Record) (*Template, error) {
	var p Partial
	if err := json.Unmarshal(rec.Body, &p); err != nil {
		return nil, fmt.Errorf("prompt: stored partial %s: %w", rec.ID, err)
	}
	t, err := Parse(p.String)
	if err != nil {
		return nil, fmt.Errorf("prompt: stored partial %s: %w", rec.ID, err)
	}
	return t, nil
}

// Collection is the stored form of a folder of prompts.
type Collection struct {
	ParentID  string `json:"parent_collection_id,omitempty" max:"255" doc:"Collection of the prompt, by id or slug."`
	IsDefault bool   `json:"is_default,omitempty"`
}

// Label is the stored form of a name that versions of prompts carry.
type Label struct {
	Description string `json:"description,omitempty" max:"1024"`
	Color       string `json:"color_code,omitempty" max:"64"`
	// Universal labels exist in every organization; they cannot be changed.
	Universal bool `json:"is_universal,omitempty"`
}

// ErrCycle reports that a partial would include itself.
var ErrCycle = errors.New("would include itself")

// Node is a version of a partial in the graph of texts that include each other.
type Node struct {
	ID       string
	Version  int64
	Partials []Reference
}

// Closure walks over everything that a text includes, directly or not, and gives the first
// error that it meets: ErrNoPartial, ErrCycle, ErrTooDeep, or that of find. start is the
// text itself; its ID is empty for a prompt. The returned reference is the one in the text
// itself that leads to the error.
func Closure(start Node, find func(Reference) (Node, error)) (Reference, error) {
	done := map[place]bool{}
	var walk func(n Node, path []place) error
	walk = func(n Node, path []place) error {
		for _, ref := range n.Partials {
			next, err := find(ref)
			if err != nil {
				return err
			}
			key := place{next.ID, next.Version}
			for _, p := range path {
				if p == key {
					return ErrCycle
				}
			}
			if len(path) > maxDepth {
				return ErrTooDeep
			}
			if done[key] {
				continue
			}
			if err := walk(next, append(path, key)); err != nil {
				return err
			}
			done[key] = true
		}
		return nil
	}
	own := place{start.ID, start.Version}
	for _, ref := range start.Partials {
		one := start
		one.Partials = []Reference{ref}
		if err := walk(one, []place{own}); err != nil {
			return ref, err
		}
	}
	return Reference{}, nil
}

// place identifies a version in the graph.
type place struct {
	id      string
	version int64
}

// Latest names the newest version, published or not.
const Latest = "latest"

// Reference is a prompt or partial as a path or a template names it: by its id or slug, and
// a version.
type Reference struct {
	Name string
	// Version is empty for the published one, otherwise Latest, a number, or (for prompts)
	// the name or id of a label.
	Version string
}

// ParseReference splits name@version.
func ParseReference(text string) Reference {
	name, version, _ := strings.Cut(text, "@")
	return Reference{strings.TrimSpace(name), strings.TrimSpace(version)}
}

func (r Reference) String() string {
	if r.Version == "" {
		return r.Name
	}
	return r.Name + "@" + r.Version
}

// Number is the version that the reference names; the record's published and newest
// versions are given. ok is false for a label.
func (r Reference) Number(published, newest int64) (n int64, ok bool) {
	switch r.Version {
	case "":
		return published, true
	case Latest:
		return newest, true
	}
	n, err := strconv.ParseInt(r.Version, 10, 64)
	return n, err == nil && n > 0
}

// CheckReference rejects a reference that cannot name a partial in a template.
func CheckReference(text string) error {
	ref := ParseReference(text)
	if ref.Name == "" {
		return errors.New("this partial has no name")
	}
	if _, ok := ref.Number(1, 1); !ok {
		return errors.New("a partial is named as slug, slug@latest or slug@ with the number of a version; labels do not name partials")
	}
	return nil
}
