package auth

import (
	"net/http"

	"gateway/functions/auth/browsersession"
	"gateway/shared/admin"
	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/identity/membership"
	"gateway/shared/resource"
	"gateway/shared/signin"
	"gateway/shared/signin/browser"
	"gateway/shared/store"
	"gateway/shared/tenant"
)

// self describes the caller.
type self struct {
	Object         string   `json:"object"`
	Type           string   `json:"type"` // session or jwt
	OrganisationID string   `json:"organisation_id"`
	User           *person  `json:"user"`
	Workspaces     []place  `json:"workspaces"`
	Session        *session `json:"session"`
	WriteToken     *string  `json:"csrf_token"`
}

type person struct {
	ID        string `json:"id"`
	Email     string `json:"email"`
	FirstName string `json:"first_name"`
	LastName  string `json:"last_name"`
	Role      string `json:"role"`
}

type place struct {
	ID   string `json:"id"`
	Slug string `json:"slug"`
	Name string `json:"name"`
	Role string `json:"role"`
}

type session struct {
	Object        string        `json:"object"`
	ID            string        `json:"id"`
	Method        string        `json:"method"`
	Current       bool          `json:"current"`
	ClientIP      string        `json:"client_ip"`
	UserAgent     string        `json:"user_agent"`
	CreatedAt     admin.Instant `json:"created_at"`
	Authenticated admin.Instant `json:"authenticated_at"`
	ExpiresAt     admin.Instant `json:"expires_at"`
}

type sessions struct {
	Object string    `json:"object"`
	Total  int       `json:"total"`
	Data   []session `json:"data"`
}

// themselves is the part of the API about the current user and its sessions.
type themselves struct{ family *family }

// selfRoutes returns the routes about the caller.
func (f themselves) selfRoutes() []admin.Route {
	routes := []admin.Route{
		{Method: "GET", Path: "/auth/self", Name: "getSelf", ResponseOf: admin.SchemaOf[self], Do: f.self,
			Doc: "Read the caller: the user of a session, with its workspaces, or of a JSON Web Token. Calls that change something with the session cookie must send csrf_token as X-Gateway-Csrf."},
		{Method: "GET", Path: "/auth/sessions", Name: "listSessions", ResponseOf: admin.SchemaOf[sessions], Do: f.list, Doc: "List the caller's sessions."},
		{Method: "DELETE", Path: "/auth/sessions/{sessionId}", Name: "endSession", Action: audit.Delete, Response: admin.EmptyResponse, Do: f.end,
			Doc: "End a session of the caller. It becomes invalid within two seconds."},
		{Method: "DELETE", Path: "/auth/sessions", Name: "endOtherSessions", Action: audit.Delete, Response: admin.EmptyResponse, Do: f.endOthers,
			Doc: "End all other sessions of the caller."},
		{Method: "POST", Path: "/auth/logout", Name: "logOut", Action: audit.Logout, ResponseOf: admin.SchemaOf[browsersession.LoggedOut], Do: f.logout,
			Doc: "End the calling session. logout_url, if present, also ends the session at the identity provider when opened in a browser."},
	}
	for i := range routes {
		r := &routes[i]
		r.Scopes, r.Level, r.Authenticate = about, admin.Shared, f.family.Self
		if r.Action != "" {
			r.Resource = "sessions"
		}
	}
	return routes
}

func (f themselves) self(c *admin.Call) (any, error) {
	of, token, err := f.family.SessionOf(c.Context, c.Request)
	if err != nil {
		return nil, err
	}
	out := self{Object: "self", Type: c.Caller.Type, OrganisationID: c.Caller.Scope.Org, Workspaces: []place{}}
	if of != nil {
		write := signin.WriteToken(token)
		shown := show(of, of.ID)
		out.Session, out.WriteToken = &shown, &write
	}
	if c.Caller.UserID == "" {
		return out, nil
	}
	rec, ok, err := c.Resources.Get(c.Context, c.Organisation(), membership.KindUser, c.Caller.UserID)
	if err != nil || !ok {
		return out, err
	}
	u, err := membership.DecodeUser(rec)
	if err != nil {
		return nil, err
	}
	out.User = &person{rec.ID, u.Email, u.FirstName, u.LastName, u.Role}
	out.Workspaces, err = placesOf(c, rec.ID, u)
	return out, err
}

