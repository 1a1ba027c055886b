package dynamovectors

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"gateway/shared/cache"
	"gateway/shared/cache/dynamovectors/layout"
	"gateway/shared/store"
	"gateway/shared/testkit/cachetest"
)

func serve(t *testing.T, dimensions ...int) (*service, *Index) {
	s := &service{t: t, at: time.Now(), dimensions: dimensions, items: map[string]map[string]any{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	cfg := aws.Config{
		Region: "eu-west-1", BaseEndpoint: aws.String(server.URL), HTTPClient: server.Client(), RetryMaxAttempts: 1,
		Credentials: credentials.NewStaticCredentialsProvider("AKIDEXAMPLE", "secret", ""),
	}
	return s, New(cfg, tableARN, dimensions, func() time.Time { s.mu.Lock(); defer s.mu.Unlock(); return s.at })
}

func (s *service) advance(d time.Duration) {
	s.mu.Lock()
	s.at = s.at.Add(d)
	s.mu.Unlock()
}

var (
	bucket = cache.Bucket{Scope: store.Scope{Org: "o", Workspace: "w"}, ID: "b"}
	later  = time.Now().Add(time.Hour)
)

func TestIsNeighbours(t *testing.T) {
	t.Parallel()
	s, x := serve(t, 256, 128)
	cachetest.Run(t, cachetest.Harness{Open: func() cache.VectorIndex { return x }, Now: x.now, Advance: s.advance})
	if len(s.refused) > 0 {
		t.Errorf("refused: %q", s.refused)
	}
}

// Numbers of every size are carried, and few digits change no order.
func TestNumbers(t *testing.T) {
	t.Parallel()
	_, x := serve(t, 3)
	for i, v := range [][]float32{{1, 0, 0}, {1e-38, 0, 1e-40}, {3e38, 1, -3e38}, {0.123456789, 0.987654321, -1e-9}, {-0.00001, 12345.678, 0}} {
		id := fmt.Sprint(i)
		if err := x.Add(t.Context(), bucket, cache.Vector{ID: id, Values: v, Expires: later}); err != nil {
			t.Fatal(err)
		}
		got, err := x.Nearest(t.Context(), bucket, v, 0.999, 5)
		if err != nil || len(got) == 0 || got[0].Score < 0.9999 {
			t.Errorf("%v: %v, %v", v, got, err)
		}
	}
}

// What is over is in an index for a while, and hides nothing.
func TestWhatIsOverHidesNothing(t *testing.T) {
	t.Parallel()
	s, x := serve(t, 2)
	for i := range 40 {
		until := s.at.Add(time.Minute)
		if i >= 30 {
			until = s.at.Add(time.Hour)
		}
		if err := x.Add(t.Context(), bucket, cache.Vector{ID: fmt.Sprint(i), Values: []float32{1, float32(i) / 100}, Expires: until}); err != nil {
			t.Fatal(err)
		}
	}
	s.advance(10 * time.Minute)
	for k, want := range map[int]int{1: 1, 4: 4, 10: 10, 1000: 10} {
		got, err := x.Nearest(t.Context(), bucket, []float32{1, 0}, 0.5, k)
		if err != nil || len(got) != want {
			t.Errorf("%d: %d matches, %v", k, len(got), err)
		}
		if s.lastTopK > maxTopK {
			t.Errorf("%d were asked for", s.lastTopK)
		}
	}
}

func TestAnIndexThatIsNotReadyFindsNothing(t *testing.T) {
	t.Parallel()
	s, x := serve(t, 2)
	s.building = true
	if got, err := x.Nearest(t.Context(), bucket, []float32{1, 0}, 0.5, 4); got != nil || err != nil {
		t.Errorf("while it is filled: %v, %v", got, err)
	}
	s.dimensions = []int{4} // the search endpoint lags behind
	if got, err := x.Nearest(t.Context(), bucket, []float32{1, 0}, 0.5, 4); got != nil || err != nil {
		t.Errorf("before it is known: %v, %v", got, err)
	}
}

func TestVectorsWithoutAnIndexAreNamed(t *testing.T) {
	t.Parallel()
	s, x := serve(t, 256)
	err := x.Add(t.Context(), bucket, cache.Vector{ID: "x", Values: []float32{1, 0}, Expires: later})
	if !errors.Is(err, ErrDimensions) || !strings.Contains(err.Error(), "2 dimensions") || !strings.Contains(err.Error(), "256") {
		t.Errorf("%v", err)
	}
	if _, err := x.Nearest(t.Context(), bucket, []float32{1, 0}, 0.5, 4); !errors.Is(err, ErrDimensions) {
		t.Errorf("%v", err)
	}
	if len(s.items) != 0 {
		t.Error("it was kept")
	}
}

func TestFailuresAreErrors(t *testing.T) {
	t.Parallel()
	for _, status := range []int{400, 500} {
		s, x := serve(t, 2)
		s.status = status
		if _, err := x.Nearest(t.Context(), bucket, []float32{1, 0}, 0.5, 4); err == nil || !strings.HasPrefix(err.Error(), "cache/dynamovectors: ") {
			t.Errorf("%d: %v", status, err)
		}
		if err := x.Add(t.Context(), bucket, cache.Vector{ID: "x", Values: []float32{1, 0}, Expires: later}); err == nil {
			t.Errorf("%d: kept", status)
		}
	}
}

func TestTheStacksKnowTheSameBound(t *testing.T) {
	t.Parallel()
	if layout.MaxDimensions != cache.MaxDimensions {
		t.Errorf("%d, in the cache %d", layout.MaxDimensions, cache.MaxDimensions)
	}
}
