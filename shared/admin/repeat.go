package admin

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"gateway/shared/admin/replay"
	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/resource"
	"gateway/shared/store"
)

const (
	// idempotencyHeader names a call, so that a client can repeat it.
	idempotencyHeader = "Idempotency-Key"
	// replayedHeader marks the response of an earlier call.
	replayedHeader = "Idempotent-Replayed"
	maxIdempotency = 255
	// maxFollow is how long a repeated call waits for the first one.
	maxFollow = 20 * time.Second
	// maxReplayRecords limits the records that are compared before a response is repeated.
	maxReplayRecords = 20
)

// repeatable reports whether calls of the route are recognized when they are repeated: those
// that create a resource or show a secret once.
func (r *Route) repeatable() bool {
	return r.Method == http.MethodPost && !r.Public && !r.Unrecorded && (r.Action == audit.Create || r.Action == audit.Rotate)
}

// doOnce executes the call. A call that repeats another within a minute, or has its
// idempotency key, gets the replayed response of that one instead; see package replay.
func (h *Handler) doOnce(c *Call) (any, error) {
	if c.Route.rehearsable() && c.Query.Bool(dryRun) {
		return rehearse(c)
	}
	key, err := idempotencyKey(c.Request.Header)
	if err != nil {
		return nil, err
	}
	if !c.Route.repeatable() || key == "" && (h.deps.Repeats == nil || !h.deps.Repeats()) {
		return c.Route.Do(c)
	}
	calls := &replay.Calls{Table: c.Resources.Store().Table(store.Control), Now: c.Resources.Now}
	target := withoutVersion(c.Request.URL.EscapedPath()) + "?" + c.Request.URL.RawQuery
	call := replay.Call{Org: c.Caller.Scope.Org, Credential: sentCredential(c.Request), Method: c.Request.Method, Target: target, Key: key, Body: c.body.raw}
	was, run, err := follow(c.Context, calls, call, c.RequestID)
	if err != nil {
		return nil, err
	}
	if was != nil {
		holds, err := c.unchanged(was.Records)
		if err != nil {
			return nil, err
		}
		if holds || key != "" && was.Status != 0 {
			return replayed(c, was)
		}
		if run, err = calls.Replace(c.Context, call, c.RequestID); err != nil {
			return nil, repeatFault(err)
		}
	}
	return runOnce(c, run)
}

// runOnce executes the call and stores its response. A rejected call is not stored.
func runOnce(c *Call, run *replay.Run) (answer any, err error) {
	ctx := context.WithoutCancel(c.Context)
	c.tracked = true
	discard := func() error { return run.Discard(ctx) }
	end := func() error { // after a panic or an internal error
		if len(c.wrote) == 0 {
			return discard()
		}
		return run.End(ctx, replay.Response{Records: c.wrote})
	}
	defer func() {
		if failed := end(); failed != nil && err == nil {
			err = fault.Unavailable(failed)
		}
	}()
	v, err := c.Route.Do(c)
	if err != nil {
		if fault.From(err).Status() < http.StatusInternalServerError {
			end = discard
		}
		return nil, err
	}
	out, err := c.Route.respond(v)
	if err != nil {
		return nil, fault.Internal(err)
	}
	if out.Stream != nil || len(out.Body) > replay.MaxResponse {
		end = discard
		return out, nil
	}
	end = func() error {
		return run.End(ctx, replay.Response{Status: out.Status, ContentType: out.ContentType, Header: out.Header, Body: out.Body, Records: c.wrote})
	}
	return out, nil
}

// follow begins the call, or waits for the response of the first one.
func follow(ctx context.Context, calls *replay.Calls, call replay.Call, id string) (*replay.Response, *replay.Run, error) {
	deadline, wait := time.Now().Add(maxFollow), 10*time.Millisecond
	for {
		was, run, err := calls.Begin(ctx, call, id)
		if !errors.Is(err, replay.ErrRunning) || time.Now().After(deadline) {
			return was, run, repeatFault(err)
		}
		select {
		case <-ctx.Done():
			return nil, nil, repeatFault(err)
		case <-time.After(wait):
			wait = min(2*wait, 250*time.Millisecond)
		}
	}
}

func repeatFault(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, replay.ErrOtherBody):
		return fault.New(fault.Conflict, strings.ToLower(idempotencyHeader), "was used with another body within 24 hours; send a new key with a new body")
	case errors.Is(err, replay.ErrRunning):
		return fault.New(fault.Conflict, "", "The same call is still in progress; repeat it later to get its response")
	}
	return fault.Unavailable(err)
}

// replayed returns the response of an earlier call. If that response was lost, it names what the
// call created.
func replayed(c *Call, was *replay.Response) (any, error) {
	c.recorded = true // the first call is in the audit log
	if was.Status == 0 {
		var ids []string
		for _, r := range was.Records {
			ids = append(ids, r.ID)
		}
		return nil, fault.Newf(fault.Conflict, "", "The same call was made before and its response was lost; read the saved resource: %s", strings.Join(ids, ", "))
	}
	header := was.Header.Clone()
	if header == nil {
		header = http.Header{}
	}
	header.Set(replayedHeader, "true")
	return Response{Status: was.Status, ContentType: was.ContentType, Header: header, Body: was.Body}, nil
}

// unchanged reports whether all records are as a call left them. A client that changed or
// deleted them since has seen its response, and means another one.
func (c *Call) unchanged(records []replay.Record) (bool, error) {
	for _, r := range records {
		rec, ok, err := c.Resources.Get(c.Context, store.Scope{Org: c.Caller.Scope.Org, Workspace: r.Workspace}, resource.Kind(r.Kind), r.ID)
		if err != nil || !ok || rec.Rev != r.Rev || rec.Archived() {
			return false, err
		}
	}
	return true, nil
}

