package cache

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"gateway/shared/chat"
	"gateway/shared/dialect/anthropic"
	"gateway/shared/dialect/openai"
)

func meaning(t *testing.T, d chat.RequestReader, q Query, embedder string) (SemanticQuery, bool) {
	t.Helper()
	r, err := d.DecodeRequest(q.Body)
	if err != nil {
		t.Fatalf("%s: %v", q.Body, err)
	}
	return ParseSemantic(&q, r, embedder)
}

func questionOf(messages, more string) Query {
	q := question()
	q.Body = []byte(`{"model":"m","messages":` + messages + more + `}`)
	return q
}

const ulm = `[{"role":"user","content":"Where is Ulm?"}]`

func TestWhatHasTheSameMeaning(t *testing.T) {
	base, ok := meaning(t, openai.Chat{}, questionOf(ulm, ""), "e")
	if !ok || base.Text != "Where is Ulm?" || base.Bucket.Scope != here {
		t.Fatalf("%+v %v", base, ok)
	}
	for name, q := range map[string]Query{
		"other words":       questionOf(`[{"role":"user","content":"Tell me where Ulm is"}]`, ""),
		"a system message":  questionOf(`[{"role":"system","content":"Be brief"},{"role":"user","content":"Where is Ulm?"}]`, ""),
		"content as a list": questionOf(`[{"role":"user","content":[{"type":"text","text":"Where is Ulm?"}]}]`, ""),
		"a stream":          questionOf(ulm, `,"stream":true,"stream_options":{"include_usage":true}`),
	} {
		if m, ok := meaning(t, openai.Chat{}, q, "e"); !ok || m.Bucket != base.Bucket {
			t.Errorf("%s is another bucket, or none: %v", name, ok)
		}
	}
	other := questionOf(ulm, "")
	other.Metadata = nil
	elsewhere := questionOf(ulm, "")
	elsewhere.Scope.Workspace = "ws-2"
	model := questionOf(ulm, "")
	model.Model = "m2"
	named := questionOf(ulm, "")
	named.Namespace = "n"
	for name, q := range map[string]Query{
		"a parameter": questionOf(ulm, `,"temperature":1`), "tools": questionOf(ulm, `,"tools":[{"type":"function","function":{"name":"f"}}]`),
		"metadata": other, "workspace": elsewhere, "model": model, "namespace": named,
		"an answer between": questionOf(`[{"role":"user","content":"Hi"},{"role":"assistant","content":"Hello"},{"role":"user","content":"Where is Ulm?"}]`, ""),
		"a name":            questionOf(`[{"role":"user","name":"ann","content":"Where is Ulm?"}]`, ""),
	} {
		if m, ok := meaning(t, openai.Chat{}, q, "e"); !ok || m.Bucket == base.Bucket {
			t.Errorf("%s is the same bucket, or none: %v", name, ok)
		}
	}
	if m, _ := meaning(t, openai.Chat{}, questionOf(ulm, ""), "other embedder"); m.Bucket == base.Bucket {
		t.Error("the embedder does not count")
	}
}

func TestWhatIsComparedExactlyOnly(t *testing.T) {
	user := `{"role":"user","content":"x"}`
	for name, q := range map[string]Query{
		"nobody asks":          questionOf(`[{"role":"system","content":"x"}]`, ""),
		"five messages":        questionOf(`[`+strings.Repeat(user+",", 4)+user+`]`, ""),
		"an image":             questionOf(`[{"role":"user","content":[{"type":"text","text":"x"},{"type":"image_url","image_url":{"url":"https://h/i.png"}}]}]`, ""),
		"a tool's result":      questionOf(`[`+user+`,{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"y"}]`, ""),
		"an empty text":        questionOf(`[{"role":"user","content":" "}]`, ""),
		"a long text":          questionOf(`[{"role":"user","content":"`+strings.Repeat("word", 8191)+`"}]`, ""),
		"an unknown in within": questionOf(`[{"role":"user","content":"x","mood":"sad"}]`, ""),
	} {
		if m, ok := meaning(t, openai.Chat{}, q, "e"); ok {
			t.Errorf("%s has a meaning: %+v", name, m)
		}
	}
	q := questionOf(ulm, "")
	q.Operation = "embed"
	if _, ok := meaning(t, openai.Chat{}, q, "e"); ok {
		t.Error("an embedding has a meaning")
	}
	if _, ok := ParseSemantic(&q, nil, "e"); ok {
		t.Error("what cannot be read has a meaning")
	}
	longest := questionOf(`[{"role":"user","content":"`+strings.Repeat("word", 8190)+`"}]`, "")
	four := questionOf(`[`+strings.Repeat(user+",", 3)+user+`]`, "")
	for name, q := range map[string]Query{"the longest text": longest, "four messages": four} {
		if _, ok := meaning(t, openai.Chat{}, q, "e"); !ok {
			t.Errorf("%s has no meaning", name)
		}
	}
}

