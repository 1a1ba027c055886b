package reference

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"
)

// vaultToken is a token that a login gave.
type vaultToken struct {
	token     string
	renewable bool
	renew     time.Time // when its life is prolonged
	ends      time.Time // after this it is not used; zero: it does not end
}

const (
	vaultName = "Vault"
	maxTokens = 1024
)

// fromVault reads a secret of a key-value engine, of either version. If Vault no longer
// accepts a login's token, the token is replaced, once.
func (r *Resolver) fromVault(ctx context.Context, auth map[string]string, path string) (*Value, error) {
	v := vault{r: r, auth: auth, address: strings.TrimRight(auth[vaultAddr], "/")}
	if auth[vaultAuthType] == token {
		return v.read(ctx, auth[vaultTokenName], path)
	}
	key := v.key()
	t, err := v.login(ctx, key)
	if err != nil {
		return nil, err
	}
	value, err := v.read(ctx, t, path)
	if !errors.Is(err, errForbidden) {
		return value, err
	}
	r.mu.Lock()
	delete(r.tokens, key)
	r.mu.Unlock()
	if t, err = v.login(ctx, key); err != nil {
		return nil, err
	}
	return v.read(ctx, t, path)
}

// vault is one Vault server, called with the authentication of one reference.
type vault struct {
	r       *Resolver
	auth    map[string]string
	address string
}

// errForbidden reports that Vault does not accept the token, or not for this secret.
var errForbidden = errors.New("reference: forbidden by Vault")

// vaultResponse is what Vault answers.
type vaultResponse struct {
	Data     json.RawMessage `json:"data"`
	Errors   []string        `json:"errors"`
	Warnings []string        `json:"warnings"`
	Auth     *struct {
		Token     string `json:"client_token"`
		Seconds   int64  `json:"lease_duration"`
		Renewable bool   `json:"renewable"`
	} `json:"auth"`
}

// call calls Vault. body nil is a GET.
func (v *vault) call(ctx context.Context, token, path string, body any) (int, *vaultResponse, error) {
	method, send := http.MethodGet, []byte(nil)
	if body != nil {
		method = http.MethodPost
		var err error
		if send, err = json.Marshal(body); err != nil {
			return 0, nil, rejected("cannot be read")
		}
	}
	segments := strings.Split(strings.Trim(path, "/"), "/")
	for i, s := range segments {
		segments[i] = url.PathEscape(s)
	}
	req, err := http.NewRequestWithContext(ctx, method, v.address+"/v1/"+strings.Join(segments, "/"), bytes.NewReader(send))
	if err != nil {
		return 0, nil, rejected("has a vault_addr that is not a URL")
	}
	req.Header.Set("X-Vault-Request", "true")
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		req.Header.Set("X-Vault-Token", token)
	}
	if ns := v.auth[vaultNamespace]; ns != "" {
		req.Header.Set("X-Vault-Namespace", ns)
	}
	status, answer, err := v.r.call(req, vaultName)
	if err != nil {
		return 0, nil, err
	}
	var a vaultResponse
	if json.Unmarshal(answer, &a) != nil && status < 300 {
		return 0, nil, passing(nil, "cannot be read: the response of Vault is not valid")
	}
	// 412 and 472 to 474 come from nodes that do not serve at the moment.
	if status >= 500 || status == http.StatusTooManyRequests || status == http.StatusPreconditionFailed || status >= 300 && status < 400 || status >= 472 && status <= 474 {
		return 0, nil, passing(nil, "cannot be read: Vault responded with %d", status)
	}
	return status, &a, nil
}

