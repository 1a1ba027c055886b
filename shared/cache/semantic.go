package cache

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"strings"
	"time"

	"gateway/shared/chat"
	"gateway/shared/store"
)

// Limits of semantic comparison.
const (
	MaxMessages      = 4
	maxTokens        = 8191 // of the user's text; the text must have fewer
	bytesOfAToken    = 4
	DefaultThreshold = 0.95 // least cosine of two texts that mean the same
)

// Embedder computes the vector of a text. It runs a separate request through the pipeline
// of the data plane, which the caller pays.
type Embedder interface {
	Embed(ctx context.Context, text string) ([]float32, error)
}

// Bucket holds the vectors of questions that are equal in all but the user's
// words.
type Bucket struct {
	Scope store.Scope
	ID    string // hex SHA-256 of the parts that must be equal
}

// SemanticQuery is a question for the semantic cache.
type SemanticQuery struct {
	Bucket Bucket
	Text   string // the user's words
}

// semantic are the operations with a semantic cache.
var semantic = map[string]bool{"chatComplete": true, "complete": true, "messages": true}

// ParseSemantic reads the meaning of a question. Its body must be the client's own, as a config
// has changed it; r is that body decoded. embedder names what makes the vectors. ok is
// false for questions that are only compared exactly: other operations, more than
// MaxMessages messages, none from the user, long texts, and messages with anything but
// text.
func ParseSemantic(q *Query, r *chat.Request, embedder string) (m SemanticQuery, ok bool) {
	if !semantic[q.Operation] || r == nil {
		return m, false
	}
	text, others, ok := words(r)
	if !ok {
		return m, false
	}
	members, err := membersOf(q.Body, "model", "stream", "stream_options", "messages", "system", "prompt")
	if err != nil {
		return m, false
	}
	h := q.begin("meaning")
	write(h, []byte(embedder))
	members.write(h)
	write(h, others)
	m.Bucket = Bucket{q.Scope, hex.EncodeToString(h.Sum(nil))}
	m.Text = text
	return m, true
}

// words splits a conversation into the user's texts and the other messages with their
// roles, without system messages.
func words(r *chat.Request) (text string, others []byte, ok bool) {
	if len(r.Messages) == 0 || countMessages(r) > MaxMessages || r.Completion != nil && r.Completion.Prompts > 1 || len(r.UnknownFields) > 0 {
		return "", nil, false
	}
	var user strings.Builder
	turns := 0
	var rest []byte
	for i := range r.Messages {
		m := &r.Messages[i]
		if m.Role == chat.System || m.Role == chat.Developer {
			continue
		}
		for j := range m.Parts {
			if m.Parts[j].Kind != chat.Text {
				return "", nil, false
			}
		}
		rest = appendText(appendText(rest, m.Role.String()), m.Name)
		if m.Role != chat.User {
			rest = appendText(rest, m.Text())
			continue
		}
		if turns++; turns > 1 {
			user.WriteByte('\n')
		}
		user.WriteString(m.Text())
	}
	text = user.String()
	if turns == 0 || strings.TrimSpace(text) == "" || (len(text)+bytesOfAToken-1)/bytesOfAToken >= maxTokens {
		return "", nil, false
	}
	return text, rest, true
}

// appendText appends a text with its length.
func appendText(dst []byte, s string) []byte {
	return append(binary.AppendUvarint(dst, uint64(len(s))), s...)
}

// countMessages counts the entries of the client's list of messages.
func countMessages(r *chat.Request) int {
	n := 0
	for i := range r.Messages {
		if r.Messages[i].At >= 0 {
			n++
		}
	}
	return n
}

// Semantic reports whether the cache compares meanings at all.
func (c *Cache) Semantic() bool { return c.vectors != nil }

// candidates is how many neighbors are tried: the response of the nearest may
// have expired or been removed.
const candidates = 4

// FindNearest finds the response to the nearest question at or above the threshold that is
// younger than Age(age); nil when there is none.
func (c *Cache) FindNearest(ctx context.Context, b Bucket, vector []float32, threshold float64, age time.Duration) (*Entry, error) {
	found, err := c.vectors.Nearest(ctx, b, vector, threshold, candidates)
	if err != nil {
		return nil, err
	}
	var bad error
	for _, m := range found {
		k, ok := keyOf(b.Scope, m.ID)
		if !ok {
			continue
		}
		e, err := c.Get(ctx, k, age)
		if e != nil {
			return e, nil
		}
		bad = errors.Join(bad, err)
	}
	return nil, bad
}

// AddVector makes the response of a key findable by the meaning of its question, until
// the response expires.
func (c *Cache) AddVector(ctx context.Context, b Bucket, vector []float32, k Key, expires time.Time) error {
	return c.vectors.Add(ctx, b, Vector{ID: k.id(), Values: vector, Expires: expires})
}

// maxReplaced is how many responses one refresh replaces.
const maxReplaced = 30

// Replace puts a response in place of those to all questions that mean the same.
func (c *Cache) Replace(ctx context.Context, b Bucket, vector []float32, threshold float64, e *Entry, age time.Duration) error {
	found, err := c.vectors.Nearest(ctx, b, vector, threshold, maxReplaced)
	if err != nil {
		return err
	}
	for _, m := range found {
		k, ok := keyOf(b.Scope, m.ID)
		if !ok {
			continue
		}
		if err := c.Put(ctx, k, e, age); err != nil {
			return err
		}
	}
	return nil
}
