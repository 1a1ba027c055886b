package mcpservers

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"gateway/shared/admin"
	"gateway/shared/admin/instant"
	"gateway/shared/fault"
	"gateway/shared/mcp"
	"gateway/shared/mcp/oauthserver"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/tenant"
)

// Limits of the registry.
const (
	defaultShown  = 50
	maxShown      = 100
	readAtOnce    = 100  // servers
	maxLooked     = 2000 // servers that one page examines; the next page continues there
	maxCursor     = 512  // characters
	namespace     = "ai.gateway."
	noVersion     = "0.0.0"
	schemaOfOne   = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
	maxTextLength = 100 // characters of a title and of a description in that schema
)

// listing is a page in the format of the public registry of MCP servers.
type listing struct {
	Servers  []listed `json:"servers"`
	Metadata struct {
		Count int    `json:"count" doc:"Number of servers on this page."`
		Next  string `json:"nextCursor,omitempty" doc:"Absent on the last page."`
	} `json:"metadata"`
}

// listed is a server in that format.
type listed struct {
	Server described `json:"server"`
	Meta   struct {
		Registry struct {
			Published admin.Instant `json:"publishedAt"`
			Updated   admin.Instant `json:"updatedAt"`
			Latest    bool          `json:"isLatest"`
		} `json:"io.gateway.ai/registry"`
	} `json:"_meta"`
}

type described struct {
	Schema      string   `json:"$schema"`
	Name        string   `json:"name" doc:"ai.gateway.{workspace slug}/{server slug}."`
	Title       string   `json:"title"`
	Description string   `json:"description"`
	Version     string   `json:"version" doc:"As reported by the server; 0.0.0 if it reports none."`
	Website     string   `json:"websiteUrl,omitempty"`
	Icons       []icon   `json:"icons,omitempty"`
	Remotes     []remote `json:"remotes"`
}

type remote struct {
	Type string `json:"type" enum:"streamable-http"`
	URL  string `json:"url"`
}

// directory lists servers in the form of the public registry.
type directory struct{ family *family }

func (f directory) routes() []admin.Route {
	return []admin.Route{{
		Method: "GET", Path: "/v0.1/servers", Aliases: []string{mcp.PathPrefix + "/v0.1/servers"}, Name: "listMcpRegistryServers",
		Doc:    "List active MCP servers in the format of the public MCP registry, newest first. Organization keys see all workspaces, others their own.",
		Scopes: []string{scopeServers + ".list"}, Level: admin.Shared, KeyHeader: true, Errors: []int{404},
		Query: []admin.Field{
			{Name: "limit", Type: admin.Integer, Min: 1, Max: maxShown, Default: defaultShown, Doc: "Servers per page."},
			{Name: "cursor", Type: admin.String, Min: 1, Max: maxCursor, Doc: "nextCursor of the previous page."},
			{Name: "search", Type: admin.String, Min: 1, Max: 255, Doc: "Part of the name or the title, case-insensitive."},
			instant.Field("updated_since", "Only those changed at or after this time.", false),
			{Name: "workspace_id", Type: admin.String, Min: 1, Max: 64, Doc: "Only those of this workspace, by id or slug."},
		},
		ResponseOf: admin.SchemaOf[listing], Do: f.listRegistry,
	}}
}

// listedServer is a row of a server with its workspace.
type listedServer struct {
	resource.Row
	in *resource.Record
}

// after reports whether a row follows a position in the list, which begins with the newest
// rows.
func (e *listedServer) after(order, id string) int {
	return cmp.Or(strings.Compare(order, e.Order), strings.Compare(id, e.ID))
}

func (e *listedServer) name() string { return namespace + e.in.Slug + "/" + e.Slug }

func (f directory) listRegistry(c *admin.Call) (any, error) {
	spaces, err := f.placesOf(c)
	if err != nil {
		return nil, err
	}
	rows, err := f.catalog(c, spaces)
	if err != nil {
		return nil, err
	}
	if c.Query.HasValue("cursor") {
		order, id, ok := readCursor(c.Query.Text("cursor"))
		if !ok {
			return nil, fault.Invalid("cursor", "must be the nextCursor of the previous page")
		}
		rows = slices.DeleteFunc(rows, func(e listedServer) bool { return e.after(order, id) <= 0 })
	}
	limit := defaultShown
	if c.Query.HasValue("limit") {
		limit = int(c.Query.Int("limit"))
	}
	return f.pageOf(c, rows, limit)
}

// pageOf returns the first available servers of rows, and the cursor of the next page.
func (f directory) pageOf(c *admin.Call, rows []listedServer, limit int) (*listing, error) {
	out := &listing{Servers: []listed{}}
	since := instant.Of(c.Query, "updated_since")
	known := integrations{}
	var last *listedServer
	for looked := 0; len(rows) > 0; {
		part := rows[:min(len(rows), readAtOnce)]
		items, err := f.open(c, part, since, known)
		if err != nil {
			return nil, err
		}
		for i := range part {
			if items[i] == nil {
				continue
			}
			if len(out.Servers) == limit {
				out.Metadata.Next = last.cursor()
				return out, nil
			}
			out.Servers, last = append(out.Servers, f.shownIn(c, &part[i], items[i])), &part[i]
			out.Metadata.Count++
		}
		rows = rows[len(part):]
		if looked += len(part); looked >= maxLooked && len(rows) > 0 {
			out.Metadata.Next = part[len(part)-1].cursor()
			return out, nil
		}
	}
	return out, nil
}