// read gives the secret at a path. A path as in Vault's command line lacks the part that
// version 2 puts after the mount; Vault's answer reports it.
func (v *vault) read(ctx context.Context, token, path string) (*Value, error) {
	status, a, err := v.call(ctx, token, path, nil)
	if err != nil {
		return nil, err
	}
	if status == http.StatusNotFound && slices.ContainsFunc(a.Warnings, func(w string) bool { return strings.Contains(w, "versioned K/V") }) {
		if mount, rest, ok := strings.Cut(strings.Trim(path, "/"), "/"); ok {
			if status, a, err = v.call(ctx, token, mount+"/data/"+rest, nil); err != nil {
				return nil, err
			}
		}
	}
	switch {
	case status == http.StatusForbidden:
		return nil, &failure{why: "was denied by Vault: 403, the token is not valid or may not read it", final: true, cause: errForbidden}
	case status != http.StatusOK:
		return nil, rejected("cannot be read: Vault responded with %d", status)
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(a.Data, &members) != nil || members == nil {
		return nil, passing(nil, "cannot be read: the response of Vault is not valid")
	}
	// Version 2 wraps the fields and adds metadata about the version.
	if inner, ok := members["data"]; ok && len(members) == 2 && members["metadata"] != nil {
		var data map[string]json.RawMessage
		if json.Unmarshal(inner, &data) != nil {
			return nil, passing(nil, "cannot be read: the response of Vault is not valid")
		}
		if data == nil {
			return nil, rejected("has been deleted in Vault")
		}
		members = data
	}
	return newObject(members)
}

// key identifies the token of a login.
func (v *vault) key() [sha256.Size]byte {
	var text []byte
	for _, s := range []string{v.address, v.auth[vaultNamespace], v.auth[vaultAuthType], v.auth[vaultRoleID], v.auth[vaultSecretID], v.auth[vaultRole]} {
		text = fmt.Appendf(text, "%d:%s", len(s), s)
	}
	return sha256.Sum256(text)
}

// login returns a token: the cached one, which is renewed in the last third of its lifetime, or
// one from a new login.
func (v *vault) login(ctx context.Context, key [sha256.Size]byte) (string, error) {
	now := v.r.now()
	v.r.mu.Lock()
	t := v.r.tokens[key]
	v.r.mu.Unlock()
	if t != nil && (t.ends.IsZero() || now.Before(t.ends)) {
		if !t.renewable || t.ends.IsZero() || now.Before(t.renew) {
			return t.token, nil
		}
		if status, a, err := v.call(ctx, t.token, "auth/token/renew-self", struct{}{}); err == nil && status == http.StatusOK && a.Auth != nil {
			return v.storeToken(key, a, t.token)
		}
	}
	path, proof, err := v.proof()
	if err != nil {
		return "", err
	}
	status, a, err := v.call(ctx, "", path, proof)
	if err != nil {
		return "", err
	}
	if status != http.StatusOK {
		return "", rejected("cannot be read: Vault rejects the %s login with %d", v.auth[vaultAuthType], status)
	}
	return v.storeToken(key, a, "")
}

// storeToken remembers a token. was is the one that was prolonged.
func (v *vault) storeToken(key [sha256.Size]byte, a *vaultResponse, was string) (string, error) {
	if a.Auth == nil || a.Auth.Token == "" && was == "" || visible(nil, a.Auth.Token) != "" || a.Auth.Seconds < 0 {
		return "", passing(nil, "cannot be read: Vault returned a login without a token")
	}
	t := &vaultToken{token: a.Auth.Token, renewable: a.Auth.Renewable}
	if t.token == "" {
		t.token = was
	}
	if life := time.Duration(min(a.Auth.Seconds, 1<<31)) * time.Second; life > 0 {
		now := v.r.now()
		t.renew, t.ends = now.Add(life*2/3), now.Add(life-min(life/10, time.Minute))
	}
	v.r.mu.Lock()
	defer v.r.mu.Unlock()
	if len(v.r.tokens) >= maxTokens {
		clear(v.r.tokens)
	}
	v.r.tokens[key] = t
	return t.token, nil
}

// proof is the path and the body of a login request.
func (v *vault) proof() (path string, body any, err error) {
	if v.auth[vaultAuthType] == appRole {
		return "auth/approle/login", map[string]string{"role_id": v.auth[vaultRoleID], "secret_id": v.auth[vaultSecretID]}, nil
	}
	if !slices.Contains(v.r.host.vaults, v.address) {
		return "", nil, rejected("cannot be read: the operator must list this vault_addr in %s before the gateway's own token is sent to it", EnvKubernetesVaults)
	}
	jwt, err := os.ReadFile(v.r.host.tokenFile)
	if err != nil {
		return "", nil, passing(err, "cannot be read: the token of the gateway's own service account cannot be read")
	}
	return "auth/kubernetes/login", map[string]string{"jwt": strings.TrimSpace(string(jwt)), "role": v.auth[vaultRole]}, nil
}
