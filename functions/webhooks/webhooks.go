// Package webhooks is the family of outgoing notifications: webhooks and the log of their
// deliveries, mails, and telemetry destinations, to which every request is exported.
package webhooks

import (
	"encoding/json"
	"time"

	"gateway/shared/admin"
	"gateway/shared/app/notices"
	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/notice"
	"gateway/shared/observe"
	"gateway/shared/resource"
	"gateway/shared/seal/reference"
	"gateway/shared/store"
	"gateway/shared/tenant"
)

// Deps is what the family works with.
type Deps struct {
	// CheckURL is the egress rule for hosts that people name.
	CheckURL reference.URLCheck
	Store    store.Store
	Now      func() time.Time
}

const path = "/webhooks"

// maxWebhooks is how many webhooks the organization may have, and each workspace. Every
// event is compared with all of them.
const maxWebhooks = 200

// New makes the family.
func New(d Deps) admin.Family {
	f := &family{Deps: d, log: notice.NewLog(d.Store, d.Now)}
	f.col = f.describe()
	routes := append(append(f.col.Routes(), f.itemRoutes()...), f.telemetry().Routes()...)
	return admin.Family{Name: "webhooks", Doc: "Webhooks, notification mails and telemetry destinations, with their deliveries.", Routes: append(routes, f.mailRoutes()...)}
}

type family struct {
	Deps
	log *notice.Log
	col *admin.Collection[notice.Webhook]
}

// item and change are a webhook and what happens to it.
type (
	item   = admin.Item[notice.Webhook]
	change = admin.Change[notice.Webhook]
)

func (f *family) describe() *admin.Collection[notice.Webhook] {
	shown := func(field admin.Field, value func(w *notice.Webhook) any) admin.ComputedField[notice.Webhook] {
		return admin.ComputedField[notice.Webhook]{Field: field, Value: func(_ *admin.Call, it item) any { return value(it.Form) }}
	}
	return &admin.Collection[notice.Webhook]{
		Kind: notices.KindWebhook, Object: "webhook", Path: path, Param: "webhookId", UUIDOnly: true, Resource: "webhooks",
		ReadRole: admin.Manager, WriteRole: admin.Manager,
		Levels: &admin.Levels[notice.Webhook]{Organisation: "organisation_webhooks", Workspace: "workspace_webhooks", Filter: true},
		Fields: []admin.Field{
			admin.NameField(255),
			{Name: "url", Required: true, Doc: "Address to which events are sent, by POST."},
			{Name: "description"},
			{Name: "events", Of: &admin.Field{Type: admin.String, Enum: notice.Types()}, Absent: []any{}, Doc: "Event types to send; default: all. A webhook of the organization also gets those of its workspaces."},
			{Name: "status", Type: admin.String, Enum: []string{notice.StatusActive, notice.StatusDisabled}, Column: true, UpdateOnly: true, Doc: "The gateway disables a webhook that responds with 410."},
		},
		Computed: []admin.ComputedField[notice.Webhook]{
			shown(admin.Field{Name: "previous_secret_expires_at", Type: admin.Timestamp, Doc: "Until when deliveries are also signed with the previous secret."}, func(w *notice.Webhook) any {
				if w.PreviousUntil == nil {
					return nil
				}
				return admin.FormatTime(*w.PreviousUntil)
			}),
			shown(admin.Field{Name: "disabled_reason", Type: admin.String, Doc: "Why the gateway disabled it."}, func(w *notice.Webhook) any { return admin.OrNull(w.DisabledReason) }),
		},
		Before: f.before,
		Adjust: func(action string, r *admin.Route) {
			if action == "create" {
				r.Recent = true // its response shows a secret
				r.Doc = "Register a webhook. Only this response contains its secret; deliveries are signed with it according to Standard Webhooks."
				r.Response = admin.Closed(map[string]admin.Schema{"id": {"type": "string"}, "secret": secretSchema})
				create := r.Do
				r.Do = func(c *admin.Call) (any, error) {
					made, err := create(c)
					if err != nil {
						return nil, err
					}
					return admin.Members{"id": made.(admin.Members)["id"], "secret": c.Value(secretKey)}, nil
				}
			}
		},
		Created: &admin.Reply{Members: []string{"id"}},
	}
}

var secretSchema = admin.Schema{"type": "string", "description": "whsec_ followed by base64."}

// secretKey is the name under which a call stores a secret for its response.
const secretKey = "secret"

func (f *family) before(c *admin.Call, tx *resource.Tx, ch *change) error {
	if c.Body.HasValue("url") {
		u, err := f.CheckURL(ch.Form.URL, "url")
		if err != nil {
			return err
		}
		ch.Form.URL = u.String()
	}
	if !ch.Creates() {
		if c.Body.HasValue("status") {
			ch.Form.DisabledReason = ""
		}
		return nil
	}
	there, err := c.Resources.List(c.Context, ch.Rec.Scope, notices.KindWebhook)
	if err != nil {
		return err
	}
	if len(there) >= maxWebhooks {
		return fault.Newf(fault.QuotaReached, "", "at most %d webhooks are allowed here; delete one first", maxWebhooks)
	}
	ch.Rec.Status = notice.StatusActive
	return f.renew(c, tx, ch.Rec, ch.Form)
}

