package relay

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"runtime/debug"

	"gateway/shared/chat"
	"gateway/shared/dialect/job"
	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/provider"
	"gateway/shared/relay/kept"
	"gateway/shared/relay/managed"
	"gateway/shared/store"
)

// This file serves the routes of files and batches where the gateway is the one
// who keeps and runs them.

// ownProvider is what x-gateway-provider names then.
const ownProvider = "gateway"

// Batches gives the batches that the gateway runs, Room a workspace's files.
func (r *Relay) Batches() *managed.Batches { return r.batches }

// Room is where a workspace's managed files lie.
func (r *Relay) Room(sc store.Scope) managed.Room { return r.rooms.Own(sc) }

// manage answers a request that no provider is asked for.
func (mr *managedRuns) manage() error {
	mr.rec.Provider = ownProvider
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
		Operation: string(mr.rt.Operation), ID: mr.id, Query: url.Values{}, Request: mr.ulid, Now: mr.start,
		ProviderName: "files that the gateway keeps", Strict: true, Loss: &mr.loss, Room: mr.rooms.Own(mr.who.Scope),
	}
	if mr.req.Method == http.MethodGet {
		j.Query = mr.req.URL.Query()
	}
	switch mr.rt.Operation {
	case provider.BatchesCreate:
		return mr.createRun()
	case provider.BatchesList:
		return mr.listRuns(j)
	case provider.BatchesGet, provider.BatchesCancel, provider.BatchesOutput:
		return mr.actOnRun(j)
	case provider.FilesUpload:
		up, err := mr.jobUpload(mr.in)
		if err != nil {
			return nil, err
		}
		up.File = managed.Checked(up.File)
		j.Upload = up
	}
	a, done, err := job.Held(mr.ctx, j)
	if err == nil && !done {
		err = kept.Missing("id", mr.id)
	}
	return a, err
}

// listRuns answers with a page of the workspace's batches.
func (mr *managedRuns) listRuns(j *chat.Job) (*chat.JobAnswer, error) {
	limit, err := job.Limit(j)
	if err != nil {
		return nil, err
	}
	after := j.Query.Get("after")
	if after != "" {
		b, err := mr.batches.Get(mr.ctx, mr.who.Scope, after)
		if err != nil {
			return nil, err
		}
		if b == nil {
			return nil, fault.Invalid("after", "after must be the id of a batch of the list")
		}
	}
	page, more, err := mr.batches.List(mr.ctx, mr.who.Scope, after, limit)
	if err != nil {
		return nil, err
	}
	ids, entries := make([]string, len(page)), make([][]byte, len(page))
	for i, b := range page {
		ids[i], entries[i] = b.ID, b.Append(nil, false)
	}
	return chat.JobJSON(job.AppendList(nil, ids, entries, more)), nil
}

// actOnRun reads or cancels a batch, or gives its rows of output.
func (mr *managedRuns) actOnRun(j *chat.Job) (*chat.JobAnswer, error) {
	b, err := mr.batches.Get(mr.ctx, mr.who.Scope, j.ID)
	if err == nil && b != nil && mr.rt.Operation == provider.BatchesCancel {
		if b, err = mr.batches.Cancel(mr.ctx, mr.who.Scope, j.ID); err == nil && b != nil {
			mr.wake(mr.who.Scope, b)
		}
	}
	switch {
	case err != nil:
		return nil, err
	case b == nil:
		return nil, kept.Missing("id", mr.id)
	case mr.rt.Operation == provider.BatchesOutput:
		return mr.runOutput(b)
	}
	details := false
	switch v := j.Query.Get("include_provider_details"); v {
	case "", "false":
	case "true":
		details = mr.rt.Operation == provider.BatchesGet
	default:
		return nil, fault.Invalid("include_provider_details", "include_provider_details must be true or false")
	}
	return chat.JobJSON(b.Append(nil, details)), nil
}

