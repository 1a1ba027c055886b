package mcpservers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/url"

	"gateway/shared/admin"
	"gateway/shared/admin/page"
	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/identity/membership"
	"gateway/shared/mcp"
	"gateway/shared/mcp/authz"
	"gateway/shared/mcp/oauthclient"
	"gateway/shared/resource"
	"gateway/shared/signin/browser"
	"gateway/shared/signin/confirm"
	"gateway/shared/signin/sso"
	"gateway/shared/store"
	"gateway/shared/tenant"
	"gateway/shared/tenant/upstream"
)

// signIn connects a user with the authorization server of an upstream.
type signIn struct{ family *family }

func (f signIn) routes() []admin.Route {
	text := func(name string, most int64, doc string) admin.Field {
		return admin.Field{Name: name, Type: admin.String, Max: most, Doc: doc}
	}
	return []admin.Route{
		{Rejections: pages, Method: "GET", Path: oauthclient.PathConnect, Name: "connectMcpServer", Public: true, Errors: []int{403}, Produces: page.HTML, Response: admin.Schema{"type": "string"}, Do: f.show,
			Doc:   "Show the user which account will be connected. The address is returned by a call of the MCP server.",
			Query: []admin.Field{text("link", 4096, "Identifies the user and the server; valid for 15 minutes.")}},
		{Rejections: pages, Method: "POST", Path: oauthclient.PathConnect, Name: "confirmMcpServerConnection", Public: true, Unrecorded: true, Errors: []int{303, 403, 502}, Consumes: []string{"application/x-www-form-urlencoded"}, Produces: page.HTML,
			Response: admin.Schema{"type": "string"}, Do: f.connect, Doc: "Start the sign-in at the upstream server of an MCP server, from the page that GET shows.",
			Body: []admin.Field{text("link", 4096, "Same as on the page."), text(confirm.Field, confirm.MaxValue, "Set by the page; valid once.")}},
		{Rejections: pages, Method: "GET", Path: oauthclient.PathCallback, Name: "connectMcpServerCallback", Public: true, Errors: []int{403, 502}, Produces: page.HTML, Response: admin.Schema{"type": "string"}, Do: f.callback,
			Doc: "Receive the redirect of the authorization server. The gateway stores the tokens for the user.", Query: []admin.Field{
				text("state", 256, "As it was sent."), text("code", 8192, "The authorization code."), text("iss", 2048, "Issuer of the response (RFC 9207)."),
				text("error", 255, "Why no code was issued."), text("error_description", 4096, "Human-readable form; not shown."), text("error_uri", 2048, "The same as an address; it is not followed."),
				text("session_state", 4096, "Ignored."), text("scope", 4096, "Ignored."), text("authuser", 255, "Ignored."), text("prompt", 255, "Ignored."), text("hd", 255, "Ignored."),
			}},
		{Method: "GET", Path: oauthclient.PathDocument, Name: "describeMcpUpstreamClient", Public: true, Doc: "Read the gateway's client id metadata document, for authorization servers.",
			Response: admin.Closed(map[string]admin.Schema{
				"client_id": {"type": "string"}, "client_name": {"type": "string"}, "redirect_uris": texts, "grant_types": texts, "response_types": texts,
				"token_endpoint_auth_method": {"type": "string"}, "software_id": {"type": "string"},
			}), Do: func(c *admin.Call) (any, error) { return f.ours(c).Metadata(), nil }},
	}
}

var texts = admin.Schema{"type": "array", "items": map[string]any{"type": "string"}}

// ours returns the gateway's addresses for authorization servers.
func (f signIn) ours(c *admin.Call) oauthclient.Endpoints {
	at := f.family.issuer(c)
	return oauthclient.Endpoints{Callback: at + oauthclient.PathCallback, Document: at + oauthclient.PathDocument}
}

// joining is a user who signs in at an upstream.
type joining struct {
	link  oauthclient.Link
	facts *authz.Facts
	email string
}

