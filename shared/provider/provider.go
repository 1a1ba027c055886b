// Package provider is the catalog of model providers: one row each, with its address,
// authentication, credential fields, paths of operations and the quirks that a dialect
// must respect. A row and a credential make a Target; a Target builds the URL and the
// headers of an upstream request.
//
// The package also contains the stored forms of integrations and saved providers.
//
// Adding an OpenAI-compatible provider is adding one row to a table. A provider with a
// dialect that the gateway does not translate still has a row, so that pass-through
// reaches it.
//
// This package must not contain body formats (dialects) or send requests (relay, egress).
package provider

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"os"

	"gateway/shared/fault"
	"gateway/shared/seal/reference"
	"gateway/shared/wire"
)

// Provider is one row of the catalog. Rows are never changed.
type Provider struct {
	ID      string   // provider type, such as openai
	Aliases []string // other ids that mean the same row
	Name    string
	Dialect string // of its conversations; "" when it has none
	Base    string // base URL template; "" if only a custom host reaches it
	Prefix  string // between base (or custom host) and the paths of Routes
	Auth    Auth
	Key     string   // when api_key is needed: see Field.Need
	Headers []Header // sent with each request
	Fields  []Field  // of the credential, besides api_key
	Routes  []Route
	Model   string // the model that the provider uses when the caller names none
	Quirks  Quirks

	placing []*Field // that are HostField
}

// Scheme is a way to authenticate.
type Scheme uint8

const (
	NoAuth      Scheme = iota
	HeaderAuth         // Prefix + key in header Name
	QueryAuth          // key in query parameter Name
	AzureAuth          // api-key or bearer header, or a Microsoft Entra token
	SigV4Auth          // AWS Signature Version 4, or a bearer key; Name is the service
	GoogleOAuth        // Google access token
	OCIAuth            // Oracle Cloud request signature
)

// Auth is how a provider authenticates.
type Auth struct {
	Scheme Scheme
	Name   string
	Prefix string
}

var bearer = Auth{HeaderAuth, "Authorization", "Bearer "}

// Header is an extra header. Value is a template; it is not sent if all of its fields are
// empty.
type Header struct{ Name, Value string }

// Quirks are the differences of a host with the OpenAI dialect from OpenAI. Traits
// contains them for the dialects; Adapt applies them to a forwarded body.
type Quirks struct {
	Developer     bool     // knows the role developer; elsewhere it becomes system
	StreamUsage   bool     // takes stream_options.include_usage
	OnlyMaxTokens bool     // takes max_tokens, not max_completion_tokens
	RequiredIsAny bool     // writes tool_choice "required" as "any"
	CacheControl  bool     // takes cache markers on parts
	ObjectOnly    bool     // takes response_format json_object, but not json_schema
	NoUnknown     bool     // rejects fields that are not in its reference
	Rename        []Rename // fields with another name
	Drop          []string // fields that it rejects
}

// Rename is a body field that a host knows by another name.
type Rename struct{ From, To string }

var byID = func() map[string]*Provider {
	m := make(map[string]*Provider, 2*len(catalog))
	for i := range catalog {
		p := &catalog[i]
		p.readHeaderNames()
		m[p.ID] = p
		for _, alias := range p.Aliases {
			m[alias] = p
		}
	}
	return m
}()

// canonicalNames are the header names of the catalog in canonical form, which net/http
// otherwise makes again each time.
var canonicalNames = map[string]string{}

func (p *Provider) readHeaderNames() {
	know := func(name string) string {
		canonicalNames[name] = http.CanonicalHeaderKey(name)
		return canonicalNames[name]
	}
	for i := range p.Fields {
		f := &p.Fields[i]
		if name := f.HeaderName(); name != "" {
			f.header = know(name)
		}
		if f.Bare != "" {
			know(f.Bare)
		}
		if f.Part()&HostField != 0 {
			p.placing = append(p.placing, f)
		}
	}
	for _, h := range p.Headers {
		know(h.Name)
	}
	know(p.Auth.Name)
	know("Authorization")
}

// canonical is http.CanonicalHeaderKey.
func canonical(name string) string {
	if c, ok := canonicalNames[name]; ok {
		return c
	}
	return http.CanonicalHeaderKey(name)
}

// ByID finds a provider by its id or an alias.
func ByID(id string) (*Provider, bool) {
	p, ok := byID[id]
	return p, ok
}

// All returns every provider in the order of the catalog.
func All() []*Provider {
	all := make([]*Provider, len(catalog))
	for i := range catalog {
		all[i] = &catalog[i]
	}
	return all
}

// The values of azure_auth_mode.
const (
	azureKey            = "default"
	azureEntra          = "entra"          // an application with a client secret
	azureManaged        = "managed"        // the identity of the gateway's own host
	azureWorkload       = "workload"       // the gateway's own federated token
	azureEntraFederated = "entraFederated" // the gateway's own AWS identity, federated
)

// authorizeAzure sends, in this order of preference, a ready-made Entra token, the token of
// the target's azure_auth_mode, or the key in the form that the service wants.
func authorizeAzure(t *Target, ctx context.Context, req *http.Request) error {
	token := t.Field("azure_ad_token")
	if token != "" && !printable(token) {
		return fault.Invalid("azure_ad_token", "azure_ad_token must not contain spaces or control characters")
	}
	if mode := t.Field("azure_auth_mode"); token == "" && mode != "" && mode != azureKey {
		var err error
		if token, err = azureToken(t, ctx, mode); err != nil {
			return err
		}
	}
	if t.anthropicDeployment() && req.Header.Get("anthropic-version") == "" {
		version, _ := headerValue(t, "{anthropic_version|2023-06-01}")
		req.Header.Set("anthropic-version", version)
	}
	switch {
	case token != "":
		req.Header.Set("Authorization", "Bearer "+token)
		return nil
	case t.anthropicDeployment():
		return keyHeader(t, req.Header, "x-api-key", "")
	}
	return keyHeader(t, req.Header, t.Provider.Auth.Name, t.Provider.Auth.Prefix)
}

