package oauthserver

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"gateway/shared/egress"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// Client is an application that users can authorize.
type Client struct {
	ID        string
	Name      string
	URI       string // home page, may be empty
	Redirects []string
}

// Limits in bytes.
const (
	MaxClientID  = 4096
	maxName      = 100
	maxURI       = 512
	MaxRedirects = 8
	maxDocument  = 64 << 10
	fetchTime    = 10 * time.Second
	maxDepth     = 16
)

// registeredPrefix is the prefix of registered client ids, followed by the client's metadata.
const registeredPrefix = "mcp-client."

// metadata is the content of a registered client's id.
type metadata struct {
	Name      string   `json:"n,omitempty"`
	URI       string   `json:"u,omitempty"`
	Redirects []string `json:"r"`
}

// Register returns a client with an id that contains its metadata, with the valid redirect URIs (RFC
// 7591, 3.2.1). Nothing is stored: forging an id has the same effect as registering.
func Register(name, uri string, redirects []string) (*Client, error) {
	c := &Client{Name: name, URI: uri, Redirects: usable(redirects)}
	if bad := c.check("client_name", "client_uri", "redirect_uris"); bad != nil {
		return nil, bad
	}
	raw, err := json.Marshal(metadata{name, uri, c.Redirects})
	if err != nil {
		return nil, err
	}
	c.ID = registeredPrefix + base64.RawURLEncoding.EncodeToString(raw)
	if len(c.ID) > MaxClientID {
		return nil, fault.Invalid("redirect_uris", "are too long together: at most %d bytes with the name", MaxClientID*3/4)
	}
	return c, nil
}

// check validates the metadata. The arguments are the field names in faults.
func (c *Client) check(name, uri, redirects string) error {
	var bad []fault.Detail
	if len(c.Name) > maxName || !utf8.ValidString(c.Name) || strings.ContainsFunc(c.Name, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		bad = append(bad, fault.Detail{Field: name, Message: fmt.Sprintf("must be at most %d bytes on one line", maxName)})
	}
	if Reserved(c.Name) {
		bad = append(bad, fault.Detail{Field: name, Message: "must not be that of a built-in client of the gateway"})
	}
	if u, err := url.Parse(c.URI); c.URI != "" && (err != nil || len(c.URI) > maxURI || u.Scheme != "https" && u.Scheme != "http" || u.Host == "") {
		bad = append(bad, fault.Detail{Field: uri, Message: fmt.Sprintf("must be an http or https address of at most %d bytes", maxURI)})
	}
	if len(c.Redirects) == 0 || len(c.Redirects) > MaxRedirects {
		bad = append(bad, fault.Detail{Field: redirects, Message: fmt.Sprintf("must have 1 to %d entries", MaxRedirects)})
	}
	for i, r := range c.Redirects[:min(len(c.Redirects), MaxRedirects)] {
		if why := wrongRedirect(r); why != "" {
			bad = append(bad, fault.Detail{Field: fmt.Sprintf("%s[%d]", redirects, i), Message: why})
		}
	}
	if f := fault.Invalids(bad); f != nil {
		return f
	}
	return nil
}

// usable returns the valid redirect URIs. It returns all of them if none is valid or there are
// too many, so that check reports the reason.
func usable(redirects []string) []string {
	if len(redirects) > MaxRedirects {
		return redirects
	}
	var valid []string
	for _, r := range redirects {
		if wrongRedirect(r) == "" {
			valid = append(valid, r)
		}
	}
	if len(valid) == 0 {
		return redirects
	}
	return valid
}

// wrongRedirect returns why a redirect URI is invalid, or "". URIs other than https must refer
// to an application on the user's machine.
func wrongRedirect(raw string) string {
	u, err := url.Parse(raw)
	switch {
	case len(raw) > maxURI:
		return fmt.Sprintf("must have at most %d bytes", maxURI)
	case err != nil || strings.ContainsFunc(raw, func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("\\\"<>`'", r) }):
		return "must be an address of visible ASCII characters"
	case u.Fragment != "" || strings.HasSuffix(raw, "#"):
		return "must have no fragment"
	case u.User != nil:
		return "must have no user"
	case u.Scheme == "https" && u.Hostname() != "", u.Scheme == "http" && loopback(u.Hostname()), privateUse(u):
		return ""
	}
	return "must begin with https://, with http:// and name this machine (127.0.0.1, [::1] or localhost), or with a scheme of the application's own"
}

// privateUse reports whether a URI has a private-use scheme, as those of editors do (RFC 8252,
// 7.1): a reversed domain name, or another scheme followed by a host. Every client must use
// PKCE, so an application that claims the same scheme cannot use the code.
func privateUse(u *url.URL) bool {
	if u.Opaque != "" || slices.Contains(reservedSchemes, u.Scheme) || slices.ContainsFunc(systemPrefixes, func(prefix string) bool { return strings.HasPrefix(u.Scheme, prefix) }) {
		return false
	}
	return u.Host != "" || strings.Contains(u.Scheme, ".") && strings.HasPrefix(u.Path, "/")
}

// reservedSchemes are handled by browsers and operating systems.
var reservedSchemes = []string{
	"", "http", "https", "about", "blob", "chrome", "chrome-extension", "content", "data", "edge", "facetime", "file", "filesystem", "ftp", "ftps", "gopher", "help", "intent", "jar",
	"javascript", "ldap", "ldaps", "mailto", "mhtml", "moz-extension", "news", "nntp", "res", "resource", "rtsp", "sftp", "shell", "sms", "smb", "ssh", "tel", "telnet", "vbscript", "view-source",
	"wais", "ws", "wss", "x-apple.systempreferences",
}