func (j *joining) place() oauthclient.UserKey {
	return oauthclient.UserKey{Scope: j.link.Scope(), Server: j.link.Server, User: j.link.User}
}

// joins returns the user and the server of a link; nil if the user may not use the server, or
// if users do not sign in there.
func (f signIn) joins(ctx context.Context, link *oauthclient.Link) (*joining, error) {
	v, err := f.family.Loader.Fresh(ctx, link.Org)
	if err != nil {
		return nil, err
	}
	as := func(rec resource.Record) (*resource.Record, error) { return &rec, nil }
	at := link.Scope()
	ws, ok, err := resource.Load(ctx, v, at.Organisation(), tenant.KindWorkspace, at.Workspace, as)
	if err != nil || !ok || ws.Status != tenant.StatusActive {
		return nil, err
	}
	u, ok, err := resource.Load(ctx, v, at.Organisation(), membership.KindUser, link.User, membership.DecodeUser)
	if err != nil || !ok || u.Leaving {
		return nil, err
	}
	if _, ok, err := membership.LoadRole(ctx, v, at, link.User); err != nil || !ok {
		return nil, err
	}
	server, ok, err := resource.Load(ctx, v, at, mcp.KindServer, link.Server, as)
	if err != nil || !ok {
		return nil, err
	}
	who := &identity.Principal{Type: identity.WorkspaceUser, Scope: at, WorkspaceSlug: ws.Slug, UserID: link.User, Scopes: identity.NewScopeSet(authz.Invoke)}
	facts, err := authz.Load(ctx, v, who, server.Slug)
	if fault.Is(err, fault.NotFound) {
		return nil, nil
	}
	if err != nil || facts.Decide(authz.Capability{}) != authz.Allowed || facts.Integration == nil || facts.Integration.AuthType != mcp.AuthOAuth {
		return nil, err
	}
	return &joining{link: *link, facts: facts, email: u.Email}, nil
}

// here checks that the user of the link is signed in to the gateway in this browser. stop is
// the page to show otherwise. An organization without an identity provider has no sessions;
// there only the confirmation protects the user. again is the address to return to after a
// sign-in.
func (f signIn) here(c *admin.Call, j *joining, again string) (stop *admin.Response, err error) {
	shown := func(a admin.Response) (*admin.Response, error) { return &a, nil }
	if token, ok := browser.Token(c.Request); ok {
		of, _, err := f.family.Sessions.Find(c.Context, token)
		switch {
		case err == nil && of.Org == j.link.Org && of.User == j.link.User:
			return nil, nil
		case err == nil:
			return shown(page.New(http.StatusForbidden, "This link is for another user", "<p>You are not signed in as the user who requested it.</p>"))
		case !fault.Is(err, fault.Unauthorized):
			return nil, err
		}
	}
	ways, err := c.Resources.List(c.Context, store.Scope{Org: j.link.Org}, sso.KindConnection)
	if err != nil || len(ways) == 0 {
		return nil, err
	}
	back := again
	if u, err := url.Parse(again); err == nil {
		back = u.EscapedPath() + "?" + u.RawQuery
	}
	return shown(page.New(http.StatusOK, "Sign in to the gateway first", `<form method="get" action="`+page.Escape(f.family.issuer(c)+"/auth/login")+`"><label>Your e-mail address<input type="email" name="email" value="`+page.Escape(j.email)+
		`" required></label><input type="hidden" name="return_to" value="`+page.Escape(back)+`"><button>Sign in</button></form>`, "https:", "http:"))
}

// opened reads a link. stop is the page to show if it is invalid.
func (f signIn) opened(c *admin.Call, text string) (j *joining, stop any, err error) {
	link, err := oauthclient.ReadLink(c.Context, c.Sealer, text, c.Now)
	if err != nil {
		stop, err = cannot(err)
		return nil, stop, err
	}
	if j, err = f.joins(c.Context, link); err != nil || j != nil {
		return j, nil, err
	}
	return nil, page.New(http.StatusForbidden, "This request is not valid", "<p>There is no such MCP server for this user.</p>"), nil
}

