package blob

import (
	"context"
	"errors"
	"fmt"
)

// Span is a stretch of an object.
type Span struct{ Offset, Length int64 }

// Eraser is a Bucket that can blank stretches of an object where they are, whoever
// else writes to it.
type Eraser interface {
	Erase(ctx context.Context, key string, spans []Span) error
}

// Erase puts zeros in the place of stretches of an object, which keeps its size. What
// is outside of the object, and an object that is absent, needs no erasing. Where the
// bucket is no Eraser the object is written anew: two at once must not erase of one.
func Erase(ctx context.Context, b Bucket, key string, spans []Span) error {
	if e, ok := b.(Eraser); ok {
		return e.Erase(ctx, key, spans)
	}
	body, err := b.Get(ctx, key, 0)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("blob: erase: %w", err)
	}
	for _, s := range spans {
		if from, to, ok := s.Within(int64(len(body))); ok {
			clear(body[from:to])
		}
	}
	if err := b.Put(ctx, key, body); err != nil {
		return fmt.Errorf("blob: erase: %w", err)
	}
	return nil
}

// Within is the part of the stretch that lies in an object of a size; ok is false
// where none does.
func (s Span) Within(size int64) (from, to int64, ok bool) {
	if s.Offset < 0 || s.Length <= 0 || s.Offset >= size {
		return 0, 0, false
	}
	return s.Offset, min(s.Offset+min(s.Length, size), size), true
}