// systemPrefixes begin the schemes with which systems start programs.
var systemPrefixes = []string{"ms-", "search-ms", "android-app", "ios-app", "web+"}

func loopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}

// Allows reports whether a redirect URI belongs to the client. The port of a loopback URI may
// differ, because applications get it at startup.
func (c *Client) Allows(redirect string) bool {
	if wrongRedirect(redirect) != "" {
		return false
	}
	return slices.ContainsFunc(c.Redirects, func(own string) bool {
		return own == redirect || anyPort(own) != "" && anyPort(own) == anyPort(redirect)
	})
}

// anyPort returns a loopback URI without its port, or "" for other URIs.
func anyPort(raw string) string {
	u, err := url.Parse(raw)
	if err != nil || u.Scheme != "http" || !loopback(u.Hostname()) {
		return ""
	}
	head := "http://" + u.Host
	return "http://" + u.Hostname() + strings.TrimPrefix(raw, head)
}

// DisplayName returns the name of the client that users see.
func (c *Client) DisplayName() string {
	if c.Name != "" {
		return c.Name
	}
	if u, err := url.Parse(c.ID); err == nil && u.Host != "" {
		return u.Host
	}
	return "An application"
}

// Host returns the host of the client's metadata document, or "" for a registered client.
func (c *Client) Host() string {
	if u, err := url.Parse(c.ID); err == nil && u.Scheme == "https" {
		return u.Host
	}
	return ""
}

// Fetcher finds clients by their ids.
type Fetcher struct {
	Transport http.RoundTripper // guarded
	CheckURL  func(raw, field string) (*url.URL, error)
}

func unknown() error {
	return fault.Invalid("client_id", "is unknown: it must be a registered client_id or the https address of a client metadata document")
}

// Find returns the client of an id. Errors are faults that can be shown to the client.
func (f *Fetcher) Find(ctx context.Context, id string) (*Client, error) {
	switch {
	case len(id) > MaxClientID:
		return nil, unknown()
	case strings.HasPrefix(id, registeredPrefix):
		return decodeID(id)
	case strings.HasPrefix(id, "https://"):
		return f.fetch(ctx, id)
	}
	return nil, unknown()
}

// decodeID decodes and validates the id of a registered client.
func decodeID(id string) (*Client, error) {
	raw, err := base64.RawURLEncoding.DecodeString(id[len(registeredPrefix):])
	var s metadata
	if err != nil || wire.CheckStrict(raw, maxDepth) != nil || json.Unmarshal(raw, &s) != nil {
		return nil, unknown()
	}
	c := &Client{ID: id, Name: s.Name, URI: s.URI, Redirects: s.Redirects}
	if c.check("client_id", "client_id", "client_id") != nil {
		return nil, unknown()
	}
	return c, nil
}

// documentAddress reports whether id is a valid address of a client metadata document.
func documentAddress(id string) bool {
	u, err := url.Parse(id)
	if err != nil || u.Host == "" || u.User != nil || u.Fragment != "" || strings.HasSuffix(id, "#") || len(id) > maxURI || u.Path == "" || u.Path == "/" {
		return false
	}
	for s := range strings.SplitSeq(u.Path, "/") {
		if s == "." || s == ".." {
			return false
		}
	}
	return true
}

// fetch reads the metadata document at the client's id.
func (f *Fetcher) fetch(ctx context.Context, id string) (*Client, error) {
	if !documentAddress(id) {
		return nil, unknown()
	}
	if _, err := f.CheckURL(id, "client_id"); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	wrong := func(why string) error { return fault.Invalid("client_id", "names a document that %s", why) }
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, id, nil)
	if err != nil {
		return nil, unknown()
	}
	req.Header.Set("Accept", "application/json")
	resp, err := f.Transport.RoundTrip(req)
	if err != nil {
		return nil, wrong("cannot be read")
	}
	defer resp.Body.Close()
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")) // an invalid type is not JSON
	raw, err := io.ReadAll(egress.CapBody(resp.Body, maxDocument))
	switch {
	case resp.StatusCode != http.StatusOK:
		return nil, wrong("is not there; redirects are not followed")
	case media != "application/json" && !strings.HasSuffix(media, "+json"):
		return nil, wrong("is not JSON")
	case err != nil:
		return nil, wrong(fmt.Sprintf("ends early or has more than %d bytes", maxDocument))
	case wire.CheckStrict(raw, maxDepth) != nil:
		return nil, wrong("is not JSON")
	}
	return readDocument(id, raw)
}

// readDocument validates a client metadata document.
func readDocument(id string, raw []byte) (*Client, error) {
	var d struct {
		ID        string   `json:"client_id"`
		Name      string   `json:"client_name"`
		URI       string   `json:"client_uri"`
		Redirects []string `json:"redirect_uris"`
		Auth      string   `json:"token_endpoint_auth_method"`
		Secret    any      `json:"client_secret"`
	}
	wrong := func(why string) error { return fault.Invalid("client_id", "names a document %s", why) }
	switch {
	case json.Unmarshal(raw, &d) != nil:
		return nil, wrong("with members of other types than the protocol's")
	case d.ID != id:
		return nil, wrong("of another client_id")
	case d.Auth != "" && d.Auth != "none" || d.Secret != nil:
		return nil, wrong("that asks for another token_endpoint_auth_method than none")
	}
	c := &Client{ID: id, Name: d.Name, URI: d.URI, Redirects: usable(d.Redirects)}
	if err := c.check("client_name", "client_uri", "redirect_uris"); err != nil {
		return nil, wrong("whose " + fault.From(err).Field + " " + fault.From(err).Message)
	}
	return c, nil
}
