package dynamo_test

import (
	"encoding/pem"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"gateway/shared/store"
	"gateway/shared/store/dynamo"
	"gateway/shared/store/dynamo/dynamotest"
	"gateway/shared/store/storetest"
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

// A server with a certificate of its own, as behind a company's proxy, found by
// AWS_CA_BUNDLE; nothing is sent to it before the first operation.
func TestNewFromTheEnvironment(t *testing.T) {
	var calls atomic.Int64
	var target, table string
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		body, _ := io.ReadAll(r.Body)
		target, table = r.Header.Get("X-Amz-Target"), string(body)
		reply(w, 200, `{"Item":{"pk":{"S":"KEY#aa"},"sk":{"S":"-"},"n":{"N":"7"}}}`)
	}))
	t.Cleanup(srv.Close)
	bundle := filepath.Join(t.TempDir(), "ca.pem")
	cert := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	if err := os.WriteFile(bundle, cert, 0o600); err != nil {
		t.Fatal(err)
	}
	for k, v := range map[string]string{
		"AWS_CA_BUNDLE": bundle, "AWS_REGION": "eu-central-1", "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret",
		"AWS_CONFIG_FILE": os.DevNull, "AWS_SHARED_CREDENTIALS_FILE": os.DevNull, "AWS_ENDPOINT_URL": srv.URL,
	} {
		t.Setenv(k, v)
	}
	s, err := dynamo.New(t.Context(), dynamo.Options{Prefix: "prod-"})
	if err != nil {
		t.Fatal(err)
	}
	if n := calls.Load(); n != 0 {
		t.Errorf("%d calls before the first operation", n)
	}
	item, ok, err := s.Table(store.Keys).Get(t.Context(), store.Credential("KEY", "aa"), true)
	if err != nil || !ok || item.Int("n") != 7 {
		t.Errorf("got %v, %v, %v", item, ok, err)
	}
	if target != "DynamoDB_20120810.GetItem" || !strings.Contains(table, `"TableName":"prod-keys"`) || !strings.Contains(table, `"ConsistentRead":true`) {
		t.Errorf("sent %s %s", target, table)
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
		s, err := dynamo.New(t.Context(), dynamo.Options{Config: dynamotest.Config(srv.URL)})
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
	b.Setenv("AWS_REGION", "eu-central-1")
	b.Setenv("AWS_CA_BUNDLE", "")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := dynamo.New(b.Context(), dynamo.Options{}); err != nil {
			b.Fatal(err)
		}
	}
}