// show shows the account that is about to be connected; nothing happens before the user
// confirms it.
func (f signIn) show(c *admin.Call) (any, error) {
	j, stop, err := f.opened(c, c.Query.Text("link"))
	if err != nil || stop != nil {
		return stop, err
	}
	return f.showConfirmation(c, j), nil
}

// action returns the action that a confirmation of a link is valid for.
func action(link string) string { return "connect " + link }

func (f signIn) connect(c *admin.Call) (any, error) {
	text := c.Body.Text("link")
	if err := confirm.Consume(c.Context, c.Resources.Store().Table(store.Keys), c.Request, f.family.issuer(c), action(text), c.Body.Text(confirm.Field), c.Now); err != nil {
		return cannot(err)
	}
	j, stopped, err := f.opened(c, text)
	if err != nil || stopped != nil {
		return stopped, err
	}
	again := f.family.issuer(c) + oauthclient.PathConnect + "?" + url.Values{"link": {text}}.Encode()
	stop, err := f.here(c, j, again)
	if err != nil {
		return nil, err
	}
	if stop != nil {
		return *stop, nil
	}
	to, binding, err := f.begin(c, j)
	if err != nil {
		return cannot(err)
	}
	out := admin.Redirect(http.StatusSeeOther, to)
	out.Header.Set("Referrer-Policy", "no-referrer")
	out.Header.Set("Cache-Control", "no-store")
	out.Header.Add("Set-Cookie", bound(binding, int(oauthclient.PendingFor.Seconds())).String())
	out.Header.Add("Set-Cookie", confirm.Clear(action(text)).String())
	return out, nil
}

func (f signIn) showConfirmation(c *admin.Call, j *joining) admin.Response {
	host := ""
	if u, err := url.Parse(j.facts.Integration.URL); err == nil {
		host = u.Host
	}
	body := "<p>Continue only if you have just called this server yourself: the account that signs in now will be used by this user.</p><dl>"
	for _, row := range [][2]string{{"MCP server", j.facts.Server.Record.Name}, {"It is at", host}, {"User of the gateway", j.email}} {
		body += "<dt>" + row[0] + "</dt><dd>" + page.Escape(row[1]) + "</dd>"
	}
	link := c.Query.Text("link")
	value, cookie := confirm.Begin(action(link), c.Now)
	body += `</dl><form method="post" action="` + page.Escape(f.family.issuer(c)+oauthclient.PathConnect) + `"><input type="hidden" name="link" value="` + page.Escape(link) +
		`"><input type="hidden" name="` + confirm.Field + `" value="` + page.Escape(value) + `"><button>Sign in there</button></form>`
	out := page.New(http.StatusOK, "Sign in at "+j.facts.Server.Record.Name, body, "https:", "http:")
	out.Header.Set("Cache-Control", "no-store")
	out.Header.Add("Set-Cookie", cookie.String())
	return out
}

// begin finds the authorization server, and the gateway's client there.
func (f signIn) begin(c *admin.Call, j *joining) (to, binding string, err error) {
	i := j.facts.Integration
	_, conf, err := f.family.Opener.Open(c.Context, i.Record, j.link.Scope())
	if err == nil {
		err = upstream.Fail(0, "users do not sign in at this server")
	}
	if !errors.Is(err, mcp.ErrSignIn) {
		return "", "", err
	}
	finder := oauthclient.Finder{Transport: f.family.Opener.Transport, Hosts: f.family.Opener.Hosts, CheckURL: f.family.CheckURL}
	a, err := finder.Find(c.Context, i.URL, conf)
	if err != nil {
		return "", "", err
	}
	ours := f.ours(c)
	client := oauthclient.Configured(conf)
	if client == nil {
		client = oauthclient.ByDocument(a, ours)
	}
	if client == nil {
		if client, err = f.registered(c, j, a, conf, ours); err != nil {
			return "", "", err
		}
	}
	flow := &oauthclient.Flow{Link: j.link, Target: i.URL, Authority: *a, Client: *client, Callback: ours.Callback}
	return flow.Begin(c.Context, c.Resources.Store().Table(store.Keys), c.Sealer, conf, c.Now)
}

