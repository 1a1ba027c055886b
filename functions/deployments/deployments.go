// Package deployments is the family of gateways that an organization has registered:
// where they are, which workspaces and users they serve.
package deployments

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"gateway/shared/admin"
	"gateway/shared/admin/sharing"
	"gateway/shared/audit"
	"gateway/shared/egress"
	"gateway/shared/fault"
	"gateway/shared/fault/bound"
	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/tenant/access"
)

// Deps is what the family works with.
type Deps struct {
	// CheckURL is the egress rule for hosts that people name; Transport is the guarded way
	// out to them.
	CheckURL  provider.URLCheck
	Transport http.RoundTripper
	// Most is how many deployments of a type there may be; 0: DefaultMost.
	Most int
}

// DefaultMost is how many deployments of each type an organization may register.
const DefaultMost = 50

// New makes the family.
func New(d Deps) admin.Family {
	if d.Most == 0 {
		d.Most = DefaultMost
	}
	f := &family{Deps: d}
	f.col = f.describe()
	const item = "/deployments/{deploymentId}"
	routes := append(f.col.Routes(), f.col.ItemRoutes(admin.Route{
		Method: "POST", Path: item + "/verify", Name: "verifyDeployment", Doc: "Check whether the deployment is reachable, and record the result.", Action: audit.Test, Response: verifiedSchema, Do: f.col.WithItem("update", f.verify),
	})...)
	routes = append(routes, sharing.Workspaces[access.Deployment]{Of: f.col, Name: "Deployment", Entries: func(d *access.Deployment) *access.Workspaces { return &d.Access }}.Routes(item+"/workspaces")...)
	return admin.Family{Name: "deployments", Doc: "Gateways operated by the organization.", Routes: routes}
}

type family struct {
	Deps
	col *admin.Collection[access.Deployment]
}

type (
	item   = admin.Item[access.Deployment]
	change = admin.Change[access.Deployment]
)

// tokenKey is the name under which a call stores the token for its response.
const tokenKey = "token"

const maxNamed = 1000

func (f *family) describe() *admin.Collection[access.Deployment] {
	return &admin.Collection[access.Deployment]{
		Kind: access.KindDeployment, Object: "deployment", Path: "/deployments", Param: "deploymentId",
		Scope: "deployments", Level: admin.InOrganisation, ReadRole: admin.Admin, WriteRole: admin.Admin, Slugs: &admin.Slugs{Max: 40},
		List: admin.List{Search: true, Query: []admin.Field{{Name: "status", Type: admin.String, Enum: []string{access.Active, access.Inactive}, Doc: "Only those with this health."}},
			Match: func(c *admin.Call, row *resource.Row) bool {
				return !c.Query.HasValue("status") || row.Status == c.Query.Text("status")
			}},
		Fields: []admin.Field{
			admin.NameField(255), admin.SlugField(255),
			{Name: "type", Required: true, Fixed: true, Listed: true},
			{Name: "url", Doc: "Address, http or https."},
			{Name: "config", Type: admin.Object, Open: true, Doc: "Options of the deployment.", Check: smallConfig},
			{Name: "user_allowlist", Doc: "Users that it serves, by the subject of their tokens; null: all."},
			{Name: "allow_all_workspaces", Type: admin.Boolean, Default: true, Trigger: true, Doc: "Whether it serves all workspaces."},
			{Name: "allowed_workspaces", Type: admin.Array, Of: &admin.Field{Type: admin.String, Min: 1, Max: 255}, Max: maxNamed, Trigger: true, Doc: "Those that it serves alone, by id or slug; an empty list only with allow_all_workspaces true."},
		},
		Computed: []admin.ComputedField[access.Deployment]{
			{Field: admin.Field{Name: "allow_all_workspaces", Type: admin.Boolean, Required: true}, Value: func(_ *admin.Call, it item) any { return it.Form.Access.Global }},
			{Field: admin.Field{Name: "allowed_workspaces", Type: admin.Array, Of: &admin.Field{Type: admin.String}, Required: true}, Value: func(_ *admin.Call, it item) any { return allowed(&it.Form.Access) }},
			{Field: admin.Field{Name: "last_synced_at", Type: admin.Timestamp}, Value: func(_ *admin.Call, it item) any {
				if it.Form.SyncedAt == nil {
					return nil
				}
				return admin.FormatTime(*it.Form.SyncedAt)
			}},
		},
		New:    func(*admin.Call) access.Deployment { return access.Deployment{Access: access.Workspaces{Global: true}} },
		Before: f.before,
		Adjust: func(action string, r *admin.Route) {
			if action != "create" {
				return
			}
			r.Errors = append(r.Errors, 402)
			r.Doc = "Register a deployment. Only this response contains its authentication token."
			r.Response = admin.Closed(map[string]admin.Schema{"id": {"type": "string"}, "slug": {"type": "string"}, "token": {"type": "string"}})
			create := r.Do
			r.Do = func(c *admin.Call) (any, error) {
				made, err := create(c)
				if err != nil {
					return nil, err
				}
				out := made.(admin.Members)
				out["token"] = c.Value(tokenKey)
				return out, nil
			}
		},
	}
}

