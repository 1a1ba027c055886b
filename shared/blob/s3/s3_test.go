package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"gateway/shared/blob"
	"gateway/shared/fault"
	"gateway/shared/testkit/blobtest"
)

func config() aws.Config {
	return aws.Config{
		Region:           "eu-west-1",
		Credentials:      credentials.NewStaticCredentialsProvider("AKIDEXAMPLE", "secret", ""),
		RetryMaxAttempts: 1,
	}
}

// fake serves S3 over loopback with one bucket.
func fake(t *testing.T, name string) string {
	t.Helper()
	backend := s3mem.New()
	if err := backend.CreateBucket(name); err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(gofakes3.New(backend).Server())
	t.Cleanup(s.Close)
	return s.URL
}

func TestContract(t *testing.T) {
	blobtest.Run(t, func(t *testing.T) blob.Bucket {
		return New(config(), "bucket", Endpoint(fake(t, "bucket")), PathStyle())
	})
}

func TestContractUnderAPrefix(t *testing.T) {
	blobtest.Run(t, func(t *testing.T) blob.Bucket {
		url := fake(t, "bucket")
		outside := New(config(), "bucket", Endpoint(url), PathStyle())
		for _, key := range []string{"outside", "data-2/outside", "z/outside"} {
			if err := outside.Put(context.Background(), key, nil); err != nil {
				t.Fatal(err)
			}
		}
		return New(config(), "bucket", Endpoint(url), PathStyle(), Prefix("/data/"))
	})
}

func TestListReadsMoreThanOnePage(t *testing.T) {
	b := New(config(), "bucket", Endpoint(fake(t, "bucket")), PathStyle())
	ctx := context.Background()
	for i := range 1100 {
		if err := b.Put(ctx, fmt.Sprintf("k/%04d", i), nil); err != nil {
			t.Fatal(err)
		}
	}
	keys, err := b.List(ctx, "k/", "k/0004", 1050)
	if err != nil || len(keys) != 1050 || keys[0] != "k/0005" || keys[1049] != "k/1054" {
		t.Errorf("%d keys, %v", len(keys), err)
	}
}

func TestABrokenServiceIsUnavailableAndNotAnAbsentObject(t *testing.T) {
	ctx := context.Background()
	for name, h := range map[string]http.HandlerFunc{
		"500": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) },
		"403": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(403) },
		"no bucket": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/xml")
			w.WriteHeader(404)
			fmt.Fprint(w, `<Error><Code>NoSuchBucket</Code><Message>x</Message></Error>`)
		},
		"cut": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			fmt.Fprint(w, "short")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(h)
			defer s.Close()
			b := New(config(), "bucket", Endpoint(s.URL), PathStyle())
			_, err := b.Get(ctx, "k", 0)
			if !fault.Is(err, fault.ServiceUnavailable) || errors.Is(err, blob.ErrNotFound) {
				t.Errorf("get: %v, want service_unavailable", err)
			}
			if strings.Contains(fault.From(err).Message, "bucket") {
				t.Errorf("the caller would see %q", fault.From(err).Message)
			}
			if name == "cut" {
				return
			}
			if err := b.Put(ctx, "k", []byte("x")); !fault.Is(err, fault.ServiceUnavailable) {
				t.Errorf("put: %v", err)
			}
			if _, err := b.List(ctx, "", "", 1); !fault.Is(err, fault.ServiceUnavailable) {
				t.Errorf("list: %v", err)
			}
		})
	}
}

func TestNewMakesNoCall(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a call was made") }))
	defer s.Close()
	New(config(), "bucket", Endpoint(s.URL))
}

func TestLinksNeedNoCredential(t *testing.T) {
	b := New(config(), "bucket", Endpoint(fake(t, "bucket")), PathStyle(), Prefix("data"))
	if err := b.Put(context.Background(), "exports/a.jsonl", []byte("{}\n")); err != nil {
		t.Fatal(err)
	}
	link, err := b.Link(context.Background(), "exports/a.jsonl", time.Hour)
	if err != nil || !strings.Contains(link, "/bucket/data/exports/a.jsonl?") || !strings.Contains(link, "X-Amz-Expires=3600") || strings.Contains(link, "secret") {
		t.Fatal(link, err)
	}
	resp, err := http.Get(link)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if body, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != 200 || string(body) != "{}\n" {
		t.Errorf("%d %q %v", resp.StatusCode, body, err)
	}
	if _, err := b.Link(context.Background(), "../x", time.Hour); err == nil {
		t.Error("a bad key is taken")
	}
}
