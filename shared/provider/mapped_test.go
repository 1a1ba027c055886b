package provider_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"gateway/shared/egress"
	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/seal/reference"
	"gateway/shared/testkit/managertest"
)

// clock is a clock that tests move.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time       { c.mu.Lock(); defer c.mu.Unlock(); return c.at }
func (c *clock) move(d time.Duration) { c.mu.Lock(); c.at = c.at.Add(d); c.mu.Unlock() }
func newClock() *clock                { return &clock{at: time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)} }
func guarded(t testing.TB) http.RoundTripper {
	t.Helper()
	p, err := egress.ParseAllow("127.0.0.0/8,::1")
	if err != nil {
		t.Fatal(err)
	}
	rt := egress.New(p, egress.Options{})
	t.Cleanup(func() { egress.CloseIdle(rt) })
	return rt
}

// resolvers resolves references over real connections.
type resolvers struct {
	*reference.Resolver
	clock *clock
}

func newResolvers(t testing.TB, rt http.RoundTripper) *resolvers {
	t.Helper()
	c := newClock()
	if rt == nil {
		rt = guarded(t)
	}
	return &resolvers{reference.New(rt, provider.Proofs{Tokens: provider.NewTokens(rt, c.now)}, c.now), c}
}

// source is a reference that holds for a test.
func source(t testing.TB, manager, path string, auth, secrets map[string]string) *reference.Source {
	t.Helper()
	body, err := json.Marshal(reference.Reference{ManagerType: manager, SecretPath: path, Auth: auth, AllowAll: true})
	if err != nil {
		t.Fatal(err)
	}
	sealed, _ := json.Marshal(secrets)
	s, err := reference.NewSource("o1", "ref-1", "the-ref", body, sealed, func(context.Context) (map[string][]byte, error) {
		out := map[string][]byte{}
		for k, v := range secrets {
			out[k] = []byte(v)
		}
		return out, nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// reads asks for a secret and reads it.
func (h *resolvers) reads(t testing.TB, s *reference.Source, key, format, want string) {
	t.Helper()
	v, _, err := h.Value(context.Background(), s)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := v.Read(key, format); err != nil || got != want {
		t.Errorf("read %q %v, want %q", got, err, want)
	}
}

// fails asks for a secret and wants a failure that tells nothing of secrets.
func (h *resolvers) fails(t testing.TB, s *reference.Source, code fault.Code, part string) {
	t.Helper()
	_, _, err := h.Value(context.Background(), s)
	if err == nil {
		t.Fatalf("no failure, want %s %q", code, part)
	}
	f := fault.From(err)
	if f.Code != code || !strings.Contains(f.Message, part) || !strings.Contains(f.Message, "the-ref") {
		t.Errorf("failed with %s %q, want %s %q", f.Code, f.Message, code, part)
	}
	for _, secret := range []string{"CANARY", "hvs.", "AKID", "role-id", "quote"} {
		if strings.Contains(f.Message, secret) {
			t.Errorf("the failure tells %s: %s", secret, f.Message)
		}
	}
}

func TestSecretsOfAWS(t *testing.T) {
	h := newResolvers(t, nil)
	aws := managertest.NewAWS(t, h.clock.now)
	t.Setenv("AWS_ENDPOINT_URL_SECRETS_MANAGER", aws.URL)
	t.Setenv("AWS_ENDPOINT_URL_STS", aws.URL)
	t.Setenv("GATEWAY_AWS_SERVICE_ROLE", "")
	h.Resolver = reference.New(guarded(t), provider.Proofs{Tokens: provider.NewTokens(guarded(t), h.clock.now)}, h.clock.now)
	aws.Keys["AKID"] = "CANARY-key"
	aws.Secrets["prod/openai"] = `{"api_key":"sk-1","n":7,"nested":{"a":[1]},"none":null}`
	aws.Secrets["plain"] = "sk-plain"
	aws.Secrets["bytes"] = "binary:c2stYnl0ZXM="
	aws.Secrets["noise"] = "binary://///w=="
	own := map[string]string{"aws_auth_type": "accessKey", "aws_access_key_id": "AKID", "aws_region": "eu-west-1"}
	of := func(path string) *reference.Source {
		s := source(t, reference.AWS, path, own, map[string]string{"aws_secret_access_key": "CANARY-key"})
		s.ID = path
		return s
	}
	h.reads(t, of("prod/openai"), "api_key", "", "sk-1")
	h.reads(t, of("prod/openai"), "n", "string", "7")
	h.reads(t, of("prod/openai"), "nested", "json", `{"a":[1]}`)
	h.reads(t, of("plain"), "", "", "sk-plain")
	h.reads(t, of("bytes"), "", "", "sk-bytes")
	if n := aws.Calls("read"); n != 3 {
		t.Errorf("%d reads of three secrets", n)
	}
	v, _, err := h.Value(context.Background(), of("prod/openai"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ key, format, part string }{
		{"other", "", "has no field"}, {"none", "", "has no field"}, {"nested", "string", "is not a string"}, {"api_key", "json", "is not JSON"},
	} {
		if _, err := v.Read(c.key, c.format); err == nil || !strings.Contains(err.Error(), c.part) {
			t.Errorf("%s as %s: %v", c.key, c.format, err)
		}
	}
	h.fails(t, of("noise"), fault.ProviderError, "no") // not a text
	h.fails(t, of("missing"), fault.ProviderError, "ResourceNotFoundException")
	wrong := source(t, reference.AWS, "plain", own, map[string]string{"aws_secret_access_key": "CANARY-other"})
	h.fails(t, wrong, fault.ProviderError, "InvalidSignatureException")
	// Throttled calls have the status of rejections, and are none.
	aws.Do(func() { aws.Fault = "ThrottlingException" })
	h.fails(t, of("throttled"), fault.ProviderUnreachable, "ThrottlingException")
	aws.Do(func() { aws.Fault = "" })
	aws.Answer(`{"Name":"x"}`)
	h.fails(t, of("odd"), fault.ProviderUnreachable, "cannot be read")
	aws.Answer(`<html>`)
	h.fails(t, of("html"), fault.ProviderUnreachable, "cannot be read")
}

func TestSecretsOfAWSByARole(t *testing.T) {
	h := newResolvers(t, nil)
	aws := managertest.NewAWS(t, h.clock.now)
	t.Setenv("AWS_ENDPOINT_URL_SECRETS_MANAGER", aws.URL)
	t.Setenv("AWS_ENDPOINT_URL_STS", aws.URL)
	t.Setenv("AWS_ASSUME_ROLE_ACCESS_KEY_ID", "SOURCE")
	t.Setenv("AWS_ASSUME_ROLE_SECRET_ACCESS_KEY", "source-secret")
	t.Setenv("AWS_ACCESS_KEY_ID", "PROCESS")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "process-secret")
	t.Setenv("AWS_SESSION_TOKEN", "process-session")
	t.Setenv("AWS_REGION", "eu-west-1")
	h.Resolver = reference.New(guarded(t), provider.Proofs{Tokens: provider.NewTokens(guarded(t), h.clock.now)}, h.clock.now)
	aws.Keys["SOURCE"], aws.Keys["PROCESS"], aws.Session["PROCESS"] = "source-secret", "process-secret", "process-session"
	aws.Role, aws.Ext = "arn:aws:iam::123456789012:role/reader", "ext-1"
	aws.Secrets["s"] = "sk-role"
	auth := map[string]string{"aws_auth_type": "assumedRole", "aws_role_arn": aws.Role, "aws_external_id": "ext-1", "aws_region": "eu-west-1"}
	h.reads(t, source(t, reference.AWS, "s", auth, nil), "", "", "sk-role")
	h.clock.move(reference.MaxAge)
	h.reads(t, source(t, reference.AWS, "s", auth, nil), "", "", "sk-role")
	if aws.Calls("role") != 1 || aws.Calls("read") != 2 {
		t.Errorf("%d roles, %d reads", aws.Calls("role"), aws.Calls("read"))
	}
	h.clock.move(2 * time.Hour) // the session has ended
	h.reads(t, source(t, reference.AWS, "s", auth, nil), "", "", "sk-role")
	if aws.Calls("role") != 2 {
		t.Errorf("%d roles", aws.Calls("role"))
	}
	other := map[string]string{"aws_auth_type": "assumedRole", "aws_role_arn": aws.Role + "x", "aws_region": "eu-west-1"}
	h.fails(t, source(t, reference.AWS, "s", other, nil), fault.ProviderError, "AccessDenied")
	// The gateway's own role is lent by its operator alone.
	roleSource := source(t, reference.AWS, "s", map[string]string{"aws_auth_type": "serviceRole"}, nil)
	t.Setenv("GATEWAY_AWS_SERVICE_ROLE", "")
	h.fails(t, roleSource, fault.ProviderError, "GATEWAY_AWS_SERVICE_ROLE")
	t.Setenv("GATEWAY_AWS_SERVICE_ROLE", "true")
	h.clock.move(2 * time.Second)
	h.reads(t, roleSource, "", "", "sk-role")
}

func TestSecretsOfAzure(t *testing.T) {
	h := newResolvers(t, nil)
	azure := managertest.NewAzure(t, h.clock.now)
	t.Setenv("AZURE_AUTHORITY_HOST", azure.URL)
	azure.Tenant, azure.Client, azure.Secret = "tenant-1", "client-1", "CANARY-client"
	azure.Secrets["openai"], azure.Secrets["openai/abc123"] = "sk-azure", "sk-old"
	auth := map[string]string{"azure_auth_mode": "entra", "azure_entra_tenant_id": "tenant-1", "azure_entra_client_id": "client-1", "azure_vault_url": azure.URL}
	of := func(path, secret string) *reference.Source {
		s := source(t, reference.Azure, path, auth, map[string]string{"azure_entra_client_secret": secret})
		s.ID = path + secret
		return s
	}
	h.reads(t, of("openai", "CANARY-client"), "", "", "sk-azure")
	h.reads(t, of("openai/abc123", "CANARY-client"), "", "", "sk-old")
	if azure.Calls("token") != 1 {
		t.Errorf("%d tokens", azure.Calls("token"))
	}
	h.clock.move(2 * time.Hour)
	h.reads(t, of("openai", "CANARY-client"), "", "", "sk-azure")
	if azure.Calls("token") != 2 {
		t.Errorf("%d tokens after the first has ended", azure.Calls("token"))
	}
	h.fails(t, of("missing", "CANARY-client"), fault.ProviderError, "404 (SecretNotFound)")
	h.fails(t, of("openai", "CANARY-wrong"), fault.ProviderError, "invalid_client")
	azure.Answer(`{"values":"x"}`)
	h.clock.move(reference.MaxStale)
	h.fails(t, of("openai", "CANARY-client"), fault.ProviderUnreachable, "cannot be read")
}

// toVaults sends what is for Azure's own vaults to the test's server, over real
// connections.
type toVaults struct {
	next http.RoundTripper
	host string
}

func (v toVaults) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Host, ".vault.azure.net") && r.URL.Scheme == "https" {
		r = r.Clone(r.Context())
		r.URL.Scheme, r.URL.Host = "http", v.host
	}
	return v.next.RoundTrip(r)
}

func TestTheGatewaysOwnIdentityGoesToVaultsOfAzureAlone(t *testing.T) {
	c := newClock()
	azure := managertest.NewAzure(t, c.now)
	azure.IdentityKey, azure.Secrets["s"] = "identity-key", "sk-managed"
	t.Setenv("IDENTITY_ENDPOINT", azure.URL+"/msi/token")
	t.Setenv("IDENTITY_HEADER", "identity-key")
	t.Setenv("AZURE_FEDERATED_TOKEN_FILE", "")
	h := newResolvers(t, toVaults{guarded(t), strings.TrimPrefix(azure.URL, "http://")})
	h.clock = c
	h.Resolver = reference.New(toVaults{guarded(t), strings.TrimPrefix(azure.URL, "http://")}, provider.Proofs{Tokens: provider.NewTokens(guarded(t), c.now)}, c.now)
	for _, mode := range []string{"managed", "default"} {
		s := source(t, reference.Azure, "s", map[string]string{"azure_auth_mode": mode, "azure_vault_url": "https://mine.vault.azure.net"}, nil)
		t.Setenv("GATEWAY_AZURE_IDENTITY", "")
		h.fails(t, s, fault.ProviderError, "GATEWAY_AZURE_IDENTITY")
		t.Setenv("GATEWAY_AZURE_IDENTITY", "true")
		c.move(2 * time.Second)
		h.reads(t, s, "", "", "sk-managed")
		for _, host := range []string{azure.URL, "https://mine.vault.azure.net.example.com", "https://a.b.vault.azure.net"} {
			h.fails(t, source(t, reference.Azure, "s", map[string]string{"azure_auth_mode": mode, "azure_vault_url": host}, nil), fault.ProviderError, "own identity may not be used")
		}
	}
}

func TestSecretsOfVault(t *testing.T) {
	h := newResolvers(t, nil)
	vault := managertest.NewVault(t, h.clock.now)
	vault.Namespace = "team/a"
	vault.Tokens["hvs.static"] = time.Time{}
	vault.Secrets["secret/data/app/openai"] = `{"key":"sk-v2","other":"x"}`
	vault.Secrets["kv1/openai"] = `{"only":"sk-v1"}`
	vault.Secrets["kv1/data"] = `{"data":"d","metadata":"m","third":"t"}`
	auth := map[string]string{"vault_auth_type": "token", "vault_addr": vault.URL, "vault_namespace": "team/a"}
	of := func(path string) *reference.Source {
		s := source(t, reference.Vault, path, auth, map[string]string{"vault_token": "hvs.static"})
		s.ID = path
		return s
	}
	h.reads(t, of("secret/data/app/openai"), "key", "", "sk-v2")
	h.reads(t, of("secret/app/openai"), "key", "", "sk-v2") // as the command line names it
	h.reads(t, of("/kv1/openai/"), "", "", "sk-v1")         // of one field
	h.reads(t, of("kv1/openai"), "", "json", `{"only":"sk-v1"}`)
	h.reads(t, of("kv1/data"), "third", "", "t")
	v, _, err := h.Value(context.Background(), of("secret/data/app/openai"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.Read("", ""); err == nil || !strings.Contains(err.Error(), "2 fields") {
		t.Errorf("one of two members: %v", err)
	}
	h.fails(t, of("secret/data/none"), fault.ProviderError, "404")
	denied := source(t, reference.Vault, "kv1/openai", auth, map[string]string{"vault_token": "hvs.other"})
	h.fails(t, denied, fault.ProviderError, "403")
	for _, body := range []string{`[]`, `{"data":"text"}`, `{"data":{"data":7,"metadata":{}}}`, `not json`, `{"data":null}`} {
		vault.Answer(body)
		h.fails(t, of("odd"+body), fault.ProviderUnreachable, "cannot be read")
	}
	vault.Answer(`{"data":{"data":null,"metadata":{"deletion_time":"2026-01-01T00:00:00Z"}}}`)
	h.fails(t, of("deleted"), fault.ProviderError, "deleted")
	vault.Answer(`{"data":"` + strings.Repeat("x", 600<<10) + `"}`)
	h.fails(t, of("huge"), fault.ProviderError, "more than")
}

func TestVaultLoginsAreCachedRenewedAndReplaced(t *testing.T) {
	h := newResolvers(t, nil)
	vault := managertest.NewVault(t, h.clock.now)
	vault.RoleID, vault.SecretID = "role-id", "CANARY-secret"
	vault.Secrets["kv/a"], vault.Secrets["kv/b"] = `{"v":"1"}`, `{"v":"2"}`
	auth := map[string]string{"vault_auth_type": "approle", "vault_addr": vault.URL, "vault_role_id": "role-id"}
	of := func(path string) *reference.Source {
		s := source(t, reference.Vault, path, auth, map[string]string{"vault_secret_id": "CANARY-secret"})
		s.ID = path
		return s
	}
	count := func(logins, renewals int) {
		t.Helper()
		if vault.Calls("login") != logins || vault.Calls("renew") != renewals {
			t.Errorf("%d logins, %d renewals; want %d, %d", vault.Calls("login"), vault.Calls("renew"), logins, renewals)
		}
	}
	h.reads(t, of("kv/a"), "", "", "1")
	h.reads(t, of("kv/b"), "", "", "2")
	count(1, 0)
	h.clock.move(45 * time.Minute) // in the last third of its hour
	h.reads(t, of("kv/a"), "", "", "1")
	count(1, 1)
	h.clock.move(30 * time.Minute) // alive, since it was prolonged
	h.reads(t, of("kv/a"), "", "", "1")
	count(1, 1)
	h.clock.move(3 * time.Hour) // over
	h.reads(t, of("kv/a"), "", "", "1")
	count(2, 1)
	vault.Do(func() { clear(vault.Tokens) }) // revoked
	h.clock.move(reference.MaxAge)
	h.reads(t, of("kv/a"), "", "", "1")
	count(3, 1)
	vault.Do(func() { vault.SecretID = "another" })
	h.clock.move(3 * time.Hour)
	h.fails(t, of("kv/a"), fault.ProviderError, "rejects the approle login")
}

func TestVaultByTheServiceAccountOfKubernetes(t *testing.T) {
	c := newClock()
	vault := managertest.NewVault(t, c.now)
	vault.JWT, vault.Role, vault.Secrets["kv/a"] = "pod.jwt.token", "gateway", `{"v":"k8s"}`
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte("pod.jwt.token\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv(reference.EnvServiceAccount, file)
	s := source(t, reference.Vault, "kv/a", map[string]string{"vault_auth_type": "kubernetes", "vault_addr": vault.URL, "vault_role": "gateway"}, nil)
	newResolvers(t, nil).fails(t, s, fault.ProviderError, reference.EnvKubernetesVaults)
	if vault.Calls("login") != 0 {
		t.Error("the token went to an address that the operator has not named")
	}
	t.Setenv(reference.EnvKubernetesVaults, "https://other.example.com, "+vault.URL+"/")
	h := newResolvers(t, nil)
	h.reads(t, s, "", "", "k8s")
}

func TestAValueOutlivesItsManagerButNoRefusal(t *testing.T) {
	h := newResolvers(t, nil)
	vault := managertest.NewVault(t, h.clock.now)
	vault.Tokens["hvs.t"], vault.Secrets["kv/a"] = time.Time{}, `{"v":"1"}`
	of := func() *reference.Source {
		return source(t, reference.Vault, "kv/a", map[string]string{"vault_auth_type": "token", "vault_addr": vault.URL}, map[string]string{"vault_token": "hvs.t"})
	}
	h.reads(t, of(), "", "", "1")
	vault.Do(func() { vault.Secrets["kv/a"] = `{"v":"2"}` })
	h.clock.move(reference.MaxAge - time.Second)
	h.reads(t, of(), "", "", "1")
	if vault.Calls("read") != 1 {
		t.Errorf("%d reads while the value is fresh", vault.Calls("read"))
	}
	vault.Down(503)
	h.clock.move(time.Minute)
	h.reads(t, of(), "", "", "1")
	h.reads(t, of(), "", "", "1")
	if vault.Calls("down") != 1 {
		t.Errorf("a manager that is down was asked %d times at once", vault.Calls("down"))
	}
	h.clock.move(20 * time.Second)
	h.reads(t, of(), "", "", "1")
	if vault.Calls("down") != 2 {
		t.Errorf("a manager that is down was asked %d times", vault.Calls("down"))
	}
	vault.Down(0)
	h.clock.move(20 * time.Second)
	h.reads(t, of(), "", "", "2")
	// Down for longer than a value may stand.
	vault.Down(500)
	h.clock.move(reference.MaxStale + time.Second)
	h.fails(t, of(), fault.ProviderUnreachable, "500")
	vault.Down(0)
	h.clock.move(2 * time.Second)
	h.reads(t, of(), "", "", "2")
	// What is rejected is not used any more.
	vault.Do(func() { delete(vault.Secrets, "kv/a") })
	h.clock.move(reference.MaxAge)
	h.fails(t, of(), fault.ProviderError, "404")
	// A clock that is set back makes nothing last longer.
	vault.Do(func() { vault.Secrets["kv/a"] = `{"v":"3"}` })
	h.clock.move(-48 * time.Hour)
	h.reads(t, of(), "", "", "3")
}

func TestADoubtedValueIsFetchedAgain(t *testing.T) {
	h := newResolvers(t, nil)
	vault := managertest.NewVault(t, h.clock.now)
	vault.Tokens["hvs.t"], vault.Secrets["kv/a"] = time.Time{}, `{"v":"1"}`
	s := source(t, reference.Vault, "kv/a", map[string]string{"vault_auth_type": "token", "vault_addr": vault.URL}, map[string]string{"vault_token": "hvs.t"})
	h.reads(t, s, "", "", "1")
	vault.Do(func() { vault.Secrets["kv/a"] = `{"v":"2"}` })
	h.MarkRejected(s)
	h.reads(t, s, "", "", "1") // it has just been asked for
	h.clock.move(time.Minute)
	h.MarkRejected(s)
	h.MarkRejected(s)
	h.reads(t, s, "", "", "2")
	if vault.Calls("read") != 2 {
		t.Errorf("%d reads", vault.Calls("read"))
	}
}

func TestConcurrentUsersOfASecretFetchItOnce(t *testing.T) {
	h := newResolvers(t, nil)
	vault := managertest.NewVault(t, h.clock.now)
	vault.Tokens["hvs.t"], vault.Secrets["kv/a"] = time.Time{}, `{"v":"1"}`
	s := source(t, reference.Vault, "kv/a", map[string]string{"vault_auth_type": "token", "vault_addr": vault.URL}, map[string]string{"vault_token": "hvs.t"})
	gone, cancel := context.WithCancel(context.Background())
	cancel()
	_, _, _ = h.Value(gone, s) // who leaves takes nobody's answer along
	var wg sync.WaitGroup
	for range 32 {
		wg.Go(func() { h.reads(t, s, "", "", "1") })
	}
	wg.Wait()
	if n := vault.Calls("read"); n != 1 {
		t.Errorf("%d reads", n)
	}
}

func TestSecretManagersAreBehindTheGuard(t *testing.T) {
	rt := egress.New(egress.Policy{}, egress.Options{})
	t.Cleanup(func() { egress.CloseIdle(rt) })
	h := newResolvers(t, rt)
	vault := managertest.NewVault(t, h.clock.now)
	for _, address := range []string{vault.URL, "http://169.254.169.254", "https://localhost:8200"} {
		s := source(t, reference.Vault, "kv/a", map[string]string{"vault_auth_type": "token", "vault_addr": address}, map[string]string{"vault_token": "hvs.t"})
		h.fails(t, s, fault.ProviderError, "may not call")
	}
}
