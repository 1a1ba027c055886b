package prompt

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"time"

	"gateway/shared/fault"
	"gateway/shared/fault/bound"
	"gateway/shared/resource"
)

// KindExperiment is the kind of experiments: records below their prompt.
const KindExperiment resource.Kind = "EXPERIMENT"

// FieldExperiment is a field of a prompt: the id of the experiment that is running. There
// is at most one. Requests read it with the prompt, so that prompts without an experiment
// cost nothing more.
const FieldExperiment = "experiment"

// States of an experiment: the status of its record. It is started once and stopped once,
// so that its results are about one set of users.
const (
	Draft   = "draft"
	Running = "running"
	Stopped = "stopped"
)

// Bounds of experiments.
const (
	minVariants = 2
	maxWeight   = 1_000_000
)

// Variant is a version that takes part in an experiment.
type Variant struct {
	Version int64 `json:"version"`
	Weight  int64 `json:"weight"` // its share is this divided by the sum; 0: none
}

// Experiment is the stored form: versions of a prompt that share its requests by weight.
// Requests that do not name a version of the prompt take part.
type Experiment struct {
	Description string    `json:"description,omitempty" max:"1024"`
	Variants    []Variant `json:"variants,omitempty" min:"2" max:"10"`
	// StickyBy is the metadata key with the value that identifies a user, who always gets the
	// same version; empty: _user, or the field user of the body.
	StickyBy string     `json:"sticky_by,omitempty" max:"128"`
	Started  *time.Time `json:"started_at,omitempty"`
	Ended    *time.Time `json:"stopped_at,omitempty"`
	Promoted int64      `json:"promoted_version,omitempty"`
}

// Validate returns all errors of the experiment's fields; the caller must check which versions
// exist.
func (e *Experiment) Validate() []fault.Detail {
	bad := bound.Check(e)
	seen, sum := map[int64]bool{}, int64(0)
	for i, v := range e.Variants {
		at := fmt.Sprintf("variants[%d].", i)
		if v.Version < 1 {
			bad = append(bad, fault.Detail{Field: at + "version", Message: "must be the number of a version"})
		} else if seen[v.Version] {
			bad = append(bad, fault.Detail{Field: at + "version", Message: "stands in the list already"})
		}
		seen[v.Version] = true
		if v.Weight < 0 || v.Weight > maxWeight {
			bad = append(bad, fault.Detail{Field: at + "weight", Message: fmt.Sprintf("must be between 0 and %d", maxWeight)})
		}
		sum += max(v.Weight, 0)
	}
	if len(e.Variants) >= minVariants && sum == 0 {
		bad = append(bad, fault.Detail{Field: "variants", Message: "must have a weight above 0"})
	}
	return bad
}

// Pick returns the version of a user, by the id of the experiment. It uses weighted rendezvous
// hashing: each version draws a number for the user, and the largest wins. So a user gets the
// same version as long as the weights do not change. If one weight grows, users only move to
// that version, and none between the others.
func (e *Experiment) Pick(id, user string) (version int64) {
	best := math.Inf(-1)
	for _, v := range e.Variants {
		if v.Weight <= 0 {
			continue
		}
		if score := float64(v.Weight) / -math.Log(drawn(id, user, v.Version)); score > best {
			best, version = score, v.Version
		}
	}
	return version
}

// drawn is a number between 0 and 1, both excluded. It is always the same for the same
// input.
func drawn(id, user string, version int64) float64 {
	h := fnv.New64a()
	var n [8]byte
	binary.BigEndian.PutUint64(n[:], uint64(version))
	_, _ = h.Write([]byte(id)) // never fails
	_, _ = h.Write(n[:])
	_, _ = h.Write([]byte(user))
	return (float64(mixed(h.Sum64())>>11) + 0.5) / (1 << 53)
}

// mixed spreads the bits of a hash, because its high bits hardly depend on a short text. These
// are the last steps of MurmurHash3.
func mixed(n uint64) uint64 {
	n ^= n >> 33
	n *= 0xff51afd7ed558ccd
	n ^= n >> 33
	n *= 0xc4ceb9fe1a85ec53
	return n ^ n>>33
}

// trial is a stored experiment in the form that requests use.
type trial struct {
	id, status string
	*Experiment
}

func decodeTrial(rec resource.Record) (*trial, error) {
	e := new(Experiment)
	if err := json.Unmarshal(rec.Body, e); err != nil {
		return nil, fmt.Errorf("prompt: stored experiment %s: %w", rec.ID, err)
	}
	return &trial{rec.ID, rec.Status, e}, nil
}
