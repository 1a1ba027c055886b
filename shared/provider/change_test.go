package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"gateway/shared/egress"
	"gateway/shared/fault"
	"gateway/shared/resource"
	"gateway/shared/seal"
	"gateway/shared/store"
)

// plainSealer hides a value from a search for its text and from nobody else.
type plainSealer struct{}

func (plainSealer) Seal(_ context.Context, _ seal.Binding, plain []byte) ([]byte, error) {
	return flip(plain), nil
}

func (plainSealer) Open(_ context.Context, _ seal.Binding, sealed []byte) ([]byte, error) {
	return flip(sealed), nil
}

func flip(b []byte) []byte {
	out := make([]byte, len(b))
	for i := range b {
		out[i] = b[i] ^ 0x5a
	}
	return out
}

type brokenSealer struct{ plainSealer }

func (brokenSealer) Seal(context.Context, seal.Binding, []byte) ([]byte, error) {
	return nil, errors.New("no key")
}

var changeStore = ChangeStore{Sealer: plainSealer{}, CheckURL: egress.Policy{}.CheckURL}

func newRecord() *resource.Record {
	return &resource.Record{Scope: store.Scope{Org: "o"}, Kind: KindIntegration, ID: "i"}
}

// opened is the credential that a request would use.
func opened(t testing.TB, rec *resource.Record, i *Integration) Credential {
	t.Helper()
	secrets, err := rec.OpenSecrets(context.Background(), plainSealer{})
	if err != nil {
		t.Fatal(err)
	}
	fields := make(map[string]any)
	for k, v := range i.Configurations {
		fields[k] = v
	}
	for k, v := range secrets {
		if k != SecretKey {
			fields[k] = string(v)
		}
	}
	p, _ := ByID(i.AIProviderID)
	return CredentialFromConfig(p, string(secrets[SecretKey]), fields)
}

func ptr(s string) *string { return &s }

// TestEverySecretFieldIsSealed walks the catalog: no secret is in what is stored openly
// or shown, and each comes back for a request.
func TestEverySecretFieldIsSealed(t *testing.T) {
	for _, p := range All() {
		ch := Change{Key: ptr("CANARY-0-of-the-key"), Configurations: map[string]any{"custom_host": "https://models.example.com/v1"}}
		want := map[string]string{}
		for n := range p.Fields {
			f := &p.Fields[n]
			switch {
			case f.Secret && f.Form == JSONObject:
				ch.Configurations[f.Name] = map[string]any{"private_key": "CANARY-" + f.Name}
				want[f.Name] = `{"private_key":"CANARY-` + f.Name + `"}`
			case f.Secret:
				ch.Configurations[f.Name] = "CANARY-" + f.Name
				want[f.Name] = "CANARY-" + f.Name
			case f.Form == List:
				ch.Configurations[f.Name] = []any{map[string]any{"azure_deployment_name": "d"}}
			case f.Form == BaseURL:
				ch.Configurations[f.Name] = "https://models.example.com"
			case len(f.Values) > 0:
				ch.Configurations[f.Name] = f.Values[0]
			case f.Need == always || strings.HasPrefix(f.Need, "aws_auth_type=accessKey") || strings.HasPrefix(f.Need, "vertex_auth_type=basic"):
				ch.Configurations[f.Name] = "value"
			}
		}
		rec, i := newRecord(), &Integration{AIProviderID: p.ID}
		if err := ch.Apply(context.Background(), changeStore, rec, i); err != nil {
			t.Errorf("%s: %v", p.ID, err)
			continue
		}
		body, err := json.Marshal(i)
		if err != nil {
			t.Fatal(err)
		}
		shown, err := json.Marshal(i.MaskedConfigurations())
		if err != nil {
			t.Fatal(err)
		}
		for where, b := range map[string][]byte{"body": body, "read": shown, "sealed": rec.Sealed} {
			if bytes.Contains(b, []byte("CANARY-")) {
				t.Errorf("%s: a secret stands in the %s: %s", p.ID, where, b)
			}
		}
		cred := opened(t, rec, i)
		if cred.Key != "CANARY-0-of-the-key" {
			t.Errorf("%s: key %q", p.ID, cred.Key)
		}
		for name, v := range want {
			if cred.Fields[name] != v {
				t.Errorf("%s: %s = %q", p.ID, name, cred.Fields[name])
			}
		}
	}
}

