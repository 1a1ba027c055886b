package provider

import "net/http"

// Provider is one row of the catalogue. Rows are never changed.
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

	placing []*Field // that are Places
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
	NoUnknown     bool     // rejects members that are not in its reference
	Rename        []Rename // members with another name
	Drop          []string // members that it rejects
}

// Rename is a body member that a host knows by another name.
type Rename struct{ From, To string }

var byID = func() map[string]*Provider {
	m := make(map[string]*Provider, 2*len(catalogue))
	for i := range catalogue {
		p := &catalogue[i]
		p.readHeaderNames()
		m[p.ID] = p
		for _, alias := range p.Aliases {
			m[alias] = p
		}
	}
	return m
}()

// canonicalNames are the header names of the catalogue in canonical form, which net/http
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
		if f.Part()&Places != 0 {
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

// All returns every provider in the order of the catalogue.
func All() []*Provider {
	all := make([]*Provider, len(catalogue))
	for i := range catalogue {
		all[i] = &catalogue[i]
	}
	return all
}
