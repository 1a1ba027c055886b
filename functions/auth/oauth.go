package auth

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"gateway/shared/admin"
	"gateway/shared/app"
	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/mcp/oauthserver"
	"gateway/shared/resource"
	"gateway/shared/signin"
	"gateway/shared/signin/device"
	"gateway/shared/signin/oidc"
	"gateway/shared/signin/sso"
	"gateway/shared/store"
)

const form = "application/x-www-form-urlencoded"

// granting is the gateway's authorization server.
type granting struct{ family *family }

// oauthRoutes returns the routes of the authorization server for clients of MCP servers.
func (f *granting) oauthRoutes() []admin.Route {
	routes := slices.Concat(f.describedRoutes(), f.grantRoutes(), (&devices{f}).routes())
	for i := range routes {
		r := &routes[i]
		if r.Path != oauthserver.PathInspect {
			r.Public, r.Rejections = true, oauthRejections
			f.family.bound(r)
		}
	}
	return routes
}

// oauthRejections encodes rejections as RFC 6749 specifies.
var oauthRejections = &admin.Rejections{
	ContentType: "application/json",
	Schema: admin.Closed(map[string]admin.Schema{
		"error": {"type": "string"}, "error_description": {"type": "string"},
	}),
	Body: func(_ *admin.Call, f *fault.Fault) any {
		code := "invalid_request"
		switch {
		case f.Status() >= 500:
			code = "server_error"
		case f.Status() == http.StatusUnauthorized:
			code = "invalid_client"
		case f.Status() == http.StatusForbidden:
			code = "access_denied"
		case f.Status() == http.StatusTooManyRequests:
			code = "temporarily_unavailable"
		}
		return problem{code, sentence(f)}
	},
}

// problem is an OAuth error.
type problem struct {
	Error       string `json:"error"`
	Description string `json:"error_description,omitempty"`
}

// sentence joins all faults with the characters that RFC 6749 allows.
func sentence(f *fault.Fault) string {
	text := f.Message
	if f.Field != "" && !strings.HasPrefix(text, f.Field) {
		text = f.Field + " " + text
	}
	if len(f.Details) > 1 {
		all := make([]string, len(f.Details))
		for i, d := range f.Details {
			all[i] = d.Field + " " + d.Message
		}
		text = strings.Join(all, "; ")
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == '"' || r == '\\':
			return '\''
		case r < ' ' || r > '~':
			return '?'
		}
		return r
	}, text[:min(len(text), 1000)])
}

func (f *granting) issuer(c *admin.Call) string {
	return oauthserver.Issuer(f.family.MCPAddress, c.Request)
}

// server is authorization server metadata (RFC 8414).
type server struct {
	Issuer        string   `json:"issuer"`
	Authorization string   `json:"authorization_endpoint"`
	Token         string   `json:"token_endpoint"`
	Registration  string   `json:"registration_endpoint"`
	Revocation    string   `json:"revocation_endpoint"`
	Introspection string   `json:"introspection_endpoint"`
	Device        string   `json:"device_authorization_endpoint"`
	Scopes        []string `json:"scopes_supported"`
	Responses     []string `json:"response_types_supported"`
	Modes         []string `json:"response_modes_supported"`
	Grants        []string `json:"grant_types_supported"`
	TokenAuth     []string `json:"token_endpoint_auth_methods_supported"`
	RevokeAuth    []string `json:"revocation_endpoint_auth_methods_supported"`
	Challenges    []string `json:"code_challenge_methods_supported"`
	Documents     bool     `json:"client_id_metadata_document_supported"`
	NamesItself   bool     `json:"authorization_response_iss_parameter_supported"`
}

// protected is protected resource metadata (RFC 9728).
type protected struct {
	Resource string   `json:"resource"`
	Servers  []string `json:"authorization_servers"`
	Scopes   []string `json:"scopes_supported"`
	Methods  []string `json:"bearer_methods_supported"`
}

