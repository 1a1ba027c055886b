package provider

import (
	"maps"
	"math"
	"net/http"
	"net/url"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/fault"
)

// Credential is what gives access to a provider: the key and the values of the row's fields
// by their names.
type Credential struct {
	Key         string
	Fields      map[string]string
	Deployments []Deployment // azure-openai
	// CustomHost and CustomHeaders are those of an integration's configurations; a Target may
	// have its own.
	CustomHost    string
	CustomHeaders map[string]string
}

// Deployment is one Azure deployment and the model name that it serves.
type Deployment struct {
	Name       string
	Alias      string
	APIVersion string
	Model      string // a model of the catalog, for prices
	Default    bool
}

// Target is a provider together with everything that is needed to call it.
type Target struct {
	Provider      *Provider
	Credential    Credential
	CustomHost    string // replaces the base URL when set
	CustomHeaders map[string]string
	// CallerKey: the credential is the caller's own, not a stored one, so the caller may
	// choose the host that it is sent to.
	CallerKey bool
	// Saved: a part of the credential is saved, in an integration or in a config, so it is
	// only sent to the target's own address.
	Saved bool
	// Signer exchanges stored credentials for short-lived ones. It is nil where no
	// request is served; schemes that need it then reject.
	Signer Signer
	// TrustedTransport calls the custom host if the Signer's transport may not; may be nil.
	TrustedTransport http.RoundTripper
}

// Field returns the value of a credential field; "" when it is not set.
func (t *Target) Field(name string) string { return t.Credential.Fields[name] }

// OwnHost returns the URL that a person has set as the target's address, and the field
// that holds it; "" when the catalog's address is used. The caller must check the URL
// against the egress rules.
func (t *Target) OwnHost() (rawURL, field string) {
	switch {
	case t.CustomHost != "":
		return t.CustomHost, "custom_host"
	case t.Credential.CustomHost != "":
		return t.Credential.CustomHost, "custom_host"
	}
	for _, f := range t.Provider.Fields {
		if f.Form != BaseURL {
			continue
		}
		if v := t.Field(f.Name); v != "" {
			return v, f.Name
		}
	}
	return "", ""
}

func (t *Target) customHost() string {
	if t.CustomHost != "" {
		return t.CustomHost
	}
	return t.Credential.CustomHost
}

// addressParams is what an operation's templates may name besides the fields.
type addressParams struct {
	model, id string
	stream    bool
}

// URL is the address of op for model.
func (t *Target) URL(op Operation, model string, stream bool) (string, error) {
	return address(t, op, addressParams{model: model, stream: stream})
}

// ResourceURL is the address of op on the file, batch, job or response id.
func (t *Target) ResourceURL(op Operation, id string) (string, error) {
	return address(t, op, addressParams{id: id})
}

func address(t *Target, op Operation, a addressParams) (string, error) {
	r, ok := t.Provider.Route(op)
	if !ok {
		return "", fault.Newf(fault.UnsupportedOperation, "", "%s is not supported by %s", op, t.Provider.ID)
	}
	place := place{base: t.Provider.Base, prefix: t.Provider.Prefix, path: r.Path}
	if r.Base != "" {
		place.base = r.Base
	}
	if a.stream && r.Stream != "" {
		place.path = r.Stream
	}
	if err := special(t, op, &a, &place); err != nil {
		return "", err
	}
	base, err := base(t, place.base)
	if err != nil {
		return "", err
	}
	path, err := expand(t, place.path, a)
	if err != nil {
		return "", err
	}
	if strings.HasSuffix(base, place.prefix) {
		place.prefix = "" // a custom host may already name the version
	}
	return base + place.prefix + path, nil
}

// base is the target's base URL without a slash at the end.
func base(t *Target, template string) (string, error) {
	if host := t.customHost(); host != "" {
		return strings.TrimRight(host, "/"), nil
	}
	if template == "" {
		return "", fault.Newf(fault.InvalidRequest, "custom_host", "custom_host is required by %s, which has no public address", t.Provider.ID)
	}
	base, err := expand(t, regionalBase(t, template), addressParams{})
	return strings.TrimRight(base, "/"), err
}

