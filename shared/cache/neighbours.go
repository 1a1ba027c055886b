package cache

import (
	"context"
	"errors"
	"math"
	"time"
)

// Vector is one question in a bucket.
type Vector struct {
	ID      string // of the question's answer
	Values  []float32
	Expires time.Time
}

// Match is a question that was found, and the cosine of its angle.
type Match struct {
	ID    string
	Score float64
}

// Neighbours stores vectors and finds similar ones. Implementations are safe for
// concurrent use, survive a restart, and never return expired vectors.
type Neighbours interface {
	// Add stores a vector, in place of one with the same id. A full bucket evicts the one
	// that expires first.
	Add(ctx context.Context, b Bucket, v Vector) error
	// Nearest returns at most k matches with a cosine of at least least, the nearest
	// first. Vectors of another length do not match.
	Nearest(ctx context.Context, b Bucket, vector []float32, least float64, k int) ([]Match, error)
}

// MaxDimensions bounds a vector.
const MaxDimensions = 4096

// ErrVector is given for a vector that has no direction or too many dimensions.
var ErrVector = errors.New("cache: not a vector of 1 to 4096 finite numbers that are not all zero")

// CheckVector tests a vector before it is used.
func CheckVector(v []float32) error {
	var sum float64
	for _, f := range v {
		sum += float64(f) * float64(f)
	}
	if len(v) == 0 || len(v) > MaxDimensions || sum == 0 || math.IsNaN(sum) || math.IsInf(sum, 0) {
		return ErrVector
	}
	return nil
}

// quantised is a vector with one byte for each dimension. Only its direction counts, not
// its length.
type quantised struct {
	q    []int8
	norm float64 // of q
}

// quantise scales the largest number to 127. The cosine of two quantised vectors
// differs from that of the vectors by less than a hundredth, and for vectors of
// many dimensions by far less.
func quantise(v []float32) quantised {
	var most float64
	for _, f := range v {
		most = max(most, math.Abs(float64(f)))
	}
	out := quantised{q: make([]int8, len(v))}
	if most == 0 {
		return out
	}
	for i, f := range v {
		out.q[i] = int8(math.Round(float64(f) / most * 127))
	}
	out.norm = norm(out.q)
	return out
}

func norm(q []int8) float64 { return math.Sqrt(float64(dot(q, q))) }

// dot is the inner product of two vectors of the same length. 4,096 products of
// two bytes fit 32 bits.
func dot(a, b []int8) int32 {
	var s0, s1, s2, s3 int32
	b = b[:len(a)]
	i := 0
	for ; i+4 <= len(a); i += 4 {
		s0 += int32(a[i]) * int32(b[i])
		s1 += int32(a[i+1]) * int32(b[i+1])
		s2 += int32(a[i+2]) * int32(b[i+2])
		s3 += int32(a[i+3]) * int32(b[i+3])
	}
	for ; i < len(a); i++ {
		s0 += int32(a[i]) * int32(b[i])
	}
	return s0 + s1 + s2 + s3
}