// placesOf returns the workspaces with servers that the caller may list: the named one, or all
// that it can access. An inaccessible one is treated like one that does not exist.
func (f directory) placesOf(c *admin.Call) ([]*resource.Record, error) {
	if named := c.Query.Text("workspace_id"); named != "" {
		rec, ok, err := c.Workspace(named)
		if err == nil && ok && rec.Status == tenant.StatusActive {
			ok, err = holdsIn(c, rec.ID)
		}
		if err != nil {
			return nil, err
		}
		if !ok || rec.Status != tenant.StatusActive {
			return nil, fault.New(fault.NotFound, "workspace_id", "The workspace does not exist, or this key has no access to it")
		}
		return []*resource.Record{&rec}, nil
	}
	ids := c.Caller.Workspaces
	switch {
	case c.Caller.OfOrganisation():
		rows, err := c.Resources.List(c.Context, c.Organisation(), tenant.KindWorkspace)
		if err != nil {
			return nil, err
		}
		ids = make([]string, len(rows))
		for i := range rows {
			ids[i] = rows[i].ID
		}
	case len(ids) == 0:
		ids = []string{c.Caller.Scope.Workspace}
	}
	recs, err := c.Resources.GetMany(c.Context, c.Organisation(), tenant.KindWorkspace, ids)
	if err != nil {
		return nil, err
	}
	var out []*resource.Record
	for i := range recs {
		if recs[i].Status != tenant.StatusActive {
			continue
		}
		if ok, err := holdsIn(c, recs[i].ID); err != nil {
			return nil, err
		} else if ok {
			out = append(out, &recs[i])
		}
	}
	return out, nil
}

// holdsIn reports whether a user with several workspaces may list servers in this one.
func holdsIn(c *admin.Call, workspace string) (bool, error) {
	if c.Caller.In == nil || c.Caller.OfOrganisation() {
		return true, nil
	}
	there, err := c.Caller.In(c.Context, workspace)
	return err == nil && there.HasAny(c.Route.Scopes), err
}

// catalog returns the rows of all servers of workspaces that match the search, newest first.
func (f directory) catalog(c *admin.Call, spaces []*resource.Record) ([]listedServer, error) {
	scopes := make([]store.Scope, len(spaces))
	for i, ws := range spaces {
		scopes[i] = store.Scope{Org: c.Caller.Scope.Org, Workspace: ws.ID}
	}
	lists, err := c.Resources.ListMany(c.Context, scopes, mcp.KindServer, false)
	if err != nil {
		return nil, err
	}
	search := strings.ToLower(c.Query.Text("search"))
	var out []listedServer
	for i, rows := range lists {
		for _, row := range rows {
			e := listedServer{row, spaces[i]}
			if strings.Contains(strings.ToLower(e.name()), search) || strings.Contains(strings.ToLower(row.Name), search) {
				out = append(out, e)
			}
		}
	}
	slices.SortFunc(out, func(a, b listedServer) int { return a.after(b.Order, b.ID) })
	return out, nil
}

// offer is a server with its integration, which is nil for a virtual one.
type offer struct {
	server
	of *integration
}

// open returns the servers of rows in order: nil for one that is not active, or not available
// on every level, or has not changed since. known are integrations that were read before.
func (f directory) open(c *admin.Call, rows []listedServer, since time.Time, known integrations) ([]*offer, error) {
	ids := map[string][]string{}
	for i := range rows {
		ids[rows[i].in.ID] = append(ids[rows[i].in.ID], rows[i].ID)
	}
	found := map[string]*offer{}
	var servers []server
	for ws, of := range ids {
		recs, err := c.Resources.GetMany(c.Context, store.Scope{Org: c.Caller.Scope.Org, Workspace: ws}, mcp.KindServer, of)
		if err != nil {
			return nil, err
		}
		for i := range recs {
			form, err := mcp.DecodeServer(recs[i])
			if err != nil {
				return nil, err
			}
			if recs[i].Status == statusActive && !recs[i].Updated.Before(since) {
				it := server{Record: &recs[i], Form: form}
				found[it.ID], servers = &offer{server: it}, append(servers, it)
			}
		}
	}
	if err := readIntegrations(c, servers, known); err != nil {
		return nil, err
	}
	out := make([]*offer, len(rows))
	for i := range rows {
		o := found[rows[i].ID]
		if o == nil {
			continue
		}
		if o.Form.Virtual() {
			out[i] = o
			continue
		}
		o.of = known.of(o.server)
		if o.of != nil && o.of.Status == statusActive && o.of.Form.Access.OpenTo(o.of.Record, rows[i].in.ID) {
			out[i] = o
		}
	}
	return out, nil
}

// cursor returns the opaque position after a row.
func (e *listedServer) cursor() string {
	return base64.RawURLEncoding.EncodeToString([]byte(e.Order + " " + e.ID))
}

func readCursor(text string) (order, id string, ok bool) {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err != nil {
		return "", "", false
	}
	order, id, ok = strings.Cut(string(raw), " ")
	return order, id, ok && order != "" && id != "" && !strings.Contains(id, " ")
}

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
func (f directory) shownIn(c *admin.Call, at *listedServer, o *offer) listed {
	of := &mcp.Integration{}
	if o.of != nil {
		of = o.of.Form
	}
	synced := &of.Synced
	out := listed{Server: described{
		Schema: schemaOfOne, Name: at.name(), Title: cut(o.Name),
		Description: cut(cmp.Or(o.Form.Description, synced.Description, of.Description, o.Name)),
		Version:     cmp.Or(synced.ServerVersion, noVersion), Website: website(synced.Website), Icons: icons(synced.Icons),
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
	if utf8.RuneCountInString(s) <= maxTextLength {
		return s
	}
	return string([]rune(s)[:maxTextLength-1]) + "…"
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
