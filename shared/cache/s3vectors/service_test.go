package s3vectors

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"regexp"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
	"time"
)

// service is a strict S3 Vectors: it knows the members of the API reference only, spelled
// as there, keeps to its limits, and rejects what it rejects. Pages are as small as they
// may be.
type service struct {
	t  *testing.T
	mu sync.Mutex

	at      time.Time
	indexes map[string]map[string]stored // by name and key
	calls   []string
	refused []string // what was rejected as invalid, and why
	fail    int      // status of the next answers; 0 if there is none
}

type stored struct {
	values []float64
	meta   map[string]any
}

// The limits of the service.
const (
	mostTopK       = 100
	mostVectors    = 500 // of one PutVectors or DeleteVectors
	mostListed     = 1000
	mostIndexes    = 500
	mostKey        = 1024 // characters
	mostFilterable = 2048 // bytes of metadata that can be filtered by
	mostDimensions = 4096
	page           = 2
)

var (
	bucketName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]{1,61}[a-z0-9]$`)
	indexName  = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$`)
)

func (s *service) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls = append(s.calls, req.URL.Path)
	if req.Method != http.MethodPost || req.Header.Get("Content-Type") != "application/json" || !strings.Contains(req.Header.Get("Authorization"), "/s3vectors/aws4_request") {
		s.t.Errorf("%s %s, %q, signed %q", req.Method, req.URL, req.Header.Get("Content-Type"), req.Header.Get("Authorization"))
	}
	if s.fail != 0 {
		refuse(w, s.fail, "AccessDeniedException", "as asked")
		return
	}
	serve, members := s.operation(req.URL.Path)
	if serve == nil {
		refuse(w, 404, "UnknownOperationException", req.URL.Path)
		return
	}
	in, err := read(req.Body, members)
	if err == nil && !bucketName.MatchString(in.text("vectorBucketName")) {
		err = invalid("vectorBucketName")
	}
	if err == nil && strings.Contains(members, "indexName") && !indexName.MatchString(in.text("indexName")) {
		err = invalid("indexName")
	}
	var out any
	if err == nil {
		out, err = serve(in)
	}
	switch f := err.(type) {
	case nil:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(out)
	case failure:
		if f.kind == "ValidationException" {
			s.refused = append(s.refused, f.message)
		}
		refuse(w, f.status, f.kind, f.message)
	default:
		s.t.Error(err)
	}
}

func (s *service) operation(path string) (serve func(body) (any, error), members string) {
	switch path {
	case "/CreateIndex":
		return s.createIndex, "vectorBucketName indexName dataType dimension distanceMetric metadataConfiguration encryptionConfiguration tags"
	case "/PutVectors":
		return s.put, "vectorBucketName indexName vectors"
	case "/QueryVectors":
		return s.query, "vectorBucketName indexName topK queryVector filter returnDistance returnMetadata nextToken"
	case "/ListIndexes":
		return s.listIndexes, "vectorBucketName prefix maxResults nextToken"
	case "/ListVectors":
		return s.listVectors, "vectorBucketName indexName maxResults nextToken returnData returnMetadata segmentCount segmentIndex"
	case "/DeleteVectors":
		return s.remove, "vectorBucketName indexName keys"
	}
	return nil, ""
}

type failure struct {
	status        int
	kind, message string
}

func (f failure) Error() string { return f.message }

func invalid(format string, args ...any) error {
	return failure{400, "ValidationException", fmt.Sprintf(format, args...)}
}

func refuse(w http.ResponseWriter, status int, kind, message string) {
	w.Header().Set("X-Amzn-Errortype", kind)
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"message": message})
}

// body is a request by the names of its members.
type body map[string]any

func read(r io.Reader, members string) (body, error) {
	var in body
	if err := json.NewDecoder(r).Decode(&in); err != nil {
		return nil, invalid("not JSON")
	}
	for name := range in {
		if !slices.Contains(strings.Fields(members), name) {
			return nil, invalid("unknown member %s", name)
		}
	}
	return in, nil
}

func (b body) text(name string) string { s, _ := b[name].(string); return s }
func (b body) yes(name string) bool    { v, _ := b[name].(bool); return v }

// number is an integer within bounds; def where it is absent and def is one.
func (b body) number(name string, least, most, def int) (int, error) {
	v, present := b[name]
	n, ok := v.(float64)
	switch {
	case !present && def >= least:
		return def, nil
	case !ok || n != math.Trunc(n) || n < float64(least) || n > float64(most):
		return 0, invalid("%s is %v", name, v)
	}
	return int(n), nil
}

// vector reads the union of vector data, which has one member.
func vector(v any, dimensions int) ([]float64, error) {
	union, _ := v.(map[string]any)
	list, _ := union["float32"].([]any)
	if len(union) != 1 || len(list) != dimensions {
		return nil, invalid("a vector of %d for %d dimensions", len(list), dimensions)
	}
	out, sum := make([]float64, len(list)), 0.0
	for i := range list {
		n, ok := list[i].(float64)
		if !ok || math.Abs(n) > math.MaxFloat32 {
			return nil, invalid("%v is no float32", list[i])
		}
		out[i], sum = n, sum+n*n
	}
	if sum == 0 {
		return nil, invalid("a zero vector has no cosine")
	}
	return out, nil
}

func dimensionsOf(index string) (n int) {
	_, _ = fmt.Sscanf(index, "answers-%d", &n)
	return n
}

func (s *service) index(in body) (map[string]stored, error) {
	if index := s.indexes[in.text("indexName")]; index != nil {
		return index, nil
	}
	return nil, failure{404, "NotFoundException", "no such index"}
}

