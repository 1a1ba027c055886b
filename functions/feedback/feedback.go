// Package feedback is the family by which clients rate answers: a value and a weight
// on the trace of a request, which logs and analytics then show.
package feedback

import (
	"encoding/json"
	"fmt"

	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/resource"
	"gateway/shared/usage/feedback"
)

// MaxList is how many feedbacks one call gives.
const MaxList = 100

// New makes the family.
func New(s *feedback.Store) admin.Family {
	f := &family{s}
	scopes := []string{"logs.write", "feedbacks.write", "completions.write"}
	value := admin.Field{Name: "value", Type: admin.Integer, Required: true, Min: feedback.LeastValue, Max: feedback.MostValue, Doc: "Rating of the response, -10 to 10."}
	more := []admin.Field{
		{Name: "weight", Type: admin.Number, Max: 1, Default: 1, Doc: "Weight, 0 to 1."},
		{Name: "metadata", Type: admin.Object, Open: true, Check: smallMetadata, Doc: "Any fields; _user, _organisation, _prompt and _environment have the same meaning as in request metadata."},
	}
	trace := admin.Field{Name: "trace_id", Type: admin.String, Required: true, Min: 1, Max: feedback.MaxTrace, Doc: "Trace of the request, which may still be running."}
	return admin.Family{Name: "feedback", Doc: "Ratings of responses.", Routes: []admin.Route{
		{
			Method: "POST", Path: "/feedback", Name: "createFeedback", Doc: "Rate a response, or several: one object or a list.",
			Scopes: scopes, Level: admin.InWorkspace, ByWorkspaces: true, Unrecorded: true, MaxItems: MaxList, MaxBody: 2 << 20,
			Body: append([]admin.Field{trace, value}, more...), Response: response, Do: f.create,
		},
		{
			Method: "PUT", Path: "/feedback/{id}", Name: "updateFeedback", Doc: "Change a rating. The value is required; other absent fields are unchanged.",
			Scopes: scopes, Level: admin.InWorkspace, ByWorkspaces: true, Unrecorded: true,
			Body: append([]admin.Field{value}, more...), Response: response, Do: f.update,
		},
	}}
}

type family struct{ store *feedback.Store }

var response = admin.Closed(map[string]admin.Schema{
	"status": {"type": "string", "const": "success"}, "message": {"type": "string"}, "feedback_ids": {"type": "array", "items": admin.Schema{"type": "string", "format": "uuid"}},
})

func smallMetadata(raw json.RawMessage) []fault.Detail {
	if len(raw) > feedback.MaxMetadata {
		return []fault.Detail{{Message: fmt.Sprintf("must have at most %d bytes", feedback.MaxMetadata)}}
	}
	return nil
}

// metadata is that of a body; nil for none.
func metadata(v admin.Values) json.RawMessage {
	if !v.HasValue("metadata") {
		return nil
	}
	return v.Raw("metadata")
}

func (f *family) create(c *admin.Call) (any, error) {
	all, ids := make([]feedback.Feedback, len(c.Items)), make([]string, len(c.Items))
	for i, in := range c.Items {
		ids[i] = resource.NewID()
		all[i] = feedback.Feedback{ID: ids[i], Trace: in.Text("trace_id"), Value: in.Int("value"), Weight: 1, Metadata: metadata(in), Key: c.Caller.KeyID}
		if in.HasValue("weight") {
			all[i].Weight = in.Float("weight")
		}
	}
	if err := f.store.Add(c.Context, c.Scope, all); err != nil {
		return nil, err
	}
	return admin.Members{"status": "success", "message": "Feedback saved", "feedback_ids": ids}, nil
}

func (f *family) update(c *admin.Call) (any, error) {
	id, ch := c.Param("id"), feedback.Change{Value: c.Body.Int("value")}
	if c.Body.HasValue("weight") {
		w := c.Body.Float("weight")
		ch.Weight = &w
	}
	if c.Body.Has("metadata") {
		m := metadata(c.Body)
		ch.Metadata = &m
	}
	missing := fault.New(fault.NotFound, "id", "This feedback does not exist")
	if !admin.IsUUID(id) {
		return nil, missing
	}
	ok, err := f.store.Update(c.Context, c.Scope, id, ch)
	switch {
	case err != nil:
		return nil, err
	case !ok:
		return nil, missing
	}
	return admin.Members{"status": "success", "message": "Feedback updated", "feedback_ids": []string{id}}, nil
}
