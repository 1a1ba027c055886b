package mcp

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"unicode/utf8"

	"gateway/shared/tenant/upstream"
)

// Bounds of what is kept of an upstream.
const (
	maxPages        = 200
	MaxCapabilities = 5000
	maxShape        = 100 << 10 // bytes of one capability
	maxIcons        = 16 << 10
	maxSaid         = 8 << 10 // characters of a text
)

// Snapshot is what an upstream says of itself.
type Snapshot struct {
	Metadata
	Found []Found
}

// Found is a capability as the upstream shows it.
type Found struct {
	Type, Name string
	Key        string // what tells it from others of its type
	Shape      json.RawMessage
}

// kinds are how capabilities are listed: the method, the member of its result, the
// flag of the server that says that it has some, and the member that is the key.
var kinds = []struct{ kind, method, member, flag, key string }{
	{Tool, "tools/list", "tools", "tools", "name"},
	{Prompt, "prompts/list", "prompts", "prompts", "name"},
	{Resource, "resources/list", "resources", "resources", "uri"},
	{ResourceTemplate, "resources/templates/list", "resourceTemplates", "resources", "uriTemplate"},
}

// Look asks an upstream for all that it can do.
func Look(ctx context.Context, u *Upstream) (*Snapshot, error) {
	through, hello, version, err := u.meet(ctx)
	if err != nil {
		return nil, err
	}
	if s, ok := through.(*Session); ok {
		defer s.End(context.WithoutCancel(ctx))
	}
	snap, flags, err := said(hello, version)
	if err != nil {
		return nil, err
	}
	for _, k := range kinds {
		if _, has := flags[k.flag]; !has {
			continue
		}
		if err := all(ctx, through, k.method, k.member, func(raw json.RawMessage) error {
			return snap.add(k.kind, k.key, raw)
		}); err != nil {
			if e, refused := err.(*Error); refused && e.Code == CodeMethodNotFound {
				continue // such as a server with resources and without templates
			}
			return nil, err
		}
	}
	return snap, nil
}

// meet finds out in which way an upstream speaks, and what it says of itself.
func (u *Upstream) meet(ctx context.Context) (_ pages, hello json.RawMessage, version string, _ error) {
	if u.Transport != TransportSSE {
		hello, _, err := u.Discover(ctx)
		if err != nil {
			return nil, nil, "", err
		}
		if hello != nil {
			return &withoutSession{up: u}, hello, Modern, nil
		}
	}
	s, err := u.Connect(ctx, nil)
	if err != nil {
		return nil, nil, "", err
	}
	return s, s.Hello, s.Version, nil
}

// serverName is what an upstream calls itself.
type serverName struct {
	Name        string          `json:"name"`
	Title       string          `json:"title"`
	Version     string          `json:"version"`
	Description string          `json:"description"`
	Website     string          `json:"websiteUrl"`
	Icons       json.RawMessage `json:"icons"`
}

// said reads what the upstream said at the beginning.
func said(hello json.RawMessage, version string) (*Snapshot, map[string]json.RawMessage, error) {
	var h struct {
		Capabilities map[string]json.RawMessage `json:"capabilities"`
		Instructions string                     `json:"instructions"`
		Server       serverName                 `json:"serverInfo"`
		Meta         struct {
			Server *serverName `json:"io.modelcontextprotocol/serverInfo"`
		} `json:"_meta"`
	}
	if json.Unmarshal(hello, &h) != nil {
		return nil, nil, upstream.Fail(http.StatusOK, "what the server says of itself has another form than the protocol's")
	}
	if h.Meta.Server != nil {
		h.Server = *h.Meta.Server
	}
	flags, _ := json.Marshal(h.Capabilities) // was JSON
	m := Metadata{
		Title: bounded(h.Server.Title), Description: bounded(h.Server.Description), ServerName: bounded(h.Server.Name), ServerVersion: bounded(h.Server.Version),
		ProtocolVersion: bounded(version), Instructions: bounded(h.Instructions), Website: bounded(h.Server.Website),
	}
	if len(h.Capabilities) > 0 && len(flags) <= maxIcons {
		m.Capabilities = flags
	}
	if len(h.Server.Icons) > 0 && h.Server.Icons[0] == '[' && len(h.Server.Icons) <= maxIcons {
		m.Icons = h.Server.Icons
	}
	return &Snapshot{Metadata: m}, h.Capabilities, nil
}

func bounded(s string) string {
	if utf8.RuneCountInString(s) > maxSaid {
		s = string([]rune(s)[:maxSaid])
	}
	return s
}

// all gives the entries of all pages of a list.
func all(ctx context.Context, of pages, method, member string, each func(json.RawMessage) error) error {
	cursor := ""
	for range maxPages {
		result, err := of.page(ctx, method, cursor)
		if err != nil {
			return err
		}
		var page map[string]json.RawMessage
		var entries []json.RawMessage
		var next string
		if json.Unmarshal(result, &page) != nil || json.Unmarshal(page[member], &entries) != nil {
			return upstream.Fail(http.StatusOK, "the server's answer to %s has another form than the protocol's", method)
		}
		for _, raw := range entries {
			if err := each(raw); err != nil {
				return err
			}
		}
		if raw := page["nextCursor"]; len(raw) > 0 && json.Unmarshal(raw, &next) != nil {
			return upstream.Fail(http.StatusOK, "the server's answer to %s has another form than the protocol's", method)
		}
		if next == "" || next == cursor {
			return nil
		}
		cursor, next = next, ""
	}
	return upstream.Fail(http.StatusOK, "the server's answers to %s do not end", method)
}

// add takes a capability. One without a name is left out: nobody could ask for it.
func (s *Snapshot) add(kind, key string, raw json.RawMessage) error {
	var named map[string]json.RawMessage
	text := func(member string) (t string) {
		_ = json.Unmarshal(named[member], &t) // another form is none
		return t
	}
	if json.Unmarshal(raw, &named) != nil {
		return upstream.Fail(http.StatusOK, "the server lists a %s that is no object", strings.ReplaceAll(kind, "_", " "))
	}
	f := Found{Type: kind, Name: text("name"), Key: text(key), Shape: raw}
	switch {
	case f.Key == "":
		return nil
	case len(raw) > maxShape:
		return upstream.Fail(http.StatusOK, "the server lists a %s of more than %d bytes", strings.ReplaceAll(kind, "_", " "), maxShape)
	case len(s.Found) >= MaxCapabilities:
		return upstream.Fail(http.StatusOK, "the server lists more than %d capabilities", MaxCapabilities)
	}
	if f.Name == "" {
		f.Name = f.Key
	}
	s.Found = append(s.Found, f)
	return nil
}
