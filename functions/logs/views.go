package logs

import (
	"fmt"
	"net/url"

	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/resource"
)

// kindView is the resource kind of saved views.
const kindView resource.Kind = "VIEW"

// maxViews is how many saved views a workspace has.
const maxViews = 200

// view is the stored form of a saved view: filters of a page that lists logs or analytics.
type view struct {
	Page  string `json:"page" enum:"logs,analytics"`
	Query string `json:"query" max:"4096"`
}

// views are the saved views of a workspace. All who may read logs or analytics there see them;
// who made one, and managers, change it.
func views() *admin.Collection[view] {
	return &admin.Collection[view]{
		Kind: kindView, Object: "view", Path: "/views", UUIDOnly: true,
		Scopes: func(string) []string { return []string{"logs.list", "analytics.view"} }, Resource: "views",
		Where: admin.InWorkspace, WriteRole: admin.Member,
		List: admin.List{Search: true},
		Fields: []admin.Field{
			admin.NameField(100),
			{Name: "page", Required: true, Listed: true, Doc: "The page that it is a view of."},
			{Name: "query", Required: true, Doc: "Query string of GET /logs or of analytics, without the question mark.", Example: "ai_model=gpt-4o&status_code=429"},
		},
		Check: func(_ *admin.Call, ch *admin.Change[view]) []fault.Detail {
			if _, err := url.ParseQuery(ch.Form.Query); err != nil {
				return []fault.Detail{{Field: "query", Message: "must be a query string, such as ai_model=gpt-4o&status_code=429"}}
			}
			return nil
		},
		Before: func(c *admin.Call, _ *resource.Tx, ch *admin.Change[view]) error {
			if !ch.Creates() {
				return ownView(c, ch.Rec)
			}
			rows, err := c.Resources.List(c.Context, c.Scope, kindView)
			if err == nil && len(rows) >= maxViews {
				err = fault.New(fault.QuotaReached, "", fmt.Sprintf("A workspace has at most %d saved views; delete one first", maxViews))
			}
			return err
		},
		Retire: func(c *admin.Call, _ *resource.Tx, it admin.Item[view]) error { return ownView(c, it.Record) },
	}
}

// ownView rejects callers who may not change a view.
func ownView(c *admin.Call, rec *resource.Record) error {
	if rec.CreatedBy == c.Actor() || c.Caller.AtLeast(admin.Manager) {
		return nil
	}
	return fault.New(fault.NotAllowed, "", "Only who made a view, and managers of the workspace, can change it")
}
