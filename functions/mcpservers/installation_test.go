package mcpservers

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"gateway/shared/admin"
	"gateway/shared/egress"
	"gateway/shared/identity/membership"
	"gateway/shared/identity/signing"
	"gateway/shared/mcp"
	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/testkit/admintest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const (
	key   = admintest.WorkspaceA
	chief = admintest.AdminKey

	quiet = `{"name":"Up","slug":"up","url":"https://mcp.example.com/mcp","auth_type":"oauth_auto","transport":"http"}`
)

// newInstallation returns an installation that can reach this machine.
func newInstallation(t testing.TB) *admintest.Installation { return newInstallationAt(t, time.Now) }

// newInstallationAt is newInstallation with a clock for secret managers.
func newInstallationAt(t testing.TB, now func() time.Time) *admintest.Installation {
	t.Helper()
	policy, err := egress.ParseAllow("127.0.0.0/8")
	if err != nil {
		t.Fatal(err)
	}
	via := egress.New(policy, egress.Options{})
	t.Cleanup(func() { egress.CloseIdle(via) })
	return admintest.Build(t, func(d admin.Deps) []admin.Family {
		return []admin.Family{New(Deps{
			Loader: resource.NewLoader(d.Resources), CheckURL: policy.CheckURL, PublicURL: "https://gateway.example.com/v1/",
			Signing: signing.New(signing.Options{Table: d.Resources.Store().Table(store.Usage), Sealer: admintest.Sealer{}, Now: time.Now}),
			Opener: &mcp.Opener{Sealer: admintest.Sealer{}, Transport: via, Now: time.Now,
				Secrets: &provider.Loaded{Secrets: provider.NewSecrets(admintest.Sealer{}, provider.NewTokens(via, now), via), Loader: resource.NewLoader(d.Resources)}},
		})}
	})
}

// fixture is a server built with the official SDK.
type fixture struct {
	*httptest.Server
	server *sdk.Server
	mu     sync.Mutex
	token  string // required Authorization header; may be empty
}

// want changes the required Authorization header.
func (u *fixture) want(token string) { u.mu.Lock(); u.token = token; u.mu.Unlock() }

// takes reports whether a request has the required header.
func (u *fixture) takes(r *http.Request) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.token == "" || r.Header.Get("Authorization") == u.token
}

type args struct {
	Text string `json:"text"`
}

func newUpstream(t testing.TB, sse bool) *fixture {
	t.Helper()
	u := &fixture{server: sdk.NewServer(&sdk.Implementation{Name: "fixture", Title: "Fixture", Version: "1.2.3"}, &sdk.ServerOptions{PageSize: 3})}
	for i := range 7 {
		u.tool(fmt.Sprintf("tool%d", i))
	}
	u.server.AddPrompt(&sdk.Prompt{Name: "greet", Description: "Greets."}, func(context.Context, *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		return &sdk.GetPromptResult{}, nil
	})
	read := func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{}, nil
	}
	u.server.AddResource(&sdk.Resource{Name: "readme", URI: "file:///readme", MIMEType: "text/plain"}, read)
	u.server.AddResourceTemplate(&sdk.ResourceTemplate{Name: "files", URITemplate: "file:///{path}"}, read)
	get := func(*http.Request) *sdk.Server { return u.server }
	var h http.Handler = sdk.NewStreamableHTTPHandler(get, nil)
	if sse {
		h = sdk.NewSSEHandler(get, nil)
	}
	u.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !u.takes(r) {
			http.Error(w, "no", http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		u.CloseClientConnections()
		u.Close()
	})
	return u
}

func (u *fixture) tool(name string) {
	sdk.AddTool(u.server, &sdk.Tool{Name: name, Description: "Says it."}, func(_ context.Context, _ *sdk.CallToolRequest, a args) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: a.Text}}}, nil, nil
	})
}

// register creates an integration of the first workspace, as an admin of the organization, who
// may map secret references.
func register(h *admintest.Installation, url, more string) admintest.Response {
	return h.Do("POST", "/mcp-integrations?workspace_id="+h.One, chief, fmt.Sprintf(`{"name":"Up","url":%q,"transport":"http",%s}`, url, strings.TrimPrefix(more, ","))).OK()
}

// member returns a user of the first workspace.
func member(t testing.TB, h *admintest.Installation, email, role string) (id string) {
	t.Helper()
	org := store.Scope{Org: admintest.Org}
	err := h.Resources.Change(context.Background(), org, func(tx *resource.Tx) error {
		u := &membership.User{Email: email, FirstName: "F", LastName: "L", Role: membership.Member}
		rec, err := membership.Create(tx, org, u, "test")
		if err != nil {
			return err
		}
		id = rec.ID
		_, err = membership.Join(tx, rec, u, h.One, role, "test")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return id
}
