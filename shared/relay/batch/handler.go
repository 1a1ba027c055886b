package batch

import (
	"context"
	"io"

	"gateway/shared/chat"
	"gateway/shared/dialect/job"
	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/relay/ownership"
	"gateway/shared/store"
)

// Handler serves the routes of batches to a workspace. It is created for one request.
type Handler struct {
	Batches *Batches
	Files   FileStore
	Scope   store.Scope
	Wake    func(*Batch) // sends the message of the batch's next step
}

// Create creates the defined batch, unless try returns an error for the route of its rows.
func (d *Handler) Create(ctx context.Context, def *Definition, try func(*Definition) error) (*chat.JobResponse, error) {
	f, err := d.Files.File(ctx, def.Input)
	if err != nil {
		return nil, err
	}
	if f == nil {
		return nil, fault.Newf(fault.NotFound, "input_file_id", "There is no file with the id %q: upload it to /files with x-gateway-provider: gateway", fault.Clip(def.Input, 300))
	}
	if f.Purpose != "batch" {
		return nil, fault.Invalid("input_file_id", "input_file_id must be a file with the purpose batch")
	}
	if err := try(def); err != nil {
		return nil, err
	}
	b, err := d.Batches.Create(ctx, d.Scope, *def)
	if err != nil {
		return nil, err
	}
	d.Wake(b)
	return chat.JobJSON(b.Append(nil, false)), nil
}

// List returns a page of the workspace's batches.
func (d *Handler) List(ctx context.Context, j *chat.Job) (*chat.JobResponse, error) {
	limit, err := job.Limit(j)
	if err != nil {
		return nil, err
	}
	after := j.Query.Get("after")
	if after != "" {
		b, err := d.Batches.Get(ctx, d.Scope, after)
		if err != nil {
			return nil, err
		}
		if b == nil {
			return nil, fault.Invalid("after", "after must be the id of a batch of the list")
		}
	}
	page, more, err := d.Batches.List(ctx, d.Scope, after, limit)
	if err != nil {
		return nil, err
	}
	ids, entries := make([]string, len(page)), make([][]byte, len(page))
	for i, b := range page {
		ids[i], entries[i] = b.ID, b.Append(nil, false)
	}
	return chat.JobJSON(job.AppendList(nil, ids, entries, more)), nil
}

// Act reads or cancels a batch, or returns its output rows.
func (d *Handler) Act(ctx context.Context, j *chat.Job) (*chat.JobResponse, error) {
	op := provider.Operation(j.Operation)
	b, err := d.Batches.Get(ctx, d.Scope, j.ID)
	if err == nil && b != nil && op == provider.BatchesCancel {
		if b, err = d.Batches.Cancel(ctx, d.Scope, j.ID); err == nil && b != nil {
			d.Wake(b)
		}
	}
	switch {
	case err != nil:
		return nil, err
	case b == nil:
		return nil, ownership.Missing("id", j.ID)
	case op == provider.BatchesOutput:
		return d.output(ctx, b)
	}
	details := false
	switch v := j.Query.Get("include_provider_details"); v {
	case "", "false":
	case "true":
		details = op == provider.BatchesGet
	default:
		return nil, fault.Invalid("include_provider_details", "include_provider_details must be true or false")
	}
	return chat.JobJSON(b.Append(nil, details)), nil
}

// output streams the rows that succeeded, then those that failed.
func (d *Handler) output(ctx context.Context, b *Batch) (*chat.JobResponse, error) {
	var parts []io.Reader
	var closers []io.Closer
	var length int64
	for _, id := range [...]string{b.Output, b.Errors} {
		if id == "" {
			continue
		}
		f, err := d.Files.File(ctx, id)
		if err != nil {
			return nil, err
		}
		if f == nil {
			continue // deleted by its owner
		}
		src := d.Files.Open(ctx, f)
		parts, closers, length = append(parts, src), append(closers, src), length+f.Bytes
	}
	if len(parts) == 0 {
		if errs := b.ErrorsObject(); errs != nil {
			return chat.JobJSON(errs), nil
		}
		return nil, fault.Newf(fault.NotFound, "id", "The batch %q is %s and has no output", fault.Clip(b.ID, 300), b.Status)
	}
	return &chat.JobResponse{Type: "application/jsonl", Body: rowsOfOutput{io.MultiReader(parts...), closers}, Length: length}, nil
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

// FileStore stores a workspace's files that the gateway manages.
type FileStore interface {
	chat.JobFiles
	// OpenAt reads a file's bytes from an offset.
	OpenAt(ctx context.Context, f *chat.StoredFile, offset int64) io.ReadCloser
	// SaveAs stores a file under an id, which may be that of an interrupted try.
	SaveAs(ctx context.Context, id, name, purpose string, src io.Reader) (*chat.StoredFile, error)
}