func (s *service) createIndex(in body) (any, error) {
	dimensions, err := in.number("dimension", 1, mostDimensions, 0)
	name := in.text("indexName")
	switch {
	case err != nil:
		return nil, err
	case in.text("dataType") != "float32":
		return nil, invalid("dataType")
	case in.text("distanceMetric") != "cosine" && in.text("distanceMetric") != "euclidean":
		return nil, invalid("distanceMetric")
	case dimensionsOf(name) != dimensions || in.text("distanceMetric") != "cosine":
		s.t.Errorf("the index %s of %d dimensions by %s", name, dimensions, in.text("distanceMetric"))
	case s.indexes[name] != nil:
		return nil, failure{409, "ConflictException", "it is there"}
	}
	s.indexes[name] = map[string]stored{}
	return map[string]any{"indexArn": "arn:aws:s3vectors:eu-west-1:1:bucket/vectors/index/x"}, nil
}

func (s *service) put(in body) (any, error) {
	index, err := s.index(in)
	if err != nil {
		return nil, err
	}
	list, _ := in["vectors"].([]any)
	if len(list) == 0 || len(list) > mostVectors {
		return nil, invalid("%d vectors", len(list))
	}
	for _, e := range list {
		one, _ := e.(map[string]any)
		for name := range one {
			if name != "key" && name != "data" && name != "metadata" {
				return nil, invalid("unknown member %s", name)
			}
		}
		key, _ := one["key"].(string)
		values, err := vector(one["data"], dimensionsOf(in.text("indexName")))
		if err != nil {
			return nil, err
		}
		meta, _ := one["metadata"].(map[string]any)
		raw, _ := json.Marshal(meta)
		if key == "" || len([]rune(key)) > mostKey || len(raw) > mostFilterable {
			return nil, invalid("a key of %d and metadata of %d", len(key), len(raw))
		}
		for name, v := range meta {
			switch v.(type) {
			case string, float64, bool, []any:
			default:
				return nil, invalid("metadata %s is %T", name, v)
			}
		}
		index[key] = stored{values, meta}
	}
	return map[string]any{}, nil
}

func (s *service) query(in body) (any, error) {
	index, err := s.index(in)
	if err != nil {
		return nil, err
	}
	most, err := in.number("topK", 1, mostTopK, 0)
	if err != nil {
		return nil, err
	}
	wanted, err := vector(in["queryVector"], dimensionsOf(in.text("indexName")))
	if err != nil {
		return nil, err
	}
	type hit struct {
		Key      string         `json:"key"`
		Distance *float64       `json:"distance,omitempty"`
		Metadata map[string]any `json:"metadata,omitempty"`
	}
	var hits []hit
	for key, v := range index {
		ok, err := matches(v.meta, in["filter"])
		if err != nil {
			return nil, err
		}
		if ok {
			d := 1 - cosine(v.values, wanted)
			hits = append(hits, hit{Key: key, Distance: &d})
		}
	}
	sort.Slice(hits, func(i, j int) bool { return *hits[i].Distance < *hits[j].Distance })
	hits = hits[:min(len(hits), most)]
	var from int
	_, _ = fmt.Sscan(in.text("nextToken"), &from)
	out := map[string]any{"distanceMetric": "cosine"}
	if from+page < len(hits) {
		out["nextToken"] = fmt.Sprint(from + page)
	}
	hits = hits[from:min(len(hits), from+page)]
	if !in.yes("returnDistance") {
		for i := range hits {
			hits[i].Distance = nil
		}
	}
	out["vectors"] = hits
	return out, nil
}

func cosine(a, b []float64) float64 {
	var ab, aa, bb float64
	for i := range a {
		ab, aa, bb = ab+a[i]*b[i], aa+a[i]*a[i], bb+b[i]*b[i]
	}
	return ab / math.Sqrt(aa*bb)
}

// after returns the names behind a token, at most a page, and the next token.
func after[V any](all map[string]V, keep func(string) bool, token string) (names []string, next any) {
	for name := range all {
		if name > token && keep(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if len(names) > page {
		return names[:page], names[page-1]
	}
	return names, nil
}

func (s *service) listIndexes(in body) (any, error) {
	if _, err := in.number("maxResults", 1, mostIndexes, mostIndexes); err != nil {
		return nil, err
	}
	names, next := after(s.indexes, func(n string) bool { return strings.HasPrefix(n, in.text("prefix")) }, in.text("nextToken"))
	out := []map[string]any{}
	for _, name := range names {
		out = append(out, map[string]any{"indexName": name, "vectorBucketName": in.text("vectorBucketName"), "indexArn": "arn", "creationTime": 1})
	}
	return map[string]any{"indexes": out, "nextToken": next}, nil
}

func (s *service) listVectors(in body) (any, error) {
	index, err := s.index(in)
	if err != nil {
		return nil, err
	}
	if _, err := in.number("maxResults", 1, mostListed, 500); err != nil {
		return nil, err
	}
	keys, next := after(index, func(string) bool { return true }, in.text("nextToken"))
	out := []map[string]any{}
	for _, key := range keys {
		one := map[string]any{"key": key}
		if in.yes("returnMetadata") {
			one["metadata"] = index[key].meta
		}
		out = append(out, one)
	}
	return map[string]any{"vectors": out, "nextToken": next}, nil
}

func (s *service) remove(in body) (any, error) {
	index, err := s.index(in)
	if err != nil {
		return nil, err
	}
	keys, _ := in["keys"].([]any)
	if len(keys) == 0 || len(keys) > mostVectors {
		return nil, invalid("%d keys", len(keys))
	}
	for _, key := range keys {
		name, ok := key.(string)
		if !ok {
			return nil, invalid("a key that is %T", key)
		}
		delete(index, name)
	}
	return map[string]any{}, nil
}
