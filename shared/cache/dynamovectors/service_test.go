package dynamovectors

import (
	"encoding/json"
	"fmt"
	"hash/crc32"
	"io"
	"math"
	"net/http"
	"regexp"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"gateway/shared/cache/dynamovectors/layout"
)

// service is a strict DynamoDB with vector indexes, as far as this package calls it: it
// knows the members of the API reference, spelled as there, and rejects what the developer
// guide says is rejected.
type service struct {
	t *testing.T

	mu         sync.Mutex
	at         time.Time
	dimensions []int                     // of the indexes, answers-<n> on v<n>
	items      map[string]map[string]any // by pk and sk
	building   bool
	status     int // of the next answers; 0 if there is none
	refused    []string
	lastTopK   int
}

var signature = regexp.MustCompile(`^AWS4-HMAC-SHA256 Credential=[^/]+/\d{8}/eu-west-1/dynamodb/aws4_request, `)

const tableARN = "arn:aws:dynamodb:eu-west-1:123456789012:table/gateway-vectors"

type invalid string

func (i invalid) Error() string { return string(i) }

func refusal(format string, args ...any) error { return invalid(fmt.Sprintf(format, args...)) }

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/x-amz-json-1.0" || !signature.MatchString(r.Header.Get("Authorization")) {
		s.t.Errorf("%s %s %q %q", r.Method, r.URL, r.Header.Get("Content-Type"), r.Header.Get("Authorization"))
	}
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		s.t.Error(err)
		return
	}
	if s.status != 0 {
		answer(w, s.status, map[string]string{"__type": "com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException", "message": "as asked"})
		return
	}
	var in map[string]any
	if err := json.Unmarshal(raw, &in); err != nil {
		s.t.Error(err)
	}
	var out any
	switch target := r.Header.Get("X-Amz-Target"); target {
	case "DynamoDB_20120810.PutItem":
		out, err = s.put(in)
	case "DynamoDB_20120810.SearchVectors":
		out, err = s.search(in)
	default:
		s.t.Errorf("called %s", target)
	}
	if err != nil {
		s.refused = append(s.refused, err.Error())
		answer(w, 400, map[string]string{"__type": "com.amazon.coral.validate#ValidationException", "message": err.Error()})
		return
	}
	answer(w, 200, out)
}

func answer(w http.ResponseWriter, status int, v any) {
	raw, _ := json.Marshal(v)
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.Header().Set("X-Amz-Crc32", strconv.FormatUint(uint64(crc32.ChecksumIEEE(raw)), 10))
	w.WriteHeader(status)
	_, _ = w.Write(raw)
}

// only rejects members that the operation does not have.
func only(in map[string]any, members ...string) error {
	for name := range in {
		if !slices.Contains(members, name) {
			return refusal("unknown member %s", name)
		}
	}
	if in["TableName"] != tableARN {
		return refusal("TableName %v", in["TableName"])
	}
	return nil
}

// one reads an attribute value of a type.
func one(v any, kind string) (any, error) {
	m, _ := v.(map[string]any)
	if len(m) != 1 || m[kind] == nil {
		return nil, refusal("%v is no %s", v, kind)
	}
	return m[kind], nil
}

// vectorOf reads a list of numbers.
func vectorOf(v any, dimensions int) ([]float64, error) {
	list, _ := v.([]any)
	if len(list) != dimensions {
		return nil, refusal("a vector of %d for %d dimensions", len(list), dimensions)
	}
	out := make([]float64, len(list))
	for i := range list {
		n, err := one(list[i], "N")
		if err != nil {
			return nil, err
		}
		s, _ := n.(string)
		if out[i], err = strconv.ParseFloat(s, 32); err != nil || math.IsInf(out[i], 0) || math.IsNaN(out[i]) {
			return nil, refusal("the element %d is %q", i, s)
		}
	}
	return out, nil
}

