// Package cachetest is the contract that every cache.VectorIndex passes.
package cachetest

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"gateway/shared/cache"
	"gateway/shared/store"
)

// Harness returns an index under test.
type Harness struct {
	// Open returns the index as a process that starts has it.
	Open func() cache.VectorIndex
	// Now and Advance are the index's clock.
	Now     func() time.Time
	Advance func(time.Duration)
}

// Vector is a random vector of n dimensions.
func Vector(r *rand.Rand, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(r.NormFloat64())
	}
	return v
}

// NearVector is a vector at about a cosine from v.
func NearVector(r *rand.Rand, v []float32, cos float64) []float32 {
	w := Vector(r, len(v))
	out := make([]float32, len(v))
	for i := range v {
		out[i] = float32(cos*float64(v[i]) + math.Sqrt(1-cos*cos)*float64(w[i]))
	}
	return out
}

var here = store.Scope{Org: "acme", Workspace: "ws-1"}

// Run runs the contract.
func Run(t *testing.T, h Harness) {
	s := &suite{t: t, Harness: h, n: h.Open(), bucket: cache.Bucket{Scope: here, ID: "b1"}}
	r := rand.New(rand.NewPCG(3, 4))
	s.base = Vector(r, 256)
	s.check("before anything is kept", 0.1)
	until := h.Now().Add(time.Hour)
	for id, cos := range map[string]float64{"near-95": 0.955, "near-99": 0.99, "near-97": 0.97, "far": 0.5} {
		s.add(s.bucket, cache.Vector{ID: id, Values: NearVector(r, s.base, cos), Expires: until})
	}
	for _, b := range []cache.Bucket{
		{Scope: here, ID: "b2"}, {Scope: store.Scope{Org: "acme", Workspace: "ws-2"}, ID: "b1"}, {Scope: store.Scope{Org: "x", Workspace: "ws-1"}, ID: "b1"},
	} {
		s.add(b, cache.Vector{ID: "foreign", Values: s.base, Expires: until})
	}
	s.add(s.bucket, cache.Vector{ID: "soon over", Values: s.base, Expires: h.Now().Add(time.Minute)})
	s.add(s.bucket, cache.Vector{ID: "short", Values: s.base[:128], Expires: until})
	s.check("before the first expires", 0.9, "soon over", "near-99", "near-97", "near-95")
	h.Advance(2 * time.Minute)
	s.check("at first", 0.9, "near-99", "near-97", "near-95")
	s.check("above all", 0.999)
	if got, err := s.n.Nearest(t.Context(), s.bucket, s.base, 0.9, 1); err != nil || len(got) != 1 || got[0].ID != "near-99" {
		t.Errorf("the nearest: %v, %v", got, err)
	}
	s.n = h.Open()
	s.check("after a restart", 0.9, "near-99", "near-97", "near-95")
	s.add(s.bucket, cache.Vector{ID: "near-95", Values: NearVector(r, s.base, 0.1), Expires: until})
	s.check("after a vector was replaced", 0.9, "near-99", "near-97")
	s.rejections(until)
}

type suite struct {
	t *testing.T
	Harness
	n      cache.VectorIndex
	bucket cache.Bucket
	base   []float32
}

func (s *suite) add(b cache.Bucket, v cache.Vector) {
	s.t.Helper()
	if err := s.n.Add(s.t.Context(), b, v); err != nil {
		s.t.Fatal(err)
	}
}

// check looks for all at or above a cosine.
func (s *suite) check(when string, least float64, want ...string) {
	s.t.Helper()
	found, err := s.n.Nearest(s.t.Context(), s.bucket, s.base, least, 10)
	if err != nil {
		s.t.Fatal(err)
	}
	var ids []string
	for i, m := range found {
		ids = append(ids, m.ID)
		if m.Score < least || i > 0 && m.Score > found[i-1].Score {
			s.t.Errorf("%s: %v is out of order or below %v", when, m, least)
		}
	}
	if !slices.Equal(ids, want) {
		s.t.Errorf("%s: %v, want %v", when, ids, want)
	}
}

func (s *suite) rejections(until time.Time) {
	s.t.Helper()
	for name, v := range map[string][]float32{"nothing": nil, "zeros": make([]float32, 256), "NaN": {float32(math.NaN())}, "too long": make([]float32, cache.MaxDimensions+1)} {
		if _, err := s.n.Nearest(s.t.Context(), s.bucket, v, 0.9, 1); !errors.Is(err, cache.ErrVector) {
			s.t.Errorf("looking for %s: %v", name, err)
		}
		if err := s.n.Add(s.t.Context(), s.bucket, cache.Vector{ID: "x", Values: v, Expires: until}); !errors.Is(err, cache.ErrVector) {
			s.t.Errorf("keeping %s: %v", name, err)
		}
	}
}