// track remembers the records that a change stages: those that it creates, or else those that
// it updates.
func (c *Call) track(tx *resource.Tx) {
	if !c.tracked {
		return
	}
	var created, updated []replay.Record
	for _, rec := range tx.Changed() {
		r := replay.Record{Kind: string(rec.Kind), Workspace: rec.Scope.Workspace, ID: rec.ID, Rev: rec.Rev}
		switch {
		case rec.Deleted:
		case rec.Rev == 1:
			created = append(created, r)
		default:
			updated = append(updated, r)
		}
	}
	if len(created) == 0 {
		created = updated
	}
	c.wrote = created[:min(len(created), maxReplayRecords)]
}

// sentCredential returns the credential of a request as it was sent.
func sentCredential(r *http.Request) string {
	if token, _, err := identity.Token(r.Header); err == nil {
		return token
	}
	return "cookie " + strings.Join(r.Header["Cookie"], "; ")
}

func idempotencyKey(h http.Header) (string, error) {
	sent := h[http.CanonicalHeaderKey(idempotencyHeader)]
	if len(sent) == 0 {
		return "", nil
	}
	visible := func(r rune) bool { return r <= ' ' || r > '~' }
	if key := sent[0]; len(sent) == 1 && key != "" && len(key) <= maxIdempotency && strings.IndexFunc(key, visible) < 0 {
		return key, nil
	}
	return "", fault.Invalid(strings.ToLower(idempotencyHeader), "must be sent once, with 1 to %d visible characters", maxIdempotency)
}

// dryRun is the query parameter, and the field of the response, of a rehearsed deletion.
const dryRun = "dry_run"

// maxImpact limits the resources that a rehearsed deletion lists.
const maxImpact = 1000

// impact is what a deletion would do.
type impact struct {
	Blocked  *string    `json:"blocked" doc:"Why the deletion would be rejected now; null if it would not."`
	UsedBy   []affected `json:"used_by" doc:"Resources that refer to it and would stop working. They prevent the deletion."`
	Deletes  []affected `json:"deletes" doc:"What would be deleted or archived."`
	Changes  []affected `json:"changes" doc:"What would be changed."`
	Complete bool       `json:"complete" doc:"Whether everything is listed."`
}

// affected is a resource that a deletion concerns.
type affected struct {
	Type        string  `json:"type"`
	ID          string  `json:"id"`
	Name        string  `json:"name"`
	WorkspaceID *string `json:"workspace_id" doc:"null for resources of the organization."`
}

// rehearsable reports whether the route deletes a resource. Routes of other protocols and
// those about the caller's own sessions do not count.
func (r *Route) rehearsable() bool {
	return r.Method == http.MethodDelete && r.Action == audit.Delete && r.Rejections == nil && r.Authenticate == nil
}

// describeRehearsal adds the parameter and the response of a rehearsal to a route. It changes a
// route once.
func (r *Route) describeRehearsal() {
	if !r.rehearsable() || slices.ContainsFunc(r.Query, func(f Field) bool { return f.Name == dryRun }) {
		return
	}
	r.Query = append(slices.Clone(r.Query), Field{Name: dryRun, Type: Boolean, Default: false, Doc: "true deletes nothing and returns what would be deleted, changed, or stop working."})
	plain, of := r.Response, r.ResponseOf
	r.Response, r.ResponseOf = nil, func() Schema {
		if plain == nil && of != nil {
			return withRehearsal(of())
		}
		return withRehearsal(plain)
	}
}

// withRehearsal adds the response of a rehearsal to the schema of a deletion's.
func withRehearsal(plain Schema) Schema {
	would := SchemaOf[impact]()
	would["description"] = "Of a dry run, alone."
	if required, ok := plain["required"].([]string); ok && len(required) > 0 {
		return Schema{"anyOf": []any{plain, Closed(map[string]Schema{dryRun: would})}}
	}
	out, properties := Schema{"type": "object"}, map[string]Schema{}
	maps.Copy(out, plain)
	if was, ok := plain["properties"].(map[string]Schema); ok {
		maps.Copy(properties, was)
	}
	properties[dryRun] = would
	out["properties"] = properties
	return out
}

// rehearse executes a deletion without committing any change, and returns what it would do.
func rehearse(c *Call) (any, error) {
	var would resource.DryRun
	c.recorded = true // nothing happens that could be recorded
	c.Context = resource.WithDryRun(c.Context, &would)
	_, err := c.Route.Do(c)
	out := impact{Complete: !c.partial, UsedBy: []affected{}}
	switch f := fault.From(err); {
	case err == nil:
		out.Deletes, out.Changes = affectedBy(would.Deleted), affectedBy(would.Updated)
	case f.Code != fault.Conflict:
		return nil, err
	default:
		out.Blocked, out.Deletes, out.Changes = &f.Message, []affected{}, []affected{}
		var used *resource.UsedError
		if errors.As(err, &used) {
			out.UsedBy = affectedBy(used.Users)
		}
	}
	for _, list := range []*[]affected{&out.UsedBy, &out.Deletes, &out.Changes} {
		if len(*list) > maxImpact {
			*list, out.Complete = (*list)[:maxImpact], false
		}
	}
	return Response{Status: http.StatusOK, JSON: Members{dryRun: out}}, nil
}

// affectedBy describes records, each once.
func affectedBy(refs []resource.Ref) []affected {
	out, seen := []affected{}, map[resource.Ref]bool{}
	for _, r := range refs {
		if seen[r] {
			continue
		}
		seen[r] = true
		a := affected{Type: r.Type(), ID: r.ID, Name: r.Name}
		if r.Scope.Workspace != "" {
			a.WorkspaceID = &r.Scope.Workspace
		}
		out = append(out, a)
	}
	return out
}
