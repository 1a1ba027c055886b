package scim

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"net/url"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"gateway/shared/admin"
	"gateway/shared/resource"
	"gateway/shared/signin"
	"gateway/shared/signin/sso"
	"gateway/shared/store"
	"gateway/shared/testkit/admintest"
)

// newInstallation serves the family; example.com is a verified domain of the first organization,
// other.example of the second.
func newInstallation(t testing.TB) *admintest.Installation {
	t.Helper()
	h := admintest.Build(t, func(d admin.Deps) []admin.Family {
		l := resource.NewLoader(d.Resources)
		return []admin.Family{New(Deps{Loader: l, Sessions: signin.New(l, d.Resources), PublicURL: "https://gateway.example.com/v1"})}
	})
	for org, domain := range map[string]string{admintest.Org: "example.com", admintest.OtherOrg: "other.example"} {
		sc := store.Scope{Org: org}
		raw, err := json.Marshal(sso.Domain{Domain: domain, Challenge: "x", VerifiedAt: "2026-01-01T00:00:00.000Z"})
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Resources.Change(context.Background(), sc, func(tx *resource.Tx) error {
			return tx.Create(&resource.Record{Scope: sc, Kind: sso.KindDomain, Slug: sso.Slug(domain), Name: domain, Status: "active", Body: raw})
		}); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// token makes a token of an organization.
func newToken(h *admintest.Installation, admin string) string {
	return h.Do("POST", "/scim/tokens", admin, `{"name":"Provider"}`).OK().Text("token")
}

// step is one call of a case, and what its response must be.
type step struct {
	line               int
	method, path, body string
	headers            map[string]string
	status             int
	checks             []string
}

type testCase struct {
	name  string
	steps []step
}

// readCases reads testdata/cases.txt: calls as METHOD PATH STATUS BODY, followed by the
// requirements of the response: PATH = JSON, !PATH for absent fields, PATH -> NAME to store a
// text. Parts of a path are separated by bars.
func readCases(t *testing.T, file string) (out []testCase) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	headers := map[string]string{}
	for n, l := range strings.Split(string(raw), "\n") {
		trimmed := strings.TrimSpace(l)
		switch {
		case trimmed == "" || strings.HasPrefix(trimmed, "#"):
		case strings.HasPrefix(l, "case "):
			out = append(out, testCase{name: strings.TrimPrefix(l, "case ")})
		case strings.HasPrefix(l, "with "):
			name, value, _ := strings.Cut(strings.TrimPrefix(l, "with "), ": ")
			headers[name] = value
		case strings.HasPrefix(l, "  "):
			c := &out[len(out)-1]
			s := &c.steps[len(c.steps)-1]
			s.checks = append(s.checks, trimmed)
		default:
			method, rest, _ := strings.Cut(l, " ")
			at := strings.Index(rest, " => ")
			if at < 0 {
				t.Fatalf("%s:%d: no status", file, n+1)
			}
			status, body, _ := strings.Cut(rest[at+4:], " ")
			code, err := strconv.Atoi(status)
			if err != nil {
				t.Fatalf("%s:%d: %v", file, n+1, err)
			}
			c := &out[len(out)-1]
			c.steps = append(c.steps, step{line: n + 1, method: method, path: rest[:at], body: body, status: code, headers: headers})
			headers = map[string]string{}
		}
	}
	return out
}

// TestRequestsOfProvidersAndOfTheRFCs runs each case in a separate installation.
func TestRequestsOfProvidersAndOfTheRFCs(t *testing.T) {
	t.Parallel()
	cases := readCases(t, "testdata/cases.txt")
	if len(cases) < 120 {
		t.Errorf("%d cases", len(cases))
	}
	seen := map[string]bool{}
	for _, c := range cases {
		if seen[c.name] {
			t.Errorf("the case %q occurs twice", c.name)
		}
		seen[c.name] = true
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := newInstallation(t)
			token, values := newToken(h, chief), map[string]string{}
			for i := range c.steps {
				play(t, h, token, &c.steps[i], values)
			}
		})
	}
}

// send makes a call as an identity provider does.
func send(h *admintest.Installation, method, path, token, body string, headers map[string]string) admintest.Response {
	r := httptest.NewRequest(method, "/v1"+path, strings.NewReader(body))
	if r.Header.Set("Authorization", "Bearer "+token); token == chief {
		r.Header.Set("X-Gateway-Api-Key", token)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/scim+json; charset=utf-8")
	}
	for name, v := range headers {
		r.Header.Set(name, v)
	}
	return h.Send(r)
}

func filled(s string, values map[string]string) string {
	for name, v := range values {
		s = strings.ReplaceAll(s, "$"+name, v)
	}
	return s
}

func play(t *testing.T, h *admintest.Installation, token string, s *step, values map[string]string) {
	t.Helper()
	path, query, _ := strings.Cut(filled(s.path, values), "?")
	if query != "" {
		parts := strings.Split(query, "&")
		for i, p := range parts {
			name, value, _ := strings.Cut(p, "=")
			parts[i] = name + "=" + url.QueryEscape(value)
		}
		path += "?" + strings.Join(parts, "&")
	}
	if !strings.HasPrefix(path, "/admin") {
		path = "/scim" + path
	} else {
		path, token = strings.TrimPrefix(path, "/admin"), chief
	}
	body := filled(s.body, values)
	got := send(h.For(t), s.method, path, token, body, s.headers)
	if got.Status != s.status {
		t.Fatalf("line %d: %s %s: %d, want %d\n%s", s.line, s.method, path, got.Status, s.status, got.Body)
	}
	if s.status >= 400 && token != chief {
		if got.At("status") != strconv.Itoa(s.status) || got.At("detail") == "" || !reflect.DeepEqual(got.At("schemas"), []any{"urn:ietf:params:scim:api:messages:2.0:Error"}) {
			t.Errorf("line %d: not in the form of the protocol: %s", s.line, got.Body)
		}
	}
	for _, c := range s.checks {
		check(t, s, got, filled(c, values), values)
	}
}

func check(t *testing.T, s *step, got admintest.Response, c string, values map[string]string) {
	t.Helper()
	if name, ok := strings.CutPrefix(c, "!"); ok {
		if v := got.At(strings.Split(name, "|")...); v != nil {
			t.Errorf("line %d: %s is %v", s.line, name, v)
		}
		return
	}
	if name, key, ok := strings.Cut(c, " -> "); ok {
		v, text := got.At(strings.Split(name, "|")...).(string)
		if !text {
			t.Fatalf("line %d: no %s in %s", s.line, name, got.Body)
		}
		values[key] = v
		return
	}
	if name, part, ok := strings.Cut(c, " ~ "); ok {
		if v := fmt.Sprint(got.At(strings.Split(name, "|")...)); !strings.Contains(v, part) {
			t.Errorf("line %d: %s is %s, without %s", s.line, name, v, part)
		}
		return
	}
	name, raw, _ := strings.Cut(c, " = ")
	var want any
	if err := json.Unmarshal([]byte(raw), &want); err != nil {
		t.Fatalf("line %d: %s: %v", s.line, c, err)
	}
	if v := got.At(strings.Split(name, "|")...); !reflect.DeepEqual(v, want) {
		t.Errorf("line %d: %s is %v, want %v in %s", s.line, name, v, want, got.Body)
	}
}