const maxConfig = 64 << 10

func smallConfig(raw json.RawMessage) []fault.Detail {
	if len(raw) > maxConfig {
		return []fault.Detail{{Message: fmt.Sprintf("must have at most %d bytes", maxConfig)}}
	}
	return nil
}

func allowed(w *access.Workspaces) []string {
	out := []string{}
	for _, o := range w.Own {
		if o.Enabled && !w.Global {
			out = append(out, o.ID)
		}
	}
	return out
}

// before settles what the body states about workspaces, and gives a new deployment its
// token.
func (f *family) before(c *admin.Call, _ *resource.Tx, ch *change) error {
	form := ch.Form
	if bad := fault.Invalids(bound.Check(form)); bad != nil {
		return bad
	}
	if c.Body.HasValue("url") {
		u, err := f.CheckURL(form.URL, "url")
		if err != nil {
			return err
		}
		form.URL = u.String()
	}
	if err := serve(c, &form.Access); err != nil {
		return err
	}
	if !ch.Creates() {
		if form.URL != ch.OldForm.URL {
			ch.Rec.Status = access.Inactive // until it is verified
		}
		return nil
	}
	ch.Rec.Status = access.Inactive
	rows, err := c.Resources.List(c.Context, c.Organisation(), access.KindDeployment)
	if err != nil {
		return err
	}
	same := 0
	for i := range rows {
		if rows[i].Fields["type"] == form.Type {
			same++
		}
	}
	if same >= f.Most {
		return fault.Newf(fault.SubscriptionExhausted, "type", "at most %d %s deployments are allowed", f.Most, form.Type)
	}
	token := "dep-" + strings.ToLower(rand.Text()+rand.Text())
	sum := sha256.Sum256([]byte(token))
	form.Token = hex.EncodeToString(sum[:])
	c.SetValue(tokenKey, token)
	return nil
}

// serve changes which workspaces are served.
func serve(c *admin.Call, w *access.Workspaces) error {
	all, names := c.Body.HasValue("allow_all_workspaces"), c.Body.Texts("allowed_workspaces")
	if all && c.Body.Bool("allow_all_workspaces") && len(names) > 0 {
		return fault.Invalid("allowed_workspaces", "cannot be given with allow_all_workspaces true")
	}
	if all {
		w.Global, w.Own = c.Body.Bool("allow_all_workspaces"), nil
	}
	if !c.Body.HasValue("allowed_workspaces") || w.Global && all && len(names) == 0 {
		return nil
	}
	if len(names) == 0 {
		return fault.Invalid("allowed_workspaces", "must have 1 to %d entries, has 0, or be sent with allow_all_workspaces true", maxNamed)
	}
	ids, err := sharing.Named(c, names, func(n int) string { return fmt.Sprintf("allowed_workspaces[%d]", n) })
	if err != nil {
		return err
	}
	w.Global, w.Own = false, nil
	for _, id := range ids {
		w.Set(id, true, c.Now)
	}
	return nil
}

// verifyTime bounds how long a call waits for a deployment.
const verifyTime = 15 * time.Second

var verifiedSchema = admin.Closed(map[string]admin.Schema{
	"success": {"type": "boolean"}, "status": {"type": "string", "enum": []string{access.Active, access.Inactive}}, "status_code": {"type": []string{"integer", "null"}},
	"response_time_ms": {"type": "integer"}, "error": {"type": []string{"string", "null"}},
})

// verify calls a deployment and records the result.
func (f *family) verify(c *admin.Call) (any, error) {
	it, err := f.col.Find(c)
	if err != nil {
		return nil, err
	}
	if it.Form.URL == "" {
		return nil, fault.Invalid("url", "the deployment has no address at which its health can be checked")
	}
	began := time.Now()
	status, why := f.probe(c.Context, it.Form.URL)
	out := admin.Members{"success": why == "", "status": access.Active, "status_code": nil, "response_time_ms": time.Since(began).Milliseconds(), "error": admin.OrNull(why)}
	if why != "" {
		out["status"] = access.Inactive
	}
	if status != 0 {
		out["status_code"] = status
	}
	return out, f.col.Edit(c, func(tx *resource.Tx, ch *change) error {
		ch.Rec.Status = out["status"].(string)
		if why == "" {
			at := tx.Now().UTC()
			ch.Form.SyncedAt = &at
		}
		return nil
	})
}

// probe looks whether a gateway answers at an address; what it answers does not matter
// beyond its status.
func (f *family) probe(ctx context.Context, url string) (status int, why string) {
	ctx, cancel := context.WithTimeout(ctx, verifyTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(url, "/")+"/healthz", nil)
	if err != nil {
		return 0, "its address is not valid"
	}
	resp, err := f.Transport.RoundTrip(req)
	switch {
	case egress.IsBlocked(err):
		return 0, "the gateway may not call its address"
	case err != nil:
		return 0, "it cannot be reached"
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return resp.StatusCode, fmt.Sprintf("it responds with status %d", resp.StatusCode)
	}
	return resp.StatusCode, ""
}