// placesOf returns the workspaces and roles of a user.
func placesOf(c *admin.Call, id string, u *membership.User) ([]place, error) {
	rows, err := c.Resources.List(c.Context, c.Organisation(), tenant.KindWorkspace)
	if err != nil {
		return nil, err
	}
	out := []place{}
	for i := range rows {
		role := u.RoleIn("")
		if role == "" && u.MemberOf(rows[i].ID) {
			m, ok, err := c.Resources.Get(c.Context, store.Scope{Org: c.Organisation().Org, Workspace: rows[i].ID}, membership.KindMember, id)
			if err != nil {
				return nil, err
			}
			if ok {
				form, err := membership.DecodeMembership(m)
				if err != nil {
					return nil, err
				}
				role = u.RoleIn(form.Role)
			}
		}
		if role != "" {
			out = append(out, place{rows[i].ID, rows[i].Slug, rows[i].Name, role})
		}
	}
	return out, nil
}

func show(s *signin.Session, current string) session {
	return session{
		Object: "session", ID: s.ID, Method: s.Method, Current: s.ID == current, ClientIP: s.ClientIP, UserAgent: s.Agent,
		CreatedAt: admin.Instant(s.Created), Authenticated: admin.Instant(s.Authenticated), ExpiresAt: admin.Instant(s.Until),
	}
}

// own returns the calling session of a user.
func (f themselves) own(c *admin.Call) (*signin.Session, error) {
	of, _, err := f.family.SessionOf(c.Context, c.Request)
	if err == nil && of == nil {
		err = fault.New(fault.NotAllowed, "", "A JSON Web Token has no sessions")
	}
	return of, err
}

// all returns the calling session, and all sessions of its user.
func (f themselves) all(c *admin.Call) (of *signin.Session, all []*signin.Session, err error) {
	if of, err = f.own(c); err != nil {
		return nil, nil, err
	}
	all, err = f.family.Sessions.Of(c.Context, of.Org, of.User)
	return of, all, err
}

func (f themselves) list(c *admin.Call) (any, error) {
	of, all, err := f.all(c)
	if err != nil {
		return nil, err
	}
	out := sessions{Object: "list", Total: len(all), Data: []session{}}
	for _, s := range all {
		out.Data = append(out.Data, show(s, of.ID))
	}
	return out, nil
}

func errNoSession() error {
	return fault.New(fault.NotFound, "sessionId", "must be the id of one of your sessions")
}

func (f themselves) end(c *admin.Call) (any, error) {
	_, all, err := f.all(c)
	if err != nil {
		return nil, err
	}
	for _, s := range all {
		if s.ID != c.Param("sessionId") {
			continue
		}
		c.SetResource(s.ID)
		return nil, c.Change(func(tx *resource.Tx) error { signin.End(tx, s); return nil })
	}
	return nil, errNoSession()
}

func (f themselves) endOthers(c *admin.Call) (any, error) {
	of, err := f.own(c)
	if err != nil {
		return nil, err
	}
	return nil, admin.Rounds(c, func(tx *resource.Tx) (bool, error) { return f.family.Sessions.EndAll(tx, of.Org, of.User, of.ID) })
}

func (f themselves) logout(c *admin.Call) (any, error) {
	of, err := f.own(c)
	if err != nil {
		return nil, err
	}
	c.SetResource(of.ID)
	var out *string
	if of.LogoutURL != "" {
		out = &of.LogoutURL
	}
	if err := c.Change(func(tx *resource.Tx) error { signin.End(tx, of); return nil }); err != nil {
		return nil, err
	}
	return admin.Response{JSON: browsersession.LoggedOut{LogoutURL: out}, Header: http.Header{"Set-Cookie": {browser.Clear().String()}}}, nil
}
