package s3vectors

import (
	"fmt"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"gateway/shared/cache"
	"gateway/shared/store"
	"gateway/shared/testkit/cachetest"
)

func serve(t *testing.T) (*service, *Index) {
	s := &service{t: t, at: time.Now(), indexes: map[string]map[string]stored{}}
	server := httptest.NewServer(s)
	t.Cleanup(func() {
		server.Close()
		if len(s.refused) > 0 {
			t.Errorf("refused as invalid: %v", s.refused)
		}
	})
	cfg := aws.Config{
		Region: "eu-west-1", BaseEndpoint: aws.String(server.URL), HTTPClient: server.Client(), RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("AKIDEXAMPLE", "secret", ""),
	}
	return s, New(cfg, "vectors", func() time.Time { s.mu.Lock(); defer s.mu.Unlock(); return s.at })
}

func (s *service) advance(d time.Duration) {
	s.mu.Lock()
	s.at = s.at.Add(d)
	s.mu.Unlock()
}

func TestIsNeighbours(t *testing.T) {
	s, x := serve(t)
	cachetest.Run(t, cachetest.Harness{Open: func() cache.VectorIndex { return x }, Now: x.now, Advance: s.advance})
}

func TestSweepDeletesWhatIsOver(t *testing.T) {
	s, x := serve(t)
	b := cache.Bucket{Scope: store.Scope{Org: "o", Workspace: "w"}, ID: "b"}
	for i := range 9 {
		v := cache.Vector{ID: fmt.Sprint(i), Values: make([]float32, 2+i%2), Expires: s.at.Add(time.Duration(i+1) * time.Minute)}
		v.Values[0] = 1
		if err := x.Add(t.Context(), b, v); err != nil {
			t.Fatal(err)
		}
	}
	s.advance(5*time.Minute + time.Second)
	if err := x.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, index := range s.indexes {
		for key := range index {
			left = append(left, key[strings.LastIndex(key, "/")+1:])
		}
	}
	slices.Sort(left)
	if !slices.Equal(left, []string{"5", "6", "7", "8"}) {
		t.Errorf("left: %v", left)
	}
}

func TestAServiceThatRefusesIsAnError(t *testing.T) {
	s, x := serve(t)
	s.fail = 403
	b := cache.Bucket{Scope: store.Scope{Org: "o", Workspace: "w"}, ID: "b"}
	if err := x.Add(t.Context(), b, cache.Vector{ID: "1", Values: []float32{1}, Expires: s.at.Add(time.Hour)}); err == nil {
		t.Error("kept")
	}
	if _, err := x.Nearest(t.Context(), b, []float32{1}, 0.9, 1); err == nil {
		t.Error("found")
	}
	if err := x.Sweep(t.Context()); err == nil {
		t.Error("swept")
	}
}

// Matches beyond the first page of a response count too, up to what was asked for.
func TestAllPagesOfAnAnswerAreRead(t *testing.T) {
	s, x := serve(t)
	b := cache.Bucket{Scope: store.Scope{Org: "o", Workspace: "w"}, ID: "b"}
	const entries = 40
	for i := range entries {
		v := cache.Vector{ID: fmt.Sprint(i), Values: []float32{1, float32(i) / 1000}, Expires: s.at.Add(time.Hour)}
		if err := x.Add(t.Context(), b, v); err != nil {
			t.Fatal(err)
		}
	}
	for k, want := range map[int]int{1: 1, 7: 7, 30: 30, 31: 30, 1000: 30} {
		found, err := x.Nearest(t.Context(), b, []float32{1, 0}, 0.5, k)
		if err != nil || len(found) != want {
			t.Errorf("%d: %d matches, %v", k, len(found), err)
		}
		for i, m := range found {
			if m.ID != fmt.Sprint(i) {
				t.Errorf("match %d is %s", i, m.ID)
			}
		}
	}
}

// What is over is deleted in parts that the service takes, in all indexes.
func TestSweepOfMany(t *testing.T) {
	s, x := serve(t)
	over := map[string]any{metaBucket: "b", metaExpires: float64(s.at.Add(-time.Hour).Unix())}
	for _, index := range []string{"answers-2", "answers-3", "answers-4", "answers-5"} {
		s.indexes[index] = map[string]stored{}
		for i := range maxDelete + 3 {
			s.indexes[index][fmt.Sprintf("b/%04d", i)] = stored{meta: over}
		}
	}
	s.indexes["others"] = map[string]stored{"b/1": {meta: over}}
	if err := x.Sweep(t.Context()); err != nil {
		t.Fatal(err)
	}
	for index, left := range s.indexes {
		if want := map[string]int{"others": 1}[index]; len(left) != want {
			t.Errorf("%s: %d left", index, len(left))
		}
	}
}
