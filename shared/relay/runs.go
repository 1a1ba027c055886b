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
	"gateway/shared/relay/asked"
	"gateway/shared/relay/kept"
	"gateway/shared/relay/managed"
	"gateway/shared/relay/plan"
	"gateway/shared/relay/saved"
	"gateway/shared/store"
)

// This file serves the routes of files and batches where the gateway is the one
// who keeps and runs them.

// Batches gives the batches that the gateway runs, Room a workspace's files.
func (r *Relay) Batches() *managed.Batches { return r.batches }

// Room is where a workspace's managed files lie.
func (r *Relay) Room(sc store.Scope) managed.Room { return r.rooms.Own(sc) }

// manage answers a request that no provider is asked for.
func (mr *managedRuns) manage() error {
	mr.To.Names.Provider = plan.OwnProvider
	a, err := mr.managed()
	if err != nil {
		return err
	}
	if a.Type == "application/json" {
		body, err := io.ReadAll(a.Body)
		if err != nil {
			return err
		}
		mr.sendJSON(body, nil)
		return nil
	}
	defer a.Body.Close()
	return mr.sendPassed(&http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {a.Type}}, Body: a.Body, ContentLength: a.Length})
}

// managed performs the operation.
func (mr *managedRuns) managed() (*chat.JobAnswer, error) {
	j := &chat.Job{
		Operation: string(mr.Route.Operation), ID: mr.ID, Query: url.Values{}, Request: mr.ULID, Now: mr.Start,
		ProviderName: "files that the gateway keeps", Strict: true, Loss: &mr.Loss, Room: mr.rooms.Own(mr.Who.Scope),
	}
	desk := managed.Desk{Batches: mr.batches, Room: mr.rooms.Own(mr.Who.Scope), Scope: mr.Who.Scope, Wake: mr.wake}
	if mr.Req.Method == http.MethodGet {
		j.Query = mr.Req.URL.Query()
	}
	switch mr.Route.Operation {
	case provider.BatchesCreate:
		return mr.createRun(&desk)
	case provider.BatchesList:
		return desk.List(mr.Ctx, j)
	case provider.BatchesGet, provider.BatchesCancel, provider.BatchesOutput:
		return desk.Act(mr.Ctx, j)
	case provider.FilesUpload:
		up, err := mr.jobUpload(mr.In)
		if err != nil {
			return nil, err
		}
		up.File = managed.Checked(up.File)
		j.Upload = up
	}
	a, done, err := job.Held(mr.Ctx, j)
	if err == nil && !done {
		err = kept.Missing("id", mr.ID)
	}
	return a, err
}

// createRun makes a batch. The route has checked the bounds of the body.
func (mr *managedRuns) createRun(desk *managed.Desk) (*chat.JobAnswer, error) {
	if mr.Runs == nil || mr.Bucket == nil {
		return nil, fault.New(fault.UnsupportedOperation, "x-gateway-provider", "This installation runs no batches of its own; name a provider that does")
	}
	d, err := managed.ReadDefinition(mr.In)
	if err != nil {
		return nil, err
	}
	d.Key, d.Maker = mr.KeyHash(), managed.Maker{
		KeyID: mr.Who.KeyID, Type: string(mr.Who.Type), User: mr.Who.UserID, Slug: mr.Who.WorkspaceSlug,
	}
	if err := mr.Auth.Entrust(mr.Ctx, mr.Who, d.Key, mr.Now().Add(managed.Lifetime)); err != nil {
		return nil, err
	}
	return desk.Create(mr.Ctx, d, mr.tryOptions)
}

// wake sends the message of a batch's next step. One that is lost is sent again by
// the sweep.
func (mr *managedRuns) wake(b *managed.Batch) {
	if mr.Runs == nil {
		return
	}
	if err := mr.Runs.Send(mr.Ctx, managed.Message(mr.Who.Scope, b.ID, b.Step, 0)); err != nil {
		mr.Fail("queue of batches", err)
	}
}

// tryOptions resolves the route that the rows will take, so that what is wrong
// with it is told at once, as one of gateway_options.
func (mr *managedRuns) tryOptions(d *managed.Definition) error {
	err := mr.rowsRoute(d)
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
func (mr *managedRuns) rowsRoute(d *managed.Definition) error {
	h := managed.Headers(d.Options)
	var ask asked.Headers
	if err := ask.Read(h); err != nil {
		return err
	}
	switch {
	case ask.Provider == plan.OwnProvider:
		return fault.Invalid("x-gateway-provider", "x-gateway-provider must name who answers the rows")
	case d.Window == managed.Day && ask.Provider == "" && ask.VirtualKey == "":
		return fault.Invalid("gateway_options", "gateway_options must name the provider that runs the batch, by x-gateway-virtual-key or x-gateway-provider")
	case d.Window == managed.Day && ask.Config != "":
		return fault.Invalid("gateway_options.x-gateway-config", "gateway_options.x-gateway-config is for rows that the gateway runs: use completion_window immediate")
	}
	if err := mr.ResolveAs(mr.sources, ask, h); err != nil {
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
			return fault.Newf(fault.UnknownProvider, "x-gateway-provider", "Invalid provider passed: %q is not a provider of this gateway", clipText(ask.Provider))
		}
		return nil
	}
	_, err := saved.Load(mr.Ctx, mr.View, mr.Who.Scope, slug, mr.Start)
	return err
}