func (s *service) put(in map[string]any) (any, error) {
	if err := only(in, "TableName", "Item", "ConditionExpression", "ExpressionAttributeNames", "ExpressionAttributeValues", "ReturnValues", "ReturnConsumedCapacity"); err != nil {
		return nil, err
	}
	attributes, _ := in["Item"].(map[string]any)
	item, indexed := map[string]any{}, 0
	for _, name := range []string{layout.PK, layout.SK, layout.Tenant} {
		v, err := one(attributes[name], "S")
		if err != nil || v == "" {
			return nil, refusal("%s: %v", name, err)
		}
		item[name] = v
	}
	expires, err := one(attributes[layout.Expires], "N")
	if err != nil {
		return nil, err
	}
	item[layout.Expires] = expires
	for _, n := range s.dimensions {
		list, there := attributes[attrVector(n)]
		if !there {
			continue
		}
		l, err := one(list, "L")
		if err != nil {
			return nil, err
		}
		if item[attrVector(n)], err = vectorOf(l, n); err != nil {
			return nil, err
		}
		indexed++
	}
	if indexed != 1 || len(attributes) != 5 {
		s.t.Errorf("an item of %d attributes in %d indexes", len(attributes), indexed)
	}
	s.items[item[layout.PK].(string)+"/"+item[layout.SK].(string)] = item
	return map[string]any{}, nil
}

var equality = regexp.MustCompile(`^(#\w+) = (:\w+)$`)

func (s *service) search(in map[string]any) (any, error) {
	if err := only(in, "TableName", "IndexName", "SearchVector", "TopK", "ExpressionAttributeNames", "ExpressionAttributeValues", "ProjectionExpression", "ReturnConsumedCapacity", "SearchConditionExpression"); err != nil {
		return nil, err
	}
	index, _ := in["IndexName"].(string)
	n, err := strconv.Atoi(strings.TrimPrefix(index, layout.Index))
	if err != nil || !slices.Contains(s.dimensions, n) {
		return nil, refusal("The table does not have the specified index: %s", index)
	}
	if s.building {
		return nil, refusal("Cannot search backfilling vector index: %s", index)
	}
	top, _ := in["TopK"].(float64)
	if top < 1 || top > 100 || top != math.Trunc(top) {
		return nil, refusal("Provided TopK value is out of valid range")
	}
	s.lastTopK = int(top)
	wanted, err := vectorOf(in["SearchVector"], n)
	if err != nil {
		return nil, err
	}
	tenant, err := partition(in)
	if err != nil {
		return nil, err
	}
	type hit struct {
		Item  map[string]any
		Score float64
	}
	hits := []hit{}
	for _, item := range s.items {
		v, ok := item[attrVector(n)].([]float64)
		if !ok || item[layout.Tenant] != tenant {
			continue
		}
		hits = append(hits, hit{map[string]any{layout.SK: map[string]any{"S": item[layout.SK]}, layout.Expires: map[string]any{"N": item[layout.Expires]}}, 1 - cosine(v, wanted)})
	}
	sort.Slice(hits, func(i, j int) bool { return hits[i].Score < hits[j].Score })
	return map[string]any{"SearchResults": hits[:min(len(hits), int(top))]}, nil
}

// partition is the value of the index's partition key, which a search must name
// with =, and the projection, which must be of what the index holds.
func partition(in map[string]any) (any, error) {
	names, _ := in["ExpressionAttributeNames"].(map[string]any)
	values, _ := in["ExpressionAttributeValues"].(map[string]any)
	expression, filtered := in["SearchConditionExpression"].(string)
	if !filtered {
		return nil, refusal("SearchConditionExpression must be provided when SearchSchema has a HASH key")
	}
	m := equality.FindStringSubmatch(expression)
	if m == nil {
		return nil, refusal("Invalid comparator used in SearchConditionExpression")
	}
	if names[m[1]] != layout.Tenant {
		return nil, refusal("%v is not in the search schema", names[m[1]])
	}
	projection, _ := in["ProjectionExpression"].(string)
	for _, p := range strings.Split(projection, ", ") {
		if name, _ := names[p].(string); !slices.Contains([]string{layout.PK, layout.SK, layout.Tenant, layout.Expires}, name) {
			return nil, refusal("%s is not projected", p)
		}
	}
	return one(values[m[2]], "S")
}

func cosine(a, b []float64) float64 {
	var ab, aa, bb float64
	for i := range a {
		ab, aa, bb = ab+a[i]*b[i], aa+a[i]*a[i], bb+b[i]*b[i]
	}
	return ab / math.Sqrt(aa*bb)
}