// describedRoutes returns the metadata routes. Clients derive the paths that contain the
// gateway's path from its address.
func (f *granting) describedRoutes() []admin.Route {
	const of = oauthserver.PathProtected
	about := "Read the protected resource metadata of an MCP server (RFC 9728). It is returned whether or not the server exists."
	text := func(name string, most int64, doc string) admin.Field {
		return admin.Field{Name: name, Type: admin.String, Max: most, Doc: doc}
	}
	return []admin.Route{
		{Method: "GET", Path: oauthserver.PathServer, Aliases: []string{oauthserver.PathServer + oauthserver.BasePath, oauthserver.PathOpenID, oauthserver.PathOpenID + oauthserver.BasePath},
			Name: "getAuthorizationServer", Doc: "Read the authorization server metadata (RFC 8414) for MCP clients and for devices without a browser.", ResponseOf: admin.SchemaOf[server], Do: f.describeServer},
		{Method: "GET", Path: of + "/mcp/{slug}/mcp", Aliases: []string{of + oauthserver.BasePath + "/mcp/{slug}/mcp"}, Name: "getProtectedMcpServer", Doc: about, ResponseOf: admin.SchemaOf[protected], Do: f.describeProtected},
		{Method: "GET", Path: of + "/mcp/{slug}/{server}/mcp", Aliases: []string{of + oauthserver.BasePath + "/mcp/{slug}/{server}/mcp"}, Name: "getProtectedMcpServerOfWorkspace", Doc: about, ResponseOf: admin.SchemaOf[protected], Do: f.describeProtected},
		{Method: "POST", Path: oauthserver.PathRegister, Name: "registerMcpClient", Doc: "Register a client (RFC 7591). The client id encodes the registration; nothing is stored.", Status: http.StatusCreated, Unrecorded: true,
			ResponseOf: admin.SchemaOf[registered], Do: f.register, Body: []admin.Field{
				{Name: "redirect_uris", Type: admin.Array, Required: true, Min: 1, Max: oauthserver.MaxRedirects, Of: &admin.Field{Type: admin.String, Min: 1, Max: 512}, Doc: "Allowed redirect URIs: https, http on loopback with any port, or a private-use scheme. URIs that are not allowed are omitted; the response lists the others.", Example: []string{"http://127.0.0.1/callback"}},
				text("client_name", 100, "Shown to users."), text("client_uri", 512, "Home page of the client."),
				{Name: "token_endpoint_auth_method", Type: admin.String, Max: 64, Doc: "Always none in responses: clients are public."},
				{Name: "grant_types", Type: admin.Array, Max: 10, Of: &admin.Field{Type: admin.String, Max: 255}, Doc: "Must have authorization_code."},
				{Name: "response_types", Type: admin.Array, Max: 10, Of: &admin.Field{Type: admin.String, Max: 255}, Doc: "Must have code."},
				text("scope", 255, "Of mcp, mcp:read and mcp:write."),
			}},
	}
}

func (f *granting) describeServer(c *admin.Call) (any, error) {
	at := f.issuer(c)
	return server{
		Issuer: at, Authorization: at + oauthserver.PathAuthorize, Token: at + oauthserver.PathToken, Registration: at + oauthserver.PathRegister,
		Revocation: at + oauthserver.PathRevoke, Introspection: at + oauthserver.PathInspect, Device: at + pathDeviceAuthorization, Scopes: append(slices.Clone(oauthserver.Scopes), device.Session, device.APIKey), Responses: []string{"code"}, Modes: []string{"query"},
		Grants: []string{"authorization_code", "refresh_token", grantDevice}, TokenAuth: []string{"none"}, RevokeAuth: []string{"none"}, Challenges: []string{"S256"}, Documents: true, NamesItself: true,
	}, nil
}

func (f *granting) describeProtected(c *admin.Call) (any, error) {
	at := f.issuer(c)
	t := oauthserver.Target{Slug: c.Param("slug")}
	if s := c.Param("server"); s != "" {
		t = oauthserver.Target{Workspace: t.Slug, Slug: s}
	}
	return protected{Resource: t.Resource(at), Servers: []string{at}, Scopes: []string{oauthserver.All}, Methods: []string{"header"}}, nil
}