const secretClient = "client"

// clientRecord returns the record of the gateway's client at an authorization server: for one
// server, by issuer and redirect URI.
func clientRecord(j *joining, issuer, callback string) resource.Record {
	sum := sha256.Sum256([]byte(issuer + "\n" + callback))
	return resource.Record{Scope: j.link.Scope(), Kind: mcp.KindClient.Of(j.link.Server), ID: "client-" + hex.EncodeToString(sum[:16]), Name: "client", Status: "active", Body: []byte("{}"), CreatedBy: j.link.User}
}

// registered returns the stored client at an authorization server, or registers one.
func (f signIn) registered(c *admin.Call, j *joining, a *oauthclient.Authority, conf *mcp.Configuration, ours oauthclient.Endpoints) (*oauthclient.Client, error) {
	rec := clientRecord(j, a.Issuer, ours.Callback)
	old, known, err := c.Resources.Get(c.Context, rec.Scope, rec.Kind, rec.ID)
	if err != nil {
		return nil, err
	}
	if known {
		opened, err := old.OpenSecrets(c.Context, c.Sealer)
		if err != nil {
			return nil, fault.Unavailable(err)
		}
		client := new(oauthclient.Client)
		if json.Unmarshal(opened[secretClient], client) == nil && !client.Expired(c.Now) {
			return client, nil
		}
	}
	client, err := oauthclient.Register(c.Context, f.family.Opener.Transport, a, conf, ours, rec.Scope, j.link.Server)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(client)
	if err != nil {
		return nil, err
	}
	return client, c.Resources.Change(c.Context, rec.Scope, func(tx *resource.Tx) error {
		now, there, err := tx.Get(rec.Scope, rec.Kind, rec.ID)
		if err != nil {
			return err
		}
		if there {
			rec = now
		}
		if err := rec.SetSecret(c.Context, c.Sealer, secretClient, raw); err != nil {
			return fault.Unavailable(err)
		}
		if there {
			return tx.Update(&rec)
		}
		return tx.Create(&rec)
	})
}

func (f signIn) callback(c *admin.Call) (any, error) {
	var had string
	if cookie, err := c.Request.Cookie(bindingCookie); err == nil {
		had = cookie.Value
	}
	flow, err := oauthclient.ConsumeState(c.Context, c.Resources.Store().Table(store.Keys), c.Sealer, c.Query.Text("state"), had, c.Now)
	if err != nil {
		return cannot(err)
	}
	j, err := f.joins(c.Context, &flow.Link)
	if err != nil {
		return nil, err
	}
	if j == nil || j.facts.Integration.URL != flow.Target {
		return page.New(http.StatusForbidden, "This request is not valid", "<p>The MCP server is no longer available to this user, or was changed in the meantime.</p>"), nil
	}
	held, err := flow.Finish(c.Context, f.family.Opener.Transport, c.Request.URL.Query(), c.Now)
	if errors.Is(err, oauthclient.ErrUnknownClient) {
		if gone := f.deleteRegistration(c, clientRecord(j, flow.Authority.Issuer, flow.Callback)); gone != nil {
			return nil, gone
		}
	}
	if err != nil {
		return cannot(err)
	}
	if err := f.storeConnection(c, j, flow.Authority.Issuer, held); err != nil {
		return nil, err
	}
	f.learnAs(c, j, held)
	out := page.New(http.StatusOK, "You are signed in", "<p>Go back to the application and call "+page.Escape(j.facts.Server.Record.Name)+" again. You can close this page.</p>")
	out.Header.Add("Set-Cookie", bound("", -1).String())
	return out, nil
}

