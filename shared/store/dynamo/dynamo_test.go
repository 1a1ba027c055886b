package dynamo_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"gateway/shared/store"
	"gateway/shared/store/dynamo"
	"gateway/shared/testkit/dynamotest"
	"gateway/shared/testkit/storetest"
)

func TestContract(t *testing.T) {
	endpoint := dynamotest.Start(t)
	storetest.Run(t, func(t *testing.T) store.Store { return dynamotest.Open(t, endpoint) }, dynamotest.Deviations()...)
}

func TestCreateTablesTwice(t *testing.T) {
	s := dynamotest.Open(t, dynamotest.Start(t))
	if err := s.CreateTables(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestNewNeedsAConfiguration(t *testing.T) {
	if _, err := dynamo.New(dynamo.Options{Prefix: "prod-"}); err == nil {
		t.Error("opened without one")
	}
}

func TestRowsOfOthersAreRefused(t *testing.T) {
	for name, item := range map[string]string{
		"fraction":     `"v":{"N":"1.5"}`,
		"large number": `"v":{"N":"9223372036854775808"}`,
		"list":         `"v":{"L":[]}`,
		"set":          `"v":{"SS":["a"]}`,
		"null":         `"v":{"NULL":true}`,
		"deep map":     `"v":{"M":{"a":{"M":{}}}}`,
		"list in map":  `"v":{"M":{"a":{"L":[]}}}`,
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			reply(w, 200, `{"Item":{"pk":{"S":"KEY#aa"},"sk":{"S":"-"},`+item+`}}`)
		}))
		s, err := dynamo.New(dynamo.Options{Config: dynamotest.Config(srv.URL)})
		if err != nil {
			t.Fatal(err)
		}
		if got, _, err := s.Table(store.Keys).Get(t.Context(), store.Credential("KEY", "aa"), true); err == nil {
			t.Errorf("%s: read as %v", name, got)
		}
		srv.Close()
	}
}

func BenchmarkNew(b *testing.B) {
	config := dynamotest.Config("http://127.0.0.1:1")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := dynamo.New(dynamo.Options{Config: config}); err != nil {
			b.Fatal(err)
		}
	}
}