func TestChangeRetainsUnnamedFields(t *testing.T) {
	ctx := context.Background()
	rec, i := newRecord(), &Integration{AIProviderID: "bedrock"}
	apply := func(ch Change) error { rec.Rev++; return ch.Apply(ctx, changeStore, rec, i) }
	if err := apply(Change{Configurations: map[string]any{"aws_auth_type": "accessKey", "aws_region": "us-east-1", "aws_access_key_id": "A", "aws_secret_access_key": "first-secret", "custom_headers": map[string]any{"X-A": "header-secret"}}}); err != nil {
		t.Fatal(err)
	}
	// The region is a part of the host, so it cannot change without the secrets.
	if err := apply(Change{Configurations: map[string]any{"aws_region": "eu-west-1"}}); !fault.Is(err, fault.InvalidRequest) {
		t.Errorf("the secrets moved to another region: %v", err)
	}
	if err := apply(Change{Configurations: map[string]any{"aws_region": "eu-west-1", "aws_secret_access_key": "first-secret", "custom_headers": map[string]any{"X-A": "header-secret"}}}); err != nil {
		t.Fatal(err)
	}
	if err := apply(Change{Configurations: map[string]any{"aws_access_key_id": "B"}}); err != nil {
		t.Fatal(err)
	}
	if c := opened(t, rec, i); c.Fields["aws_secret_access_key"] != "first-secret" || c.Fields["aws_region"] != "eu-west-1" || c.CustomHeaders["X-A"] != "header-secret" {
		t.Errorf("credential %+v", c)
	}
	if err := apply(Change{Configurations: map[string]any{"aws_secret_access_key": "second-secret", "custom_headers": nil}}); err != nil {
		t.Fatal(err)
	}
	if c := opened(t, rec, i); c.Fields["aws_secret_access_key"] != "second-secret" || c.CustomHeaders != nil || len(i.Masked) != 1 {
		t.Errorf("credential %+v, masked %v", c, i.Masked)
	}
	if err := apply(Change{Configurations: map[string]any{"aws_secret_access_key": nil}}); !fault.Is(err, fault.InvalidRequest) {
		t.Errorf("a needed secret was removed: %v", err)
	}
	if err := apply(Change{ClearAll: true, Configurations: map[string]any{"aws_auth_type": "serviceRole", "aws_region": "us-east-1"}}); err != nil {
		t.Fatal(err)
	}
	if c := opened(t, rec, i); c.Fields["aws_secret_access_key"] != "" || len(c.Fields) != 2 || len(i.Masked) != 0 || len(rec.Sealed) != 0 {
		t.Errorf("after all was cleared %+v, masked %v", c, i.Masked)
	}
}

func TestChangeRefusesAllWrongFieldsAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		provider string
		change   Change
		fields   string // in order
	}{
		"unknown provider": {"none", Change{}, "ai_provider_id"},
		"alias twice":      {"azure-openai", Change{Key: ptr("k"), Configurations: map[string]any{"azure_auth_mode": "default", "azure_resource_name": "a", "resource_name": "b", "azure_deployment_config": []any{map[string]any{"azure_deployment_name": "d"}}}}, "configurations.resource_name"},
		"mapped and given": {"openai", Change{Key: ptr("k"), Mappings: &[]SecretMapping{{TargetField: "key"}}}, "key"},
		"mapped twice":     {"openai", Change{Mappings: &[]SecretMapping{{TargetField: "key"}, {TargetField: "key"}}}, "secret_mappings[1].target_field"},
		"mapped host":      {"openai", Change{Mappings: &[]SecretMapping{{TargetField: "key"}, {TargetField: "configurations.custom_host"}}}, "secret_mappings[1].target_field"},
		"masked header":    {"openai", Change{Key: ptr("k"), Configurations: map[string]any{"custom_headers": map[string]any{"X": "ab****yz"}}}, "configurations.custom_headers.X"},
		"two errors":       {"anthropic", Change{Configurations: map[string]any{"custom_host": "https://10.0.0.1"}}, "key configurations.custom_host"},
	} {
		rec, i := newRecord(), &Integration{AIProviderID: c.provider}
		f := fault.From(c.change.Apply(context.Background(), changeStore, rec, i))
		if f == nil {
			t.Errorf("%s: taken", name)
			continue
		}
		got := []string{f.Field}
		if len(f.Details) > 1 {
			got = nil
			for _, d := range f.Details {
				got = append(got, d.Field)
			}
		}
		if strings.Join(got, " ") != c.fields {
			t.Errorf("%s: %v, want %s", name, got, c.fields)
		}
		if len(rec.Sealed) > 0 || i.Configurations != nil {
			t.Errorf("%s: a refused change left something behind", name)
		}
	}
}