func TestMeaningsOfOtherDialects(t *testing.T) {
	q := question()
	q.Operation, q.Dialect = "messages", "anthropic.messages"
	q.Body = []byte(`{"model":"m","max_tokens":9,"system":"Be brief","messages":[{"role":"user","content":"Where is Ulm?"}]}`)
	with, ok := meaning(t, anthropic.Messages{}, q, "e")
	q.Body = []byte(`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"Where is Ulm?"}]}`)
	without, ok2 := meaning(t, anthropic.Messages{}, q, "e")
	if !ok || !ok2 || with != without {
		t.Errorf("system prompts count: %v %v", with, without)
	}
	q.Operation, q.Dialect = "complete", "openai.completions"
	q.Body = []byte(`{"model":"m","prompt":"Where is Ulm?"}`)
	if m, ok := meaning(t, openai.Completions{}, q, "e"); !ok || m.Text != "Where is Ulm?" {
		t.Errorf("%+v %v", m, ok)
	}
	q.Body = []byte(`{"model":"m","prompt":["Where is Ulm?","Where is Bonn?"]}`)
	if _, ok := meaning(t, openai.Completions{}, q, "e"); ok {
		t.Error("two prompts have one meaning")
	}
}

func TestAnswersAreFoundByMeaning(t *testing.T) {
	onEach(t, func(t *testing.T, b *bench) {
		c, ctx := b.cache(), t.Context()
		bucket, v := Bucket{here, "bucket"}, []float32{1, 0}
		put := func(name string, vector []float32, age time.Duration) Key {
			q := question()
			q.Namespace = name
			k := mustKey(t, q)
			e := answer(name)
			if err := c.Put(ctx, k, e, age); err != nil {
				t.Fatal(err)
			}
			// The vector may outlive the response.
			if err := c.AddVector(ctx, bucket, vector, k, e.Expires.Add(time.Hour)); err != nil {
				t.Fatal(err)
			}
			return k
		}
		near := func(threshold float64) string {
			t.Helper()
			e, err := c.FindNearest(ctx, bucket, v, threshold, MaxAge)
			if err != nil {
				t.Fatal(err)
			}
			if e == nil {
				return ""
			}
			return string(e.Body)
		}
		if got := near(0.5); got != "" {
			t.Errorf("an empty bucket gave %s", got)
		}
		put("close", []float32{0.97, 0.243}, time.Hour)
		put("closest", []float32{0.995, 0.0999}, time.Minute)
		if e, err := c.FindNearest(ctx, bucket, v, 0.95, 0); e == nil || err != nil {
			t.Errorf("for the standard age: %v %v", e, err)
		}
		if got := near(0.95); got != `{"answer":"closest"}` {
			t.Error(got)
		}
		b.clock.advance(2 * time.Minute)
		if got := near(0.95); got != `{"answer":"close"}` {
			t.Errorf("an expired answer stands in the way: %q", got)
		}
		if got := near(0.99); got != "" {
			t.Errorf("below the threshold: %s", got)
		}
		if err := c.Replace(ctx, bucket, v, 0.95, answer("new"), time.Hour); err != nil {
			t.Fatal(err)
		}
		if got := near(0.95); got != `{"answer":"new"}` {
			t.Errorf("after a refresh: %s", got)
		}
	})
}

type embedFunc func(ctx context.Context, text string) ([]float32, error)

func (f embedFunc) Embed(ctx context.Context, text string) ([]float32, error) { return f(ctx, text) }

func TestSeeking(t *testing.T) {
	c := onSQLite(t).cache()
	ctx := t.Context()
	s := c.StartEmbedding(ctx, embedFunc(func(_ context.Context, text string) ([]float32, error) { return []float32{float32(len(text))}, nil }), "four")
	s.Wait()
	if v, err := s.Vector(0); err != nil || len(v) != 1 || v[0] != 4 || !s.Done() {
		t.Errorf("%v %v", v, err)
	}
	open := make(chan struct{})
	s = c.StartEmbedding(ctx, embedFunc(func(context.Context, string) ([]float32, error) { <-open; return []float32{1}, nil }), "x")
	for range 2 {
		if _, err := s.Vector(time.Millisecond); !errors.Is(err, ErrLate) || s.Done() {
			t.Errorf("%v", err)
		}
	}
	close(open)
	s.Wait()
	if v, err := s.Vector(0); err != nil || len(v) != 1 {
		t.Errorf("what came late is lost: %v %v", v, err)
	}
	for name, f := range map[string]embedFunc{
		"fails":          func(context.Context, string) ([]float32, error) { return []float32{1}, errors.New("no") },
		"gives nothing":  func(context.Context, string) ([]float32, error) { return nil, nil },
		"panics":         func(context.Context, string) ([]float32, error) { panic("no") },
		"gives no angle": func(context.Context, string) ([]float32, error) { return []float32{0}, nil },
	} {
		s := c.StartEmbedding(ctx, f, "x")
		s.Wait()
		if v, err := s.Vector(0); err == nil || v != nil {
			t.Errorf("an embedder that %s: %v %v", name, v, err)
		}
	}
	if got := c.Counts(); got.EmbedFailed != 4 || got.EmbedLate != 1 {
		t.Errorf("%+v", got)
	}
}
