package auth

import (
	"errors"
	"log/slog"
	"net/http"
	"time"

	"gateway/shared/admin"
	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/identity/membership"
	"gateway/shared/resource"
	"gateway/shared/signin"
	"gateway/shared/signin/device"
	"gateway/shared/store"
	"gateway/shared/tenant"
)

func scopeOf(p *deciding) store.Scope { return store.Scope{Org: p.of.Org} }

// deviceEntry returns the audit record of an event of a device's request.
func (f *devices) deviceEntry(c *admin.Call, user string, status int, r *device.Request) audit.Entry {
	e := audit.Entry{
		Method: c.Request.Method, URI: c.Request.URL.EscapedPath(), RequestID: c.RequestID, UserID: user, UserType: audit.UserTypeUser, StatusCode: status,
		ResourceType: "device_authorizations", ClientIP: c.ClientIP(), Details: map[string]string{},
	}
	if r != nil {
		e.Details = map[string]string{"client_id": clip(r.Client), "client_name": r.ClientName, "scope": r.Wants, "device_ip": r.ClientIP, "device_user_agent": r.Agent}
	}
	return e
}

// failed records in the audit log that a user could not decide, and why.
func (f *devices) failed(c *admin.Call, p *deciding, why string) {
	if f.granting.family.Record == nil {
		return
	}
	e := f.deviceEntry(c, p.of.User, http.StatusForbidden, nil)
	e.Action, e.Details["error"] = audit.Accept, why
	if err := f.granting.family.Record(c.Context, p.of.Org, e); err != nil {
		slog.Error("a denied device sign-in was not recorded in the audit log", "request_id", c.RequestID, "error", err)
	}
}

// offered returns the slugs of workspaces in which a user may have a key, up to maxOffered.
func (f *devices) offered(c *admin.Call, p *deciding) (out []string, err error) {
	names := p.user.Workspaces
	if p.user.IsOrganisationAdmin() {
		rows, err := c.Resources.List(c.Context, scopeOf(p), tenant.KindWorkspace)
		if err != nil {
			return nil, err
		}
		names = nil
		for i := range rows {
			names = append(names, rows[i].ID)
		}
	}
	for _, name := range names {
		if len(out) == maxOffered {
			break
		}
		ws, err := f.keyed(c, p, name)
		if err != nil {
			return nil, err
		}
		if ws != nil {
			out = append(out, ws.Slug)
		}
	}
	return out, nil
}

// keyed returns a workspace in which a user may have a key, either because the user may create
// one there or because every member gets one. It returns nil if there is none.
func (f *devices) keyed(c *admin.Call, p *deciding, name string) (*resource.Record, error) {
	if name == "" {
		return nil, nil
	}
	ws, ok, err := resource.Load(c.Context, p.view, scopeOf(p), tenant.KindWorkspace, name, func(rec resource.Record) (*resource.Record, error) { return &rec, nil })
	if err != nil || !ok || ws.Status != tenant.StatusActive {
		return nil, err
	}
	sc := store.Scope{Org: p.of.Org, Workspace: ws.ID}
	role, ok, err := membership.LoadRole(c.Context, p.view, sc, p.of.User)
	if err != nil || !ok {
		return nil, err
	}
	settings, err := tenant.LoadSettings(c.Context, p.view, sc)
	if err != nil {
		return nil, err
	}
	form, err := tenant.ReadWorkspace(*ws)
	if err != nil {
		return nil, err
	}
	if settings.Settings.CreatesKeys(form.IsDefault) || p.user.Role == membership.Owner {
		return ws, nil
	}
	if p.user.Role == membership.Admin {
		role = tenant.OrganisationAdmin
	}
	may, decided := settings.Settings.Rule(role, identity.WorkspaceUser.ScopeFamily()+".create")
	if !decided {
		may = role != membership.Member
	}
	if !may {
		return nil, nil
	}
	return ws, nil
}

