package provider

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gateway/shared/fault"
	"gateway/shared/resource"
)

// change applies a change that comes as JSON: key, credentials, configurations.
func change(t *testing.T, rec *resource.Record, i *Integration, body string) error {
	t.Helper()
	var in struct {
		Key            *string            `json:"key"`
		Credentials    *[]CredentialInput `json:"credentials"`
		Configurations map[string]any     `json:"configurations"`
	}
	if err := json.Unmarshal([]byte(body), &in); err != nil {
		t.Fatal(err)
	}
	ch := Change{Key: in.Key, Credentials: in.Credentials, Configurations: in.Configurations}
	return ch.Apply(context.Background(), changeStore, rec, i)
}

// keys are the sealed keys by label.
func keys(t *testing.T, rec *resource.Record, i *Integration) string {
	t.Helper()
	secrets, err := rec.OpenSecrets(context.Background(), plainSealer{})
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, c := range i.Credentials {
		out = append(out, fmt.Sprintf("%s:%d:%s", c.Label, c.Weight, secrets[c.Secret()]))
		delete(secrets, c.Secret())
	}
	for name, v := range secrets {
		out = append(out, name+"="+string(v))
	}
	slices.Sort(out[len(i.Credentials):])
	return strings.Join(out, " ")
}

func TestCredentialsReplaceTheStoredList(t *testing.T) {
	t.Parallel()
	rec, i := newRecord(), &Integration{AIProviderID: "openai"}
	ids := map[string]bool{}
	for n, step := range []struct{ body, want string }{
		{`{"key":"sk-the-only-one"}`, "key=sk-the-only-one"},
		{`{"credentials":[{"key":"sk-first-0001"},{"label":"spare","key":"sk-spare-0001","weight":0}]}`, "1:1:sk-first-0001 spare:0:sk-spare-0001"},
		{`{"configurations":{"openai_project":"p"}}`, "1:1:sk-first-0001 spare:0:sk-spare-0001"},
		{`{"credentials":[{"label":"spare","weight":5,"masked_key":"sk****01"},{"label":"third","key":"sk-third-0001"}]}`, "spare:5:sk-spare-0001 third:1:sk-third-0001"},
		{`{"credentials":[{"label":"third","key":"sk-third-0002"},{"label":"spare"}]}`, "third:1:sk-third-0002 spare:1:sk-spare-0001"},
		{`{"credentials":[],"key":"sk-one-again"}`, "key=sk-one-again"},
	} {
		if err := change(t, rec, i, step.body); err != nil {
			t.Fatalf("step %d: %v", n, err)
		}
		if got := keys(t, rec, i); got != step.want {
			t.Errorf("step %d: %s, want %s", n, got, step.want)
		}
		for _, c := range i.Credentials {
			ids[c.ID+c.Masked] = true
			if !Masked(c.Masked) {
				t.Errorf("step %d shows %s", n, c.Masked)
			}
		}
		body, err := json.Marshal(i)
		if err != nil || strings.Contains(string(body), "sk-") || strings.Contains(string(rec.Sealed), "sk-") {
			t.Errorf("step %d stores a key: %s %v", n, body, err)
		}
	}
	if len(ids) != 4 { // one for each key
		t.Errorf("%d ids of 4 keys", len(ids))
	}
}

func TestBadCredentialsAreRejectedWithTheirField(t *testing.T) {
	t.Parallel()
	const two = `{"credentials":[{"label":"a","key":"sk-aaaa-0001"},{"label":"b","key":"sk-bbbb-0001"}]}`
	for _, c := range []struct{ stored, body, field string }{
		{"", `{"credentials":[{"label":"a"}]}`, "credentials[0].key"},
		{"", `{"credentials":[{"key":"sk-aaaa-0001"},{"label":"1","key":"sk-bbbb-0001"}]}`, "credentials[1].label"},
		{"", `{"credentials":[{"key":"sk-aaaa-0001"},{"key":"sk-aaaa-0001"}]}`, "credentials[1].key"},
		{"", `{"credentials":[{"label":"a b","key":"sk-aaaa-0001"}]}`, "credentials[0].label"},
		{"", `{"credentials":[{"label":"a","key":"sk a"}]}`, "credentials[0].key"},
		{"", `{"credentials":[{"label":"a","key":"sk****01"}]}`, "credentials[0].key"},
		{"", `{"credentials":[{"label":"a","key":"sk-aaaa-0001","weight":0}]}`, "credentials"},
		{"", `{"key":"sk-one","credentials":[{"key":"sk-aaaa-0001"}]}`, "key"},
		{"", `{"credentials":[]}`, "key"},
		{two, `{"key":"sk-one"}`, "key"},
		{two, `{"credentials":null}`, ""},
		{two, `{"credentials":[]}`, "key"},
		{two, `{"credentials":[{"label":"c"}]}`, "credentials[0].key"},
		// The keys go to an address with which they were saved.
		{two, `{"configurations":{"custom_host":"https://other.example.com/v1"}}`, "configurations.custom_host"},
		{two, `{"credentials":[{"label":"a","key":"sk-aaaa-0002"},{"label":"b"}],"configurations":{"custom_host":"https://other.example.com/v1"}}`, "configurations.custom_host"},
		{two, `{"credentials":[{"label":"a","key":"sk-aaaa-0002"}],"configurations":{"custom_host":"https://other.example.com/v1"}}`, ""},
	} {
		rec, i := newRecord(), &Integration{AIProviderID: "openai"}
		if c.stored != "" {
			if err := change(t, rec, i, c.stored); err != nil {
				t.Fatal(err)
			}
		}
		err := change(t, rec, i, c.body)
		var f *fault.Fault
		got := ""
		if errors.As(err, &f) {
			if got = f.Field; len(f.Details) > 0 {
				got = f.Details[0].Field
			}
		}
		if got != c.field {
			t.Errorf("%s after %s: %v, want the field %q", c.body, c.stored, err, c.field)
		}
	}
	keyless := &Integration{AIProviderID: "ollama"}
	err := change(t, newRecord(), keyless, `{"credentials":[{"key":"sk-aaaa-0001"}],"configurations":{"custom_host":"https://models.example.com/v1"}}`)
	if p, _ := ByID("ollama"); p.Key == "" && err == nil {
		t.Error("a provider without keys takes credentials")
	}
}