// renew replaces a webhook's secret, and stores the new one for the response.
func (f *family) renew(c *admin.Call, tx *resource.Tx, rec *resource.Record, w *notice.Webhook) error {
	secret, err := notices.Renew(c.Context, c.Sealer, rec, w, tx.Now())
	if err != nil {
		return fault.Unavailable(err)
	}
	c.SetValue(secretKey, secret)
	return nil
}

// itemRoutes are the routes of one webhook beside those that every record has.
func (f *family) itemRoutes() []admin.Route {
	const of = path + "/{webhookId}"
	routes := f.col.ItemRoutes(
		admin.Route{Method: "POST", Path: of + "/rotate-secret", Name: "rotateWebhookSecret", Recent: true, Action: audit.Rotate, Errors: []int{409}, Do: f.col.WithItem("update", f.rotate),
			Doc:      "Rotate the webhook's secret. For 24 hours deliveries are also signed with the previous one.",
			Response: admin.Closed(map[string]admin.Schema{"id": {"type": "string"}, "secret": secretSchema, "previous_secret_expires_at": {"type": "string", "format": "date-time"}})},
		admin.Route{Method: "POST", Path: of + "/ping", Name: "pingWebhook", Action: audit.Manage, Do: f.col.WithItem("update", f.ping),
			Doc: "Send a test event to the webhook, even if it is disabled. Its deliveries show the result.", Response: admin.Closed(map[string]admin.Schema{"event_id": {"type": "string"}})},
		admin.Route{Method: "GET", Path: of + "/deliveries", Name: "listWebhookDeliveries", Query: deliveryQuery, Response: deliveryList,
			Doc: "List the deliveries of the last 30 days, newest first.", Do: f.col.WithItem("read", f.ofWebhook(f.list))},
		admin.Route{Method: "GET", Path: of + "/deliveries/{deliveryId}", Name: "readWebhookDelivery", Response: admin.Closed(deliverySchema(true)), Errors: []int{404},
			Doc: "Read a delivery, with what was sent and each attempt.", Do: f.col.WithItem("read", f.ofWebhook(f.read))},
		admin.Route{Method: "POST", Path: of + "/deliveries/{deliveryId}/redeliver", Name: "redeliverWebhookDelivery", Action: audit.Resend, Errors: []int{404, 409}, Response: admin.Closed(deliverySchema(true)),
			Doc: "Send a delivery again, under the same webhook-id and with as many attempts as a new one; a pending delivery is sent now.", Do: f.col.WithItem("update", f.ofWebhook(f.redeliver))},
	)
	return routes
}

func (f *family) rotate(c *admin.Call) (any, error) {
	var until *time.Time
	err := f.col.Edit(c, func(tx *resource.Tx, ch *change) error {
		if ch.OldForm.PreviousUntil != nil && tx.Now().Before(*ch.OldForm.PreviousUntil) {
			return fault.Newf(fault.Conflict, "webhookId", "the previous secret is still used until %s; rotate again after that", ch.OldForm.PreviousUntil.UTC().Format(time.RFC3339))
		}
		err := f.renew(c, tx, ch.Rec, ch.Form)
		until = ch.Form.PreviousUntil
		return err
	})
	if err != nil {
		return nil, err
	}
	return admin.Members{"id": c.Param("webhookId"), "secret": c.Value(secretKey), "previous_secret_expires_at": admin.FormatTime(*until)}, nil
}

// ping raises an event for one webhook.
func (f *family) ping(c *admin.Call) (any, error) {
	it, err := f.col.Find(c)
	if err != nil {
		return nil, err
	}
	e := notice.Event{
		ID: notice.NewID(f.Now()), Type: notice.Ping, Org: it.Scope.Org, Workspace: it.Scope.Workspace, Webhook: it.ID,
		Summary: "Test of a webhook of the AI gateway", Data: map[string]string{"webhook_id": it.ID},
	}
	if err := notice.Raise(c.Context, f.Store, e, f.Now()); err != nil {
		return nil, fault.Unavailable(err)
	}
	return admin.Members{"event_id": e.ID}, nil
}

// telemetryPath is the path of destinations to which each request is exported by OTLP.
const telemetryPath = "/telemetry-destinations"

// maxDestinations is how many destinations the organization may have, and each workspace.
// Every request is reported to all of them.
const maxDestinations = 200

type destination = admin.Change[observe.Destination]