// expand expands a template: {field}, {field|default}, {model} with its slashes, {model!}
// and {id!} escaped as one segment.
func expand(t *Target, template string, a addressParams) (string, error) {
	if strings.IndexByte(template, '{') < 0 {
		return template, nil
	}
	var b strings.Builder
	for {
		before, rest, found := strings.Cut(template, "{")
		b.WriteString(before)
		if !found {
			return b.String(), nil
		}
		name, after, _ := strings.Cut(rest, "}")
		value, err := placeholder(t, name, a, strings.Contains(b.String(), "?"))
		if err != nil {
			return "", err
		}
		b.WriteString(value)
		template = after
	}
}

func placeholder(t *Target, name string, a addressParams, inQuery bool) (string, error) {
	name, whole := strings.CutSuffix(name, "!")
	switch name {
	case "model", "base_model":
		return escapeName("model", a.model, whole, inQuery)
	case "id":
		return escapeName("id", a.id, true, inQuery)
	}
	name, standard, _ := strings.Cut(name, "|")
	value := t.Field(name)
	if value == "" {
		value = standard
	}
	f, ok := t.Provider.Field(name)
	switch {
	case value == "":
		return "", fault.Invalid(name, "%s is required by %s", name, t.Provider.ID)
	case ok && !f.Form.fits(value):
		return "", fault.Invalid(name, "%s %s", name, f.Form.rule())
	}
	return value, nil
}

// escapeName writes a model or a resource id into a path. Slashes remain unless whole is
// set. A segment that a server might resolve away is rejected.
func escapeName(field, name string, whole, inQuery bool) (string, error) {
	if name == "" {
		return "", fault.Invalid(field, "%s is required: it is part of the provider's URL", field)
	}
	for i := range len(name) {
		if name[i] < 0x20 || name[i] == 0x7f {
			return "", fault.Invalid(field, "%s must not contain control characters", field)
		}
	}
	if inQuery {
		return url.QueryEscape(name), nil
	}
	segments := strings.Split(name, "/")
	for i, s := range segments {
		if s == "." || s == ".." || s == "" {
			return "", fault.Invalid(field, "%s must not contain empty, . or .. segments", field)
		}
		// A colon stays, as in "model:tag"; an ARN is one escaped segment.
		if segments[i] = url.PathEscape(s); whole {
			segments[i] = strings.ReplaceAll(segments[i], ":", "%3A")
		}
	}
	if whole {
		return strings.Join(segments, "%2F"), nil
	}
	return strings.Join(segments, "/"), nil
}

// AddQuery appends a raw query to a URL that may already have one.
func AddQuery(rawURL, rawQuery string) string {
	switch {
	case rawQuery == "":
		return rawURL
	case strings.Contains(rawURL, "?"):
		return rawURL + "&" + rawQuery
	}
	return rawURL + "?" + rawQuery
}

// ExactURL parses rawURL so that its path and query are sent byte for byte, without
// cleaning or different escaping.
func ExactURL(rawURL string) (*url.URL, error) {
	scheme, rest, ok := strings.Cut(rawURL, "://")
	if !ok {
		return nil, fault.New(fault.InvalidRequest, "", "The provider's address is not a URL")
	}
	host, target := rest, ""
	if i := strings.IndexAny(rest, "/?"); i >= 0 {
		host, target = rest[:i], rest[i:]
	}
	path, query, _ := strings.Cut(target, "?")
	for i := range len(target) {
		if target[i] <= ' ' || target[i] == 0x7f || target[i] == '#' {
			return nil, fault.New(fault.InvalidRequest, "", "The path must not contain spaces, control characters or #")
		}
	}
	u, err := url.Parse(scheme + "://" + host)
	if err != nil || u.Host == "" {
		return nil, fault.New(fault.InvalidRequest, "", "The provider's address is not a URL")
	}
	if path == "" {
		path = "/"
	}
	if strings.HasPrefix(path, "//") {
		path = "//" + u.Host + path // in the absolute form, because Opaque may not start with //
	}
	u.Opaque, u.RawQuery = path, query
	u.ForceQuery = strings.HasSuffix(target, "?")
	return u, nil
}

// TakesRecordingURL reports whether the host may take the address of a recording in place
// of a file. For a caller's own host that is not known.
func (t *Target) TakesRecordingURL() bool { return t.Provider.ID == "groq" || t.customHost() != "" }