// deleteRegistration deletes a registration that the authorization server no longer recognizes.
func (f signIn) deleteRegistration(c *admin.Call, of resource.Record) error {
	return c.Resources.Change(c.Context, of.Scope, func(tx *resource.Tx) error {
		rec, ok, err := tx.Get(of.Scope, of.Kind, of.ID)
		if err != nil || !ok {
			return err
		}
		return tx.Delete(&rec)
	})
}

// storeConnection stores the connection and its tokens.
func (f signIn) storeConnection(c *admin.Call, j *joining, issuer string, held *oauthclient.StoredTokens) error {
	kind := mcp.KindConnection.Of(j.link.Server)
	return c.Resources.Change(c.Context, j.link.Scope(), func(tx *resource.Tx) error {
		if err := tx.Require(j.facts.Server.Record.Ref()); err != nil {
			return err
		}
		rec, there, err := tx.Get(j.link.Scope(), kind, j.link.User)
		if err != nil {
			return err
		}
		form := &mcp.Connection{Issuer: issuer, Serial: resource.NewID()}
		if !there {
			rec = resource.Record{Scope: j.link.Scope(), Kind: kind, ID: j.link.User, Name: j.email, Status: "active", CreatedBy: j.link.User}
		}
		if rec.Body, err = json.Marshal(form); err != nil {
			return err
		}
		rec.UpdatedBy = j.link.User
		stage, action := tx.Create, audit.Create
		if there {
			stage, action = tx.Update, audit.Update
		}
		if err := stage(&rec); err != nil {
			return err
		}
		if err := held.Stage(c.Context, tx, c.Sealer, j.place(), form.Serial); err != nil {
			return err
		}
		return audit.Append(tx, audit.Entry{
			Method: c.Request.Method, URI: c.Request.URL.EscapedPath(), RequestID: c.RequestID, UserID: j.link.User, UserType: audit.UserTypeUser, WorkspaceID: j.link.Workspace,
			StatusCode: http.StatusOK, ResourceType: "mcp_connections", Action: action, ResourceID: j.link.User, ClientIP: c.ClientIP(),
			Details: map[string]string{"mcp_server_id": j.link.Server, "issuer": issuer},
		})
	})
}

// learnAs inspects the server as the user. The connection succeeds without it.
func (f signIn) learnAs(c *admin.Call, j *joining, held *oauthclient.StoredTokens) {
	of := j.facts.Integration.Record
	up, _, err := f.family.Opener.Open(c.Context, of, j.link.Scope())
	if !errors.Is(err, mcp.ErrSignIn) {
		return
	}
	ctx, cancel := context.WithTimeout(c.Context, learnTime)
	defer cancel()
	up.Headers.Set("Authorization", "Bearer "+held.Access)
	snap, err := mcp.Inspect(ctx, up)
	if err == nil {
		err = mcp.Store(c.Context, c.Resources, of.Ref(), snap, j.link.User)
	} else if why, _, known := reason(err); known {
		err = mcp.StoreFailure(c.Context, c.Resources, of.Ref(), why)
	}
	if err != nil {
		slog.Warn("inspecting an MCP server failed", "request_id", c.RequestID, "integration", of.ID, "error", err.Error())
	}
}

// cannot returns the page for an error of a user or an authorization server.
func cannot(err error) (any, error) {
	var failed *upstream.Failure
	if errors.As(err, &failed) {
		return page.New(http.StatusBadGateway, "The sign-in failed", "<p>"+page.Escape(failed.Why)+".</p>"), nil
	}
	f := fault.From(err)
	if f.Status() >= 500 {
		return nil, err
	}
	return page.New(f.Status(), "This request is not valid", "<p>"+page.Escape(f.Field+" "+f.Message)+".</p>"), nil
}