// telemetry are the destinations of telemetry.
func (f *family) telemetry() *admin.Collection[observe.Destination] {
	return &admin.Collection[observe.Destination]{
		Kind: observe.KindDestination, Object: "telemetry-destination", Path: telemetryPath, Param: "destinationId", UUIDOnly: true, Resource: "telemetry",
		ReadRole: admin.Manager, WriteRole: admin.Manager,
		Levels: &admin.Levels[observe.Destination]{Organisation: "organisation_telemetry", Workspace: "workspace_telemetry", Filter: true},
		Fields: []admin.Field{
			admin.NameField(255),
			{Name: "endpoint", Required: true, Address: true, Example: "https://collector.example.com/otlp", Doc: "Base address of a collector: spans go to /v1/traces and metrics to /v1/metrics below it, as OTLP in protobuf."},
			{Name: "headers", Type: admin.String, Secret: true, Max: 8192, Check: checkHeaders, Example: "authorization=Bearer%20token",
				Doc: "Headers of the export requests, in the format of OTEL_EXPORTER_OTLP_HEADERS: comma-separated name=value, values percent-encoded."},
			{Name: "signals", Of: &admin.Field{Type: admin.String, Enum: []string{observe.Traces, observe.Metrics}}, Absent: []any{}, Doc: "What is exported; default: both."},
			{Name: "include_content", Absent: false, Doc: "Whether spans contain messages, instructions, tools and parameters of requests, if logs store bodies."},
			{Name: "semconv_stability_opt_in", Absent: "", Example: observe.Newest, Doc: "gen_ai_latest_experimental: only the newer names of the gen_ai conventions. A list in the format of OTEL_SEMCONV_STABILITY_OPT_IN; empty: the installation's setting."},
			{Name: "metrics_temporality", Type: admin.String, Enum: []string{observe.Delta, observe.Cumulative}, Absent: observe.Delta, Doc: "Whether metric points count from the previous point (delta) or from the start of the process (cumulative), as Prometheus requires."},
			{Name: "resource_attributes", Doc: "Further attributes of the resource, such as service.name and deployment.environment.name."},
			{Name: "status", Type: admin.String, Enum: []string{observe.StatusActive, observe.StatusDisabled}, Column: true, UpdateOnly: true, Doc: "Nothing is sent while it is disabled."},
		},
		Before:  f.beforeDestination,
		Created: &admin.Reply{Members: []string{"id"}},
	}
}

func checkHeaders(raw json.RawMessage) []fault.Detail {
	var list string
	if json.Unmarshal(raw, &list) != nil {
		return nil // the check of the type reports it
	}
	_, bad := observe.ParseHeaders(list)
	for i := range bad {
		bad[i].Field = ""
	}
	return bad
}

// readsLogs are the scopes that read logs with their bodies.
var readsLogs = []string{"logs.read", "logs.view"}

// mayShowContent returns a 403 if a destination would receive the bodies of requests that
// its author may not read: those of all users. It applies to every change that leaves an
// active destination with content.
func mayShowContent(c *admin.Call, ch *destination) error {
	if !ch.Form.Content || ch.Rec.Status == observe.StatusDisabled {
		return nil
	}
	allowed := c.Caller.HasAny(readsLogs)
	for _, part := range []string{tenant.SeeBodies, tenant.SeeOthers} {
		sees, err := c.AllowsView(part)
		if err != nil {
			return err
		}
		allowed = allowed && sees
	}
	if allowed {
		return nil
	}
	return fault.New(fault.NotAllowed, "include_content", "include_content requires the permission to read the logs of all users with their bodies; set it to false")
}

// confirmContent records who chose where the content goes: the caller that states the endpoint in
// the same call. Other changes leave that author, so that content which stopped with the
// permissions of its author does not resume at a host that the caller has not confirmed.
func confirmContent(c *admin.Call, ch *destination) error {
	switch d := ch.Form; {
	case !d.Content:
		d.ContentBy = ""
	case c.Body.HasValue("endpoint"):
		d.ContentBy = c.Actor()
	case ch.OldForm.Content:
		d.ContentBy = ch.OldForm.ContentAuthor(ch.Old)
	}
	if ch.Form.Content && c.Body.HasValue("include_content") && ch.Form.ContentBy != c.Actor() {
		return fault.Invalid("endpoint", "is required in the same call to have content sent on behalf of another user or key than before")
	}
	return nil
}

func (f *family) beforeDestination(c *admin.Call, _ *resource.Tx, ch *destination) error {
	if c.Body.HasValue("endpoint") {
		u, err := f.CheckURL(ch.Form.Endpoint, "endpoint")
		if err != nil {
			return err
		}
		if u.RawQuery != "" || u.Fragment != "" {
			return fault.Invalid("endpoint", "must have neither a query nor a fragment: paths are added to it")
		}
		ch.Form.Endpoint = u.String()
	}
	if err := mayShowContent(c, ch); err != nil {
		return err
	}
	if err := confirmContent(c, ch); err != nil || !ch.Creates() {
		return err
	}
	there, err := c.Resources.List(c.Context, ch.Rec.Scope, observe.KindDestination)
	if err != nil {
		return err
	}
	if len(there) >= maxDestinations {
		return fault.Newf(fault.QuotaReached, "", "at most %d telemetry destinations are allowed here; delete one first", maxDestinations)
	}
	ch.Rec.Status = observe.StatusActive
	return nil
}