func TestMaskedTextIsRecognised(t *testing.T) {
	for text, want := range map[string]bool{
		"****": true, "sk****yz": true, "sk*******yz": true, "": false, "***": false, "sk-abcdefgh": false, "sk**a**yz": false, "a****": false,
	} {
		if Masked(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}

func TestChangeWithoutASealerKeyIsUnavailable(t *testing.T) {
	ch := Change{Key: ptr("sk-abcdefgh")}
	err := ch.Apply(context.Background(), ChangeStore{Sealer: brokenSealer{}, CheckURL: changeStore.CheckURL}, newRecord(), &Integration{AIProviderID: "openai"})
	if !fault.Is(err, fault.ServiceUnavailable) {
		t.Errorf("got %v", err)
	}
}

func TestHostsAreStoredInOneSpelling(t *testing.T) {
	rec, i := newRecord(), &Integration{AIProviderID: "openai"}
	ch := Change{Key: ptr("sk-abcdefgh"), Configurations: map[string]any{"custom_host": "HTTPS://Models.Example.COM:443/v1"}}
	if err := ch.Apply(context.Background(), changeStore, rec, i); err != nil {
		t.Fatal(err)
	}
	u, err := changeStore.CheckURL("HTTPS://Models.Example.COM:443/v1", "")
	if err != nil || i.Configurations["custom_host"] != u.String() {
		t.Errorf("stored %v, want %v, %v", i.Configurations["custom_host"], u, err)
	}
}

func TestModelsFollowAllowAll(t *testing.T) {
	for _, c := range []struct {
		all, explicit, enabled, want bool
	}{{true, false, false, true}, {true, true, false, false}, {false, false, false, false}, {false, true, true, true}, {true, true, true, true}} {
		i := Integration{AllowAllModels: c.all}
		if c.explicit {
			i.Models = []IntegrationModel{{Slug: "m", Enabled: c.enabled}}
		}
		if got := i.Allows("m"); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
		if got := len(i.Callable([]string{"m"})) == 1; got != c.want {
			t.Errorf("%+v: listed %v", c, got)
		}
	}
}

// FuzzChange tries configurations of any form: nothing panics, every rejection is a 400, and
// sealed values are never stored in the open.
func FuzzChange(f *testing.F) {
	f.Add(0, "k", `{"custom_host":"https://a.example.com","custom_headers":{"X":"secret-value"}}`)
	f.Add(2, "", `{"azure_auth_mode":"entra","azure_entra_client_secret":"s","azure_deployment_config":[{}]}`)
	f.Add(4, "", `{"aws_auth_type":"accessKey","aws_secret_access_key":7}`)
	f.Add(9, "k", `{"vertex_service_account_json":{"a":[1,{"b":null}]}}`)
	f.Fuzz(func(t *testing.T, n int, key, raw string) {
		var fields map[string]any
		if json.Unmarshal([]byte(raw), &fields) != nil {
			t.Skip("not an object")
		}
		all := All()
		p := all[((n%len(all))+len(all))%len(all)]
		rec, i := newRecord(), &Integration{AIProviderID: p.ID}
		ch := Change{Key: &key, Configurations: fields}
		if err := ch.Apply(context.Background(), changeStore, rec, i); err != nil {
			if s := fault.From(err).Status(); s != 400 {
				t.Fatalf("status %d: %v", s, err)
			}
			return
		}
		if len(i.Masked) > 0 != (len(rec.Sealed) > 0) {
			t.Fatalf("masked %v, sealed %d bytes", i.Masked, len(rec.Sealed))
		}
		for _, name := range p.SecretFields() {
			if _, open := i.Configurations[name]; open {
				t.Fatalf("%s stands in the open", name)
			}
		}
		opened(t, rec, i)
	})
}