// registered is the response to a registration.
type registered struct {
	ID        string   `json:"client_id"`
	Issued    int64    `json:"client_id_issued_at"`
	Name      string   `json:"client_name,omitempty"`
	URI       string   `json:"client_uri,omitempty"`
	Redirects []string `json:"redirect_uris"`
	Grants    []string `json:"grant_types"`
	Responses []string `json:"response_types"`
	TokenAuth string   `json:"token_endpoint_auth_method"`
	Scope     string   `json:"scope"`
}

func (f *granting) register(c *admin.Call) (any, error) {
	lacks := func(name, want string) bool {
		if !c.Body.HasValue(name) {
			return false
		}
		for _, s := range c.Body.Texts(name) {
			if s == want {
				return false
			}
		}
		return true
	}
	refused := func(code, why string) (any, error) {
		return admin.Response{Status: http.StatusBadRequest, JSON: problem{code, why}}, nil
	}
	switch {
	case lacks("grant_types", "authorization_code"):
		return refused("invalid_client_metadata", "grant_types must have authorization_code")
	case lacks("response_types", "code"):
		return refused("invalid_client_metadata", "response_types must have code")
	}
	client, err := oauthserver.Register(c.Body.Text("client_name"), c.Body.Text("client_uri"), c.Body.Texts("redirect_uris"))
	if err != nil {
		of := fault.From(err)
		if strings.HasPrefix(of.Field, "redirect_uris") {
			return refused("invalid_redirect_uri", sentence(of))
		}
		return refused("invalid_client_metadata", sentence(of))
	}
	return registered{
		ID: client.ID, Issued: c.Now.Unix(), Name: client.Name, URI: client.URI, Redirects: client.Redirects, Grants: []string{"authorization_code", "refresh_token"},
		Responses: []string{"code"}, TokenAuth: "none", Scope: strings.Join(oauthserver.ScopesOf(c.Body.Text("scope")), " "),
	}, nil
}

// grantEntry returns the audit record of an event of a grant.
func grantEntry(c *admin.Call, g *oauthserver.Grant, action string) audit.Entry {
	e := audit.Entry{
		RequestID: c.RequestID, UserID: g.User, UserType: audit.UserTypeUser, WorkspaceID: g.Scope.Workspace, StatusCode: http.StatusOK,
		ResourceType: "mcp_grants", Action: action, ResourceID: g.ID, ClientIP: c.ClientIP(),
		Details: map[string]string{"client_id": clip(g.Client), "client_name": g.ClientName, "mcp_server_id": g.Server, "scope": strings.Join(g.Scopes, " ")},
	}
	e.Method, e.URI = c.Request.Method, c.Request.URL.EscapedPath()
	return e
}

// clip truncates a client id to one line.
func clip(s string) string { return s[:min(len(s), 255)] }

// renewal renews sessions at their identity providers.
func renewal(c *app.Core) *signin.Renewal {
	return &signin.Renewal{
		Sealer: c.Sealer,
		NextToken: func(ctx context.Context, of *signin.Session, token string) (string, error) {
			rec, ok, err := c.Resources.Get(ctx, store.Scope{Org: of.Org}, sso.KindConnection, of.Via)
			if err != nil {
				return "", err
			}
			if !ok || rec.Archived() {
				return "", signin.ErrNotRenewed // it can never be renewed
			}
			form, err := sso.DecodeConnection(rec)
			if err != nil {
				return "", err
			}
			client, err := clientOf(ctx, connection{Record: &rec, Form: form}, c.Sealer)
			if err != nil {
				return "", err
			}
			client.Transport, client.Now = c.Transport, c.Resources.Now
			next, err := client.Renew(ctx, token, of.Subject)
			if errors.Is(err, oidc.ErrNotRenewed) {
				err = signin.ErrNotRenewed
			}
			return next, err
		},
		Ended: func(tx *resource.Tx, of *signin.Session) error {
			return audit.Append(tx, audit.Entry{
				Method: http.MethodPost, URI: "/auth/logout", UserID: of.User, UserType: audit.UserTypeUser, StatusCode: http.StatusOK,
				ResourceType: "sessions", Action: audit.Logout, ResourceID: of.ID, Details: map[string]string{"error": signin.ErrNotRenewed.Error(), "sso_client_id": of.Via},
			})
		},
	}
}
