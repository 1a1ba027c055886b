package relay

import (
	"io"
	"net/http"
	"net/url"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/job"
	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/batch"
	"gateway/shared/relay/body"
	"gateway/shared/relay/ownership"
	"gateway/shared/relay/plan"
	"gateway/shared/relay/target"
	"gateway/shared/route/saved"
	"gateway/shared/store"
)

// This file serves the routes of files and batches that the gateway itself stores and runs.

// Batches returns the batches that the gateway runs.
func (r *Relay) Batches() *batch.Batches { return r.batches }

// Files returns the store of a workspace's managed files.
func (r *Relay) Files(sc store.Scope) batch.FileStore { return r.fileStores.BuiltIn(sc) }

// manage serves a request without a provider.
func manage(c *call) error {
	c.target.Choice.Names = target.Names{Provider: plan.OwnProvider}
	a, err := runManaged(c.relay, &c.target, &c.out)
	if err != nil {
		return err
	}
	if a.Type == "application/json" {
		body, err := io.ReadAll(a.Body)
		if err != nil {
			return err
		}
		sendJSON(c, body, nil)
		return nil
	}
	defer a.Body.Close()
	return sendPassed(c, &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {a.Type}}, Body: a.Body, ContentLength: a.Length})
}

// runManaged executes the operation.
func runManaged(r *Relay, tg *target.Target, outb *outbound) (*chat.JobResponse, error) {
	j := &chat.Job{
		Operation: string(tg.Req.Route.Operation), ID: tg.Body.ID, Query: url.Values{}, Request: tg.Req.ULID, Now: tg.Req.StartTime,
		ProviderName: "files that the gateway stores", Strict: true, Loss: &tg.Loss, Files: r.fileStores.BuiltIn(tg.Req.Principal.Scope),
	}
	desk := batch.Handler{Batches: r.batches, Files: r.fileStores.BuiltIn(tg.Req.Principal.Scope), Scope: tg.Req.Principal.Scope, Wake: func(b *batch.Batch) { wake(r, tg.Req, b) }}
	if tg.Req.Req.Method == http.MethodGet {
		j.Query = tg.Req.Req.URL.Query()
	}
	switch tg.Req.Route.Operation {
	case provider.BatchesCreate:
		return createRun(r, tg.Req, tg.Body, tg.Plan, &desk)
	case provider.BatchesList:
		return desk.List(tg.Req.Ctx, j)
	case provider.BatchesGet, provider.BatchesCancel, provider.BatchesOutput:
		return desk.Act(tg.Req.Ctx, j)
	case provider.FilesUpload:
		up, err := jobUpload(tg, outb, tg.Body.In)
		if err != nil {
			return nil, err
		}
		up.File = batch.Checked(up.File)
		j.Upload = up
	}
	a, done, err := job.ServeStored(tg.Req.Ctx, j)
	if err == nil && !done {
		err = ownership.Missing("id", tg.Body.ID)
	}
	return a, err
}

// createRun creates a batch. The route has checked the limits of the body.
func createRun(r *Relay, q *admission.Request, in *body.Body, pl *plan.Plan, desk *batch.Handler) (*chat.JobResponse, error) {
	if r.Runs == nil || r.Bucket == nil {
		return nil, fault.New(fault.UnsupportedOperation, "x-gateway-provider", "This installation does not run batches; name a provider that does")
	}
	d, err := batch.ReadDefinition(in.In)
	if err != nil {
		return nil, err
	}
	d.Key, d.Creator = q.KeyHash(), batch.Creator{
		KeyID: q.Principal.KeyID, Type: string(q.Principal.Type), User: q.Principal.UserID, Slug: q.Principal.WorkspaceSlug,
	}
	if err := r.Auth.Entrust(q.Ctx, q.Principal, d.Key, r.Now().Add(batch.Lifetime)); err != nil {
		return nil, err
	}
	return desk.Create(q.Ctx, d, func(d *batch.Definition) error { return tryOptions(r, q, pl, d) })
}

// wake sends the message of a batch's next step. The sweep repeats a lost one.
func wake(r *Relay, q *admission.Request, b *batch.Batch) {
	if r.Runs == nil {
		return
	}
	if err := r.Runs.Send(q.Ctx, batch.Message(q.Principal.Scope, b.ID, b.Step, 0)); err != nil {
		q.Fail("queue of batches", err)
	}
}

// tryOptions resolves the route of the rows, so that its faults are reported immediately, as
// faults of gateway_options.
func tryOptions(r *Relay, q *admission.Request, pl *plan.Plan, d *batch.Definition) error {
	err := rowsRoute(r, q, pl, d)
	if err == nil {
		return nil
	}
	f := fault.From(err)
	if f.Status() >= 500 || strings.HasPrefix(f.Field, "gateway_options") {
		return err
	}
	at := fault.New(f.Code, "gateway_options", "gateway_options: "+f.Message)
	at.Details = f.Details
	return at
}

// rowsRoute resolves the route of the rows.
func rowsRoute(r *Relay, q *admission.Request, pl *plan.Plan, d *batch.Definition) error {
	h := batch.Headers(d.Options)
	var ask admission.Headers
	if err := ask.Read(h); err != nil {
		return err
	}
	switch {
	case ask.Provider == plan.OwnProvider:
		return fault.Invalid("x-gateway-provider", "x-gateway-provider must name the provider of the rows")
	case d.Window == batch.Day && ask.Provider == "" && ask.VirtualKey == "":
		return fault.Invalid("gateway_options", "gateway_options must name the provider that runs the batch, by x-gateway-virtual-key or x-gateway-provider")
	case d.Window == batch.Day && ask.Config != "":
		return fault.Invalid("gateway_options.x-gateway-config", "gateway_options.x-gateway-config is only allowed for rows that the gateway runs: use completion_window immediate")
	}
	if err := pl.ResolveAs(r.sources, ask, h); err != nil {
		return err
	}
	slug, named := strings.CutPrefix(ask.Provider, "@")
	switch {
	case named:
	case ask.VirtualKey != "":
		slug = strings.TrimPrefix(ask.VirtualKey, "@")
	case ask.Provider == "":
		return nil
	default:
		if _, known := provider.ByID(ask.Provider); !known {
			return fault.Newf(fault.UnknownProvider, "x-gateway-provider", "Invalid provider passed: %q is no saved provider, whose name begins with @, and %s", clipText(ask.Provider), provider.UnknownProviderMessage(ask.Provider))
		}
		return nil
	}
	_, err := saved.Load(q.Ctx, q.View, q.Principal.Scope, slug, q.StartTime)
	return err
}
