package mcpservers

import (
	"cmp"
	"encoding/json"
	"net/url"
	"regexp"
	"unicode/utf8"

	"gateway/shared/admin"
	"gateway/shared/mcp"
	"gateway/shared/mcp/oauthserver"
)

// icon is an icon of a server in the registry's schema.
type icon struct {
	Source string   `json:"src"`
	Media  string   `json:"mimeType,omitempty"`
	Sizes  []string `json:"sizes,omitempty"`
	Theme  string   `json:"theme,omitempty" enum:"light,dark"`
}

// Limits of the registry's schema, in characters.
const (
	maxIcon    = 255 // of its URL
	maxVersion = 255
)

var (
	iconSize  = regexp.MustCompile(`^(\d+x\d+|any)$`)
	iconMedia = map[string]bool{"": true, "image/png": true, "image/jpeg": true, "image/jpg": true, "image/svg+xml": true, "image/webp": true}
	iconTheme = map[string]bool{"": true, "light": true, "dark": true}
)

// shownIn returns a server in the registry's format.
func (f directory) shownIn(c *admin.Call, at *catalogued, o *offer) listed {
	of := &mcp.Integration{}
	if o.of != nil {
		of = o.of.Form
	}
	said := &of.Synced
	out := listed{Server: described{
		Schema: schemaOfOne, Name: at.name(), Title: cut(o.Name),
		Description: cut(cmp.Or(o.Form.Description, said.Description, of.Description, o.Name)),
		Version:     cmp.Or(said.ServerVersion, noVersion), Website: website(said.Website), Icons: icons(said.Icons),
		Remotes: []remote{{"streamable-http", oauthserver.Target{Slug: o.Slug}.Resource(f.family.issuer(c))}},
	}}
	if utf8.RuneCountInString(out.Server.Version) > maxVersion {
		out.Server.Version = noVersion
	}
	r := &out.Meta.Registry
	r.Published, r.Updated, r.Latest = admin.Instant(o.Created), admin.Instant(o.Updated), true
	return out
}

// cut truncates a text to the limit of the registry's schema.
func cut(s string) string {
	if utf8.RuneCountInString(s) <= maxSaid {
		return s
	}
	return string([]rune(s)[:maxSaid-1]) + "…"
}

// website returns a URL that is safe to link, or "".
func website(raw string) string {
	if u, err := url.Parse(raw); err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http" {
		return ""
	}
	return raw
}

// icons returns the valid icons among those that a server reports.
func icons(raw json.RawMessage) (out []icon) {
	var all []json.RawMessage
	_ = json.Unmarshal(raw, &all) // an unexpected type counts as empty
	for _, one := range all {
		var i icon
		if json.Unmarshal(one, &i) != nil {
			continue
		}
		u, err := url.Parse(i.Source)
		fits := err == nil && u.Scheme == "https" && u.Host != "" && utf8.RuneCountInString(i.Source) <= maxIcon && iconMedia[i.Media] && iconTheme[i.Theme]
		for _, size := range i.Sizes {
			fits = fits && iconSize.MatchString(size)
		}
		if fits {
			out = append(out, i)
		}
	}
	return out
}

// statusActive is the status of an active resource.
const statusActive = "active"