// Hosts with limits wider than the specification's. Each row names its source. Other hosts have
// the specification's limits.
var widenings = map[string]chat.ExtendedLimits{
	// "Up to 16 sequences": api-docs.deepseek.com, Create Chat Completion, stop.
	"deepseek": {Stops: 16},
	// "A list of up to 5 strings": docs.cohere.com, Chat, stop_sequences.
	"cohere": {Stops: 5},
	// "Up to 5": ai.google.dev, GenerationConfig, stopSequences. "At most 512 function
	// declarations can be specified": the Gemini API's own rejection, as in
	// github.com/google-gemini/gemini-cli/issues/19083 and 25440. "Maximum 512 function
	// declarations can be provided": Vertex AI, REST reference, Tool (older ones say 64
	// and 128).
	"google":    {Stops: 5, Tools: 512},
	"vertex-ai": {Stops: 5, Tools: 512},
	// The Messages API does not bound its lists: docs.anthropic.com, Create a Message.
	"anthropic":           {Tools: math.MaxInt},
	"claude-platform-aws": {Tools: math.MaxInt},
	// "Integer that controls the number of top logprobs, 0 to 20": docs.together.ai,
	// Create Chat Completion, logprobs.
	"together-ai": {CountedLogprobs: 20},
}

// widening returns how much wider than the specification the target's limits are.
func (t *Target) widening(model string) chat.ExtendedLimits {
	switch {
	case t.ownHost():
		return chat.Unbounded
	case t.DialectOf(Chat, model) == AnthropicMessages:
		return widenings["anthropic"] // for any host of Claude
	case t.Provider.ID == "vertex-ai":
		switch publisher, _ := vertexModel(model); publisher {
		case "mistralai":
			return chat.ExtendedLimits{}
		case "endpoints":
			return chat.Unbounded // a caller's own machine
		case "meta":
			return chat.ExtendedLimits{}
		}
	}
	return widenings[t.Provider.ID]
}

// Object stores: providers that run in a cloud read and write the files of their jobs in
// the object store of that cloud.

// Objects is the target for the object store of its cloud: the same credential, signed for
// the store.
func (t Target) Objects() Target {
	if t.Provider.Auth.Scheme == SigV4Auth {
		t.Credential.Fields = maps.Clone(t.Credential.Fields)
		if t.Credential.Fields == nil {
			t.Credential.Fields = make(map[string]string, 1)
		}
		t.Credential.Fields["aws_service"] = "s3"
	}
	return t
}

// ObjectURL returns the address of an object, named as bucket/key, in the object store of
// the target's cloud. For a custom host, the buckets are below it.
func (t *Target) ObjectURL(object string) (string, error) {
	bucket, key, _ := strings.Cut(object, "/")
	if !HostLabels.fits(bucket) || key == "" {
		return "", fault.Invalid("id", "id must name an object in a bucket")
	}
	segments := strings.Split(key, "/")
	for i, s := range segments {
		if s == "." || s == ".." || strings.ContainsAny(s, "\x00\r\n") {
			return "", fault.Invalid("id", "id must not contain . or .. segments or control characters")
		}
		segments[i] = objectEscape(s)
	}
	path := strings.Join(segments, "/")
	if own := t.customHost(); own != "" {
		return strings.TrimRight(own, "/") + "/" + bucket + "/" + path, nil
	}
	if t.Provider.Auth.Scheme == GoogleOAuth {
		return "https://storage.googleapis.com/" + bucket + "/" + path, nil
	}
	if t.Provider.Auth.Scheme != SigV4Auth {
		return "", fault.Newf(fault.UnsupportedOperation, "", "%s does not store objects", t.Provider.ID)
	}
	if awsMode((t)) == awsAPIKey {
		return "", fault.New(fault.InvalidRequest, "aws_auth_type", "Files are stored in Amazon S3, which does not accept an API key of Bedrock: use access keys or a role")
	}
	region, err := awsRegion(t)
	if err != nil {
		return "", err
	}
	if strings.Contains(bucket, ".") { // the certificate of S3 is for one label only
		return "https://s3." + region + ".amazonaws.com/" + bucket + "/" + path, nil
	}
	return "https://" + bucket + ".s3." + region + ".amazonaws.com/" + path, nil
}

// objectEscape escapes a segment of a key in the way that S3 signatures demand: every
// character except unreserved ones.
func objectEscape(s string) string {
	return strings.ReplaceAll(url.QueryEscape(s), "+", "%20")
}