// runOutput streams the rows that were answered, then those that were not.
func (mr *managedRuns) runOutput(b *managed.Batch) (*chat.JobAnswer, error) {
	room := mr.rooms.Own(mr.who.Scope)
	var parts []io.Reader
	var closers []io.Closer
	var length int64
	for _, id := range [...]string{b.Output, b.Errors} {
		if id == "" {
			continue
		}
		f, err := room.File(mr.ctx, id)
		if err != nil {
			return nil, err
		}
		if f == nil {
			continue // deleted by its owner
		}
		src := room.Open(mr.ctx, f)
		parts, closers, length = append(parts, src), append(closers, src), length+f.Bytes
	}
	if len(parts) == 0 {
		if errs := b.ErrorsObject(); errs != nil {
			return chat.JobJSON(errs), nil
		}
		return nil, fault.Newf(fault.NotFound, "id", "The batch %q is %s and has no output", clipText(mr.id), b.Status)
	}
	return &chat.JobAnswer{Type: "application/jsonl", Body: rowsOfOutput{io.MultiReader(parts...), closers}, Length: length}, nil
}

type rowsOfOutput struct {
	io.Reader
	closers []io.Closer
}

// Close implements io.Closer.
func (r rowsOfOutput) Close() error {
	for _, c := range r.closers {
		_ = c.Close()
	}
	return nil
}

// wake sends the message of a batch's next step. One that is lost is sent again by
// the sweep.
func (mr *managedRuns) wake(sc store.Scope, b *managed.Batch) {
	if mr.Runs == nil {
		return
	}
	if err := mr.Runs.Send(mr.ctx, managed.Message(sc, b.ID, b.Step, 0)); err != nil {
		mr.fail("queue of batches", err)
	}
}

// Behalf is who a request is made for that came from no client.
type Behalf struct {
	Key     string              // hash of the API key
	Closing *identity.Principal // in place of a key that is no longer valid: see Mux.Admits
	Request string              // set by Run: the id of the request's record
}

// Admits tells why the holder of a key may no longer run batches: a fault of 401
// or 403, nil while it may. Such a key gets closing, who it was of: requests on its
// behalf may end what was begun with the key, and must begin nothing.
func (m *Mux) Admits(ctx context.Context, sc store.Scope, d *managed.Definition) (closing *identity.Principal, left *fault.Fault, err error) {
	const scope = "completions.write"
	auth := m.relay.Auth
	who, err := auth.ByHash(ctx, d.Key)
	switch {
	case err == nil && who.Has(scope):
		return nil, nil, nil
	case err == nil:
		left = fault.Newf(fault.NotAllowed, "x-gateway-api-key", "This API key lacks the scope %s", scope)
	default:
		if left = fault.From(err); left.Status() != http.StatusUnauthorized {
			return nil, nil, err
		}
	}
	if closing, err = auth.Former(ctx, sc, d.Maker.KeyID, scope); err != nil {
		return nil, nil, err
	}
	closing.Type, closing.UserID, closing.WorkspaceSlug = identity.KeyType(d.Maker.Type), d.Maker.User, d.Maker.Slug
	return closing, left, nil
}

// Run takes a request through the walk on behalf of somebody. Its answer is cut
// off when broken is true; a panic does that too, and ends nothing else. The
// request brings no credential of the gateway.
func (m *Mux) Run(w http.ResponseWriter, req *http.Request, behalf *Behalf) (broken bool) {
	rt, id := m.find(req.Method, req.URL.EscapedPath())
	if rt == nil {
		NotFound(w)
		return false
	}
	defer func() {
		v := recover()
		if broken = v != nil; broken && v != http.ErrAbortHandler {
			// Nobody above catches it, as a server does for a client's request.
			slog.Error("request panicked", "panic", fmt.Sprintf("%T", v), "stack", string(debug.Stack()))
		}
	}()
	m.relay.serveFor(w, req, rt, id, behalf)
	return false
}

// Recorder is a ResponseWriter that keeps an answer of at most Max bytes.
type Recorder struct {
	Max    int
	Status int
	Over   bool // the answer was longer
	header http.Header
	Body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (r *Recorder) Header() http.Header {
	if r.header == nil {
		r.header = make(http.Header)
	}
	return r.header
}

// WriteHeader implements http.ResponseWriter.
func (r *Recorder) WriteHeader(status int) {
	if r.Status == 0 {
		r.Status = status
	}
}

// Write implements io.Writer.
func (r *Recorder) Write(p []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	if r.Over || r.Body.Len()+len(p) > r.Max {
		r.Over = true
		return len(p), nil // what comes is read on, so that it is booked
	}
	return r.Body.Write(p)
}
