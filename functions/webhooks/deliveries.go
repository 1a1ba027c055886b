package webhooks

import (
	"maps"
	"regexp"

	"gateway/shared/admin"
	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/notice"
	"gateway/shared/store"
)

const (
	defaultPage = 50
	maxPage     = 200
)

var (
	deliveryQuery = []admin.Field{
		{Name: "page_size", Type: admin.Integer, Min: 1, Max: maxPage, Default: defaultPage, Doc: "Maximum number of entries."},
		{Name: "cursor", Type: admin.String, Pattern: regexp.MustCompile("^[0-7][0-9A-HJKMNP-TV-Z]{25}$"), Doc: "next_cursor of the previous page.", Example: "01KAQ8W9S0000000000000000A"},
		{Name: "status", Type: admin.String, Enum: []string{notice.Pending, notice.Delivered, notice.Failed}, Doc: "Only those in this state."},
	}
	deliveryList = admin.Closed(map[string]admin.Schema{
		"object": {"type": "string", "const": "list"}, "data": {"type": "array", "items": admin.Closed(deliverySchema(false))},
		"next_cursor": {"type": []string{"string", "null"}, "description": "null on the last page."},
	})
)

// deliverySchema returns the fields of a delivery; whole adds those that lists omit.
func deliverySchema(whole bool) map[string]admin.Schema {
	text, instant := admin.Schema{"type": "string"}, admin.Schema{"type": "string", "format": "date-time"}
	orNull := admin.Schema{"type": []string{"string", "null"}}
	m := map[string]admin.Schema{
		"object": {"type": "string", "const": "delivery"}, "id": text, "channel": {"type": "string", "enum": []string{"webhook", "mail"}}, "type": text, "event_id": text, "workspace_id": orNull,
		"status": {"type": "string", "enum": []string{notice.Pending, notice.Delivered, notice.Failed}}, "created_at": instant,
		"next_attempt_at": {"type": []string{"string", "null"}, "format": "date-time"}, "attempts_count": {"type": "integer"},
		"response_status": {"type": []string{"integer", "null"}, "description": "Status of the last attempt; null if there was no response."}, "recipient": orNull,
	}
	if whole {
		maps.Copy(m, map[string]admin.Schema{
			"payload": {"type": []string{"object", "null"}, "description": "The signed body; null for a mail."}, "subject": orNull,
			"attempts": {"type": "array", "items": admin.Closed(map[string]admin.Schema{
				"at": instant, "response_status": {"type": []string{"integer", "null"}}, "error": orNull, "latency_ms": {"type": "integer"},
			})},
		})
	}
	return m
}

// place is the scope of a call's deliveries.
type place struct {
	store.Scope
	to string
}

// ofWebhook is a route below a webhook.
func (f *family) ofWebhook(do func(*admin.Call, place) (any, error)) func(*admin.Call) (any, error) {
	return func(c *admin.Call) (any, error) {
		it, err := f.col.Find(c)
		if err != nil {
			return nil, err
		}
		return do(c, place{it.Scope, it.ID})
	}
}

// ofMails is a route of the organization's mails.
func ofMails(do func(*admin.Call, place) (any, error)) func(*admin.Call) (any, error) {
	return func(c *admin.Call) (any, error) { return do(c, place{c.Organisation(), notice.Mails}) }
}

// mailRoutes are the routes of the mails that people were sent.
func (f *family) mailRoutes() []admin.Route {
	const of = "/notices/mails"
	routes := []admin.Route{
		{Method: "GET", Path: of, Name: "listNoticeMails", Query: deliveryQuery, Response: deliveryList, Scopes: []string{"organisation_webhooks.list"},
			Doc: "List the notification mails of the last 30 days, newest first.", Do: ofMails(f.list)},
		{Method: "GET", Path: of + "/{deliveryId}", Name: "readNoticeMail", Response: admin.Closed(deliverySchema(true)), Errors: []int{404}, Scopes: []string{"organisation_webhooks.read"},
			Doc: "Read the delivery status of a mail.", Do: ofMails(f.read)},
		{Method: "POST", Path: of + "/{deliveryId}/redeliver", Name: "redeliverNoticeMail", Action: audit.Resend, Errors: []int{404, 409}, Response: admin.Closed(deliverySchema(true)), Scopes: []string{"organisation_webhooks.update"},
			Doc: "Send a mail again.", Do: ofMails(f.redeliver)},
	}
	for i := range routes {
		routes[i].Level, routes[i].Role, routes[i].Resource = admin.InOrganisation, admin.Admin, "webhooks"
	}
	return routes
}

func (f *family) list(c *admin.Call, of place) (any, error) {
	size := defaultPage
	if c.Query.HasValue("page_size") {
		size = int(c.Query.Int("page_size"))
	}
	page, next, err := f.log.List(c.Context, of.Scope, of.to, c.Query.Text("status"), c.Query.Text("cursor"), size)
	if err != nil {
		return nil, err
	}
	shown := make([]any, len(page))
	for i, d := range page {
		shown[i] = show(d, false)
	}
	return admin.Members{"object": "list", "data": shown, "next_cursor": admin.OrNull(next)}, nil
}

func (f *family) read(c *admin.Call, of place) (any, error) {
	d, ok, err := f.log.Get(c.Context, of.Scope, of.to, c.Param("deliveryId"))
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fault.New(fault.NotFound, "deliveryId", "There is no such delivery")
	}
	return show(d, true), nil
}

func (f *family) redeliver(c *admin.Call, of place) (any, error) {
	c.SetResource(c.Param("deliveryId"))
	d, err := f.log.Redeliver(c.Context, of.Scope, of.to, c.Param("deliveryId"))
	if err != nil {
		return nil, err
	}
	return show(d, true), nil
}

// show is a delivery as responses have it.
func show(d *notice.Delivery, whole bool) admin.Members {
	m := admin.Members{
		"object": "delivery", "id": d.ID, "channel": "webhook", "type": d.Type, "event_id": d.EventID, "workspace_id": admin.OrNull(d.Workspace), "status": d.Status,
		"created_at": admin.FormatTime(d.Created), "next_attempt_at": nil, "attempts_count": d.Total, "response_status": nil, "recipient": admin.OrNull(d.Address),
	}
	if d.To == notice.Mails {
		m["channel"] = "mail"
	}
	if d.NextAt != nil {
		m["next_attempt_at"] = admin.FormatTime(*d.NextAt)
	}
	attempts := make([]any, len(d.Attempts))
	for i, a := range d.Attempts {
		attempts[i] = admin.Members{"at": admin.FormatTime(a.At), "response_status": statusOf(a), "error": admin.OrNull(a.Error), "latency_ms": a.Millis}
		m["response_status"] = statusOf(a)
	}
	if whole {
		m["attempts"], m["payload"], m["subject"] = attempts, nil, admin.OrNull(d.Subject)
		if len(d.Payload) > 0 {
			m["payload"] = d.Payload
		}
	}
	return m
}

func statusOf(a notice.Attempt) any {
	if a.Status == 0 {
		return nil
	}
	return a.Status
}