// fetch responds to a device with what its user has allowed.
func (f *devices) fetch(c *admin.Call) (any, error) {
	r, err := device.Poll(c.Context, c.Resources.Store(), c.Body.Text("device_code"), c.Body.Text("client_id"), c.Now)
	switch err {
	case nil:
	case device.ErrPending:
		return rejectToken("authorization_pending", "the user has not responded yet")
	case device.ErrSlowDown:
		return rejectToken("slow_down", "too many requests: wait five seconds longer between them")
	case device.ErrExpired:
		return rejectToken("expired_token", "the code has expired: start again")
	case device.ErrDenied:
		return rejectToken("access_denied", "the user denied the request")
	case device.ErrUnknown:
		return noGrant()
	default:
		return nil, err
	}
	out, err := f.handOut(c, r)
	if errors.Is(err, device.ErrUnknown) {
		return noGrant()
	}
	if errors.Is(err, errLeft) {
		return rejectToken("access_denied", "the user no longer has the permission for this")
	}
	return out, err
}

// errLeft is returned for users who have lost the required permissions since they allowed the
// request.
var errLeft = errors.New("the user no longer has the permission for this")

func (f *devices) handOut(c *admin.Call, r *device.Request) (any, error) {
	var out tokens
	org := store.Scope{Org: r.By.Org}
	err := c.Resources.Change(c.Context, org, func(tx *resource.Tx) (err error) {
		rec, u, ok, err := membership.ByID(tx, org, r.By.User)
		if err != nil {
			return err
		}
		if !ok || u.Leaving || u.StoppedAt >= r.By.At.UnixMilli() {
			return errLeft
		}
		if !tx.Now().Before(r.By.Ends) {
			return errLeft
		}
		if err := tx.RequireUnchanged(&rec); err != nil {
			return err
		}
		// A user who has signed out since then allows no device.
		signin.RequireActive(tx, r.By.Org, r.By.User, r.By.Session, errLeft)
		r.StageCollected(tx)
		e := f.deviceEntry(c, r.By.User, http.StatusOK, r)
		e.Action, e.WorkspaceID = audit.Login, r.Workspace
		out = tokens{Type: "Bearer", Scope: r.Wants, WorkspaceID: r.Workspace}
		if r.Wants == device.APIKey {
			if err = f.handKey(tx, r, &rec, &out, c.Now); err != nil {
				return err
			}
			e.Action, e.ResourceID = audit.Create, out.KeyID
		} else {
			s := &signin.Session{
				Org: org.Org, User: rec.ID, Method: signin.ByDevice, Via: r.By.Via, Subject: r.By.Subject, ProviderSID: r.By.SID, LogoutURL: r.By.LogoutURL,
				ClientIP: c.ClientIP(), Agent: agent(c.Request), Authenticated: r.By.Authenticated, Until: r.By.Ends,
			}
			if out.Access, err = signin.Begin(tx, s); err != nil {
				return err
			}
			out.Expires, e.ResourceID = int64(s.Until.Sub(tx.Now())/time.Second), s.ID
		}
		return audit.Append(tx, e)
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// handKey creates the key of a device.
func (f *devices) handKey(tx *resource.Tx, r *device.Request, user *resource.Record, out *tokens, now time.Time) error {
	sc := store.Scope{Org: user.Scope.Org, Workspace: r.Workspace}
	if _, err := membership.CheckKeyOwner(tx, sc, user.ID, "user_id"); err != nil {
		if fault.From(err).Status() < 500 {
			return errLeft
		}
		return err
	}
	rec, raw, err := membership.CreateUserKey(tx, f.granting.family.Resources, nil, sc, user, nil, identity.RankOwner, user.ID) // limited by the current role of the user
	if err != nil {
		return err
	}
	if rec == nil {
		return errLeft // the workspace was deleted, or its key limit is reached
	}
	k, err := resource.Decode[identity.Key](*rec)
	if err != nil {
		return err
	}
	if k.ExpiresAt != nil {
		out.Expires = int64(k.ExpiresAt.Sub(now) / time.Second)
	}
	out.Access, out.KeyID = raw, rec.ID
	return nil
}
