package s3vectors

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"gateway/shared/cache"
	"gateway/shared/cache/cachetest"
	"gateway/shared/store"
)

// service is a strict S3 Vectors: it knows the members of the API reference only
// and answers as it does.
type service struct {
	t  *testing.T
	mu sync.Mutex

	at      time.Time
	indexes map[string]map[string]stored // by name and key
	calls   []string
	fail    int // status of the next answers; 0: none
}

type stored struct {
	values []float64
	meta   map[string]any
}

type vectorJSON struct {
	Key  string `json:"key"`
	Data struct {
		Float32 []float64 `json:"float32"`
	} `json:"data"`
	Metadata map[string]any `json:"metadata"`
}

func (s *service) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, req.URL.Path)
	if req.Method != http.MethodPost || !strings.Contains(req.Header.Get("Authorization"), "/s3vectors/aws4_request") {
		s.t.Errorf("%s %s, signed %q", req.Method, req.URL, req.Header.Get("Authorization"))
	}
	if s.fail != 0 {
		s.refuse(w, s.fail, "AccessDeniedException")
		return
	}
	switch req.URL.Path {
	case "/CreateIndex":
		s.createIndex(w, req)
	case "/PutVectors":
		s.put(w, req)
	case "/QueryVectors":
		s.query(w, req)
	case "/ListIndexes":
		s.listIndexes(w, req)
	case "/ListVectors":
		s.listVectors(w, req)
	case "/DeleteVectors":
		s.remove(w, req)
	default:
		s.refuse(w, 404, "UnknownOperationException")
	}
}

func (s *service) refuse(w http.ResponseWriter, status int, kind string) {
	w.Header().Set("X-Amzn-Errortype", kind)
	w.WriteHeader(status)
	fmt.Fprintf(w, `{"message":"as asked"}`)
}

// read reads a request that must name the bucket.
func (s *service) read(req *http.Request, into any) {
	d := json.NewDecoder(req.Body)
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		s.t.Errorf("%s: %v", req.URL.Path, err)
	}
}

func (s *service) createIndex(w http.ResponseWriter, req *http.Request) {
	var in struct {
		VectorBucketName, IndexName, DataType, DistanceMetric string
		Dimension                                             int
	}
	s.read(req, &in)
	if in.DataType != "float32" || in.DistanceMetric != "cosine" || fmt.Sprint("answers-", in.Dimension) != in.IndexName || in.VectorBucketName != "vectors" {
		s.t.Errorf("%+v", in)
	}
	if s.indexes[in.IndexName] != nil {
		s.refuse(w, 409, "ConflictException")
		return
	}
	s.indexes[in.IndexName] = map[string]stored{}
	fmt.Fprint(w, `{"indexArn":"arn:aws:s3vectors:eu-west-1:1:bucket/vectors/index/x"}`)
}

func (s *service) put(w http.ResponseWriter, req *http.Request) {
	var in struct {
		VectorBucketName, IndexName string
		Vectors                     []vectorJSON
	}
	s.read(req, &in)
	index := s.indexes[in.IndexName]
	if index == nil {
		s.refuse(w, 404, "NotFoundException")
		return
	}
	for _, v := range in.Vectors {
		if fmt.Sprint("answers-", len(v.Data.Float32)) != in.IndexName || len(v.Key) > 1024 {
			s.refuse(w, 400, "ValidationException")
			return
		}
		index[v.Key] = stored{v.Data.Float32, v.Metadata}
	}
	fmt.Fprint(w, `{}`)
}

func (s *service) query(w http.ResponseWriter, req *http.Request) {
	var in struct {
		VectorBucketName, IndexName string
		TopK                        int
		QueryVector                 struct{ Float32 []float64 }
		Filter                      map[string][]map[string]map[string]any
		ReturnDistance              bool
		ReturnMetadata              bool
	}
	s.read(req, &in)
	index := s.indexes[in.IndexName]
	if index == nil {
		s.refuse(w, 404, "NotFoundException")
		return
	}
	if in.TopK < 1 || in.TopK > 30 || !in.ReturnDistance {
		s.t.Errorf("%+v", in)
	}
	type hit struct {
		Key      string  `json:"key"`
		Distance float64 `json:"distance"`
	}
	var hits []hit
	for key, v := range index {
		if matches(v.meta, in.Filter["$and"]) {
			hits = append(hits, hit{key, 1 - cosine(v.values, in.QueryVector.Float32)})
		}
	}
	sort.Slice(hits, func(i, j int) bool { return hits[i].Distance < hits[j].Distance })
	_ = json.NewEncoder(w).Encode(map[string]any{"distanceMetric": "cosine", "vectors": hits[:min(len(hits), in.TopK)]})
}

// matches applies $eq and $gt.
func matches(meta map[string]any, all []map[string]map[string]any) bool {
	for _, one := range all {
		for field, cond := range one {
			if want, ok := cond["$eq"]; ok && meta[field] != want {
				return false
			}
			if want, ok := cond["$gt"]; ok && meta[field].(float64) <= want.(float64) {
				return false
			}
		}
	}
	return len(all) > 0
}

func cosine(a, b []float64) float64 {
	var ab, aa, bb float64
	for i := range a {
		ab, aa, bb = ab+a[i]*b[i], aa+a[i]*a[i], bb+b[i]*b[i]
	}
	return ab / math.Sqrt(aa*bb)
}

func (s *service) listIndexes(w http.ResponseWriter, req *http.Request) {
	var in struct{ VectorBucketName, Prefix, NextToken string }
	s.read(req, &in)
	var out []map[string]any
	for name := range s.indexes {
		if strings.HasPrefix(name, in.Prefix) {
			out = append(out, map[string]any{"indexName": name, "vectorBucketName": "vectors", "indexArn": "arn", "creationTime": 1})
		}
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"indexes": out})
}

// listVectors gives pages of two.
func (s *service) listVectors(w http.ResponseWriter, req *http.Request) {
	var in struct {
		VectorBucketName, IndexName, NextToken string
		MaxResults                             int
		ReturnMetadata                         bool
	}
	s.read(req, &in)
	var keys []string
	for key := range s.indexes[in.IndexName] {
		if key > in.NextToken {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	out := map[string]any{}
	if len(keys) > 2 {
		keys, out["nextToken"] = keys[:2], keys[1]
	}
	var vectors []map[string]any
	for _, key := range keys {
		vectors = append(vectors, map[string]any{"key": key, "metadata": s.indexes[in.IndexName][key].meta})
	}
	out["vectors"] = vectors
	_ = json.NewEncoder(w).Encode(out)
}

func (s *service) remove(w http.ResponseWriter, req *http.Request) {
	var in struct {
		VectorBucketName, IndexName string
		Keys                        []string
	}
	s.read(req, &in)
	for _, key := range in.Keys {
		delete(s.indexes[in.IndexName], key)
	}
	fmt.Fprint(w, `{}`)
}

func serve(t *testing.T) (*service, *Index) {
	s := &service{t: t, at: time.Now(), indexes: map[string]map[string]stored{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
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
	cachetest.Run(t, cachetest.Harness{Open: func() cache.Neighbours { return x }, Now: x.now, Advance: s.advance})
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