// Proofs returns external secret managers the same proofs that providers of the same
// clouds get, by the same rules about what the gateway lends.
type Proofs struct{ Tokens *Tokens }

var _ reference.Identities = Proofs{}

// target is a target that represents a secret manager in this package's schemes.
func (p Proofs) target(manager string, fields map[string]string) *Target {
	return &Target{Provider: &Provider{ID: manager}, Credential: Credential{Fields: fields}, Saved: true, Signer: p.Tokens}
}

// SignAWS implements reference.Identities.
func (p Proofs) SignAWS(ctx context.Context, auth map[string]string, req *http.Request, body []byte, service, region string) error {
	keys, err := awsCredentials(p.target(reference.AWS, auth), ctx, auth["aws_auth_type"], region)
	if err != nil {
		return err
	}
	return signAWS(ctx, req, body, keys, service, region, p.Tokens.Now())
}

// AzureToken implements reference.Identities. The mode default is the identity that the
// gateway's host gives: a federated token if there is one, otherwise the managed identity.
func (p Proofs) AzureToken(ctx context.Context, auth map[string]string, resource string) (string, error) {
	fields := map[string]string{"azure_entra_scope": resource + "/.default"}
	for _, name := range []string{"azure_entra_tenant_id", "azure_entra_client_id", "azure_entra_client_secret", "azure_managed_client_id"} {
		if v := auth[name]; v != "" {
			fields[name] = v
		}
	}
	mode := auth["azure_auth_mode"]
	if mode == "default" {
		if mode = azureManaged; os.Getenv(azureFederatedFile) != "" {
			mode = azureWorkload
		}
	}
	if u, err := url.Parse(resource); err != nil || u.Host == "" {
		return "", fault.Invalid("azure_vault_url", "is not a URL")
	}
	return azureToken(p.target(reference.Azure, fields), ctx, mode)
}

// Adapt changes a body of the OpenAI chat dialect where the host differs from OpenAI, and
// leaves every other byte. The result is body itself when nothing had to change. dropped
// names the fields that were omitted, for the report to the caller. body is a checked
// JSON object.
func (p *Provider) Adapt(body []byte) (adapted []byte, dropped []string) {
	q := &p.Quirks
	if p.Dialect != OpenAIChat {
		return body, nil
	}
	var edits []wire.Edit
	renames := q.renames()
	if len(renames)+len(q.Drop) > 0 || q.RequiredIsAny {
		edits, dropped = q.members(body, renames)
	}
	if !q.Developer && bytes.Contains(body, []byte(`developer"`)) {
		edits = append(edits, developerRoles(body)...)
	}
	if len(edits) == 0 {
		return body, nil
	}
	return wire.Splice(make([]byte, 0, len(body)+16), body, edits...), dropped
}

func (q *Quirks) renames() []Rename {
	if !q.OnlyMaxTokens {
		return q.Rename
	}
	return append(q.Rename[:len(q.Rename):len(q.Rename)], Rename{"max_completion_tokens", "max_tokens"})
}

// members makes the edits of top-level fields. If a body has both max_tokens and
// max_completion_tokens, the latter wins.
func (q *Quirks) members(body []byte, renames []Rename) (edits []wire.Edit, dropped []string) {
	var keys []string
	for _, r := range renames {
		keys = append(keys, r.From, r.To)
	}
	keys = append(append(keys, q.Drop...), "tool_choice")
	set := wire.NewKeySet(keys...)
	var w wire.Walk
	if set.Walk(body, &w) != nil {
		return nil, nil // the provider reports the error
	}
	for i := range renames {
		from, to := 2*i, 2*i+1
		if w.Spans[from].Absent() {
			continue
		}
		value := w.Spans[from].Of(body)
		edits = append(edits, wire.DeleteKey(&w, from))
		if w.Spans[from].Present(body) {
			edits = append(edits, set.SetKey(&w, to, value))
		}
	}
	for i, name := range q.Drop {
		if k := 2*len(renames) + i; !w.Spans[k].Absent() {
			edits = append(edits, wire.DeleteKey(&w, k))
			if w.Spans[k].Present(body) {
				dropped = append(dropped, name)
			}
		}
	}
	choice := w.Spans[len(keys)-1]
	if q.RequiredIsAny && string(choice.Of(body)) == `"required"` {
		edits = append(edits, wire.Replace(choice, []byte(`"any"`)))
	}
	return edits, dropped
}

// developerRoles makes the edits that turn the role developer into system.
func developerRoles(body []byte) (edits []wire.Edit) {
	d := wire.NewDecoder(body)
	for key := range d.Object {
		if string(key) != "messages" || d.Kind() != wire.KindArray {
			continue
		}
		for range d.Array {
			if d.Kind() != wire.KindObject {
				continue
			}
			for key := range d.Object {
				if string(key) != "role" || d.Kind() != wire.KindString {
					continue
				}
				start := d.Offset()
				if raw := d.RawStr(); string(raw) == `"developer"` {
					edits = append(edits, wire.Replace(wire.Span{Start: start, End: start + len(raw)}, []byte(`"system"`)))
				}
			}
		}
	}
	return edits
}
