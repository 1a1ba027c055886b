package kms

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"gateway/shared/fault"
	"gateway/shared/seal"
	"gateway/shared/testkit/kmstest"
	"gateway/shared/testkit/sealtest"
)

var (
	bg    = context.Background()
	place = seal.Binding{Org: "org-1", Table: "control", PK: "p", SK: "s", Version: 1}
)

func config() aws.Config {
	return aws.Config{
		Region:           "eu-west-1",
		Credentials:      credentials.NewStaticCredentialsProvider("AKIDEXAMPLE", "secret", ""),
		RetryMaxAttempts: 1,
	}
}

func start(t *testing.T) *kmstest.Server {
	t.Helper()
	s := kmstest.Start()
	t.Cleanup(s.Close)
	return s
}

func wrapper(s *kmstest.Server, key string, former ...string) *Wrapper {
	return New(config(), Options{Key: key, FormerKeys: former, Endpoint: s.URL()})
}

func TestContract(t *testing.T) {
	s := start(t)
	key, other := s.CreateKey(), s.CreateKey()
	sealtest.Run(t, sealtest.Harness{
		Open:    func(*testing.T) seal.Wrapper { return wrapper(s, key) },
		Foreign: func(*testing.T) seal.Wrapper { return wrapper(s, other) },
	})
}

func TestAFormerKeyOpens(t *testing.T) {
	s := start(t)
	former, key := s.CreateKey(), s.CreateKey()
	sealed, err := seal.New(wrapper(s, former), nil).Seal(bg, place, []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	now := seal.New(wrapper(s, key, former), nil)
	if got, err := now.Open(bg, place, sealed); err != nil || string(got) != "x" {
		t.Errorf("%q, %v", got, err)
	}
	fresh, err := now.Seal(bg, place, []byte("y"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := seal.New(wrapper(s, key), nil).Open(bg, place, fresh); err != nil || string(got) != "y" {
		t.Errorf("sealed under the former key: %q, %v", got, err)
	}
}

func TestAKeyWrappedByAnotherMasterIsRefused(t *testing.T) {
	s := start(t)
	key, other := s.CreateKey(), s.CreateKey()
	c := seal.Context{Org: "o", Purpose: "control"}
	foreign, err := wrapper(s, other).Generate(bg, c)
	if err != nil {
		t.Fatal(err)
	}
	w := wrapper(s, key)
	if _, err := w.Unwrap(bg, c, w.first, foreign.Wrapped); !errors.Is(err, seal.ErrRefused) {
		t.Errorf("%v, want ErrRefused", err)
	}
}

func TestAServiceThatRefusesOrFailsIsUnavailable(t *testing.T) {
	s := start(t)
	w := wrapper(s, s.CreateKey())
	sealed, err := seal.New(w, nil).Seal(bg, place, []byte("x"))
	if err != nil {
		t.Fatal(err)
	}
	for _, status := range []int{http.StatusInternalServerError, http.StatusBadRequest, http.StatusForbidden} {
		s.Fail(status)
		fresh := seal.New(w, nil)
		_, sealErr := fresh.Seal(bg, place, nil)
		_, openErr := fresh.Open(bg, place, sealed)
		for what, err := range map[string]error{"seal": sealErr, "open": openErr} {
			if !fault.Is(err, fault.ServiceUnavailable) || strings.Contains(fault.From(err).Message, "kms") {
				t.Errorf("%d, %s: %v, want service_unavailable", status, what, err)
			}
		}
	}
	s.Fail(0)
	missing := seal.New(wrapper(s, "no-such-key"), nil)
	if _, err := missing.Seal(bg, place, nil); !fault.Is(err, fault.ServiceUnavailable) {
		t.Errorf("no such key: %v", err)
	}
}

func TestRequestsDoNotReachKMS(t *testing.T) {
	s := start(t)
	e := seal.New(wrapper(s, s.CreateKey()), nil)
	for range 100 {
		sealed, err := e.Seal(bg, place, []byte("x"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Open(bg, place, sealed); err != nil {
			t.Fatal(err)
		}
	}
	if g, d := s.Calls("GenerateDataKey"), s.Calls("Decrypt"); g != 1 || d != 0 {
		t.Errorf("%d GenerateDataKey, %d Decrypt for 100 values", g, d)
	}
}
