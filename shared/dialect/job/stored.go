package job

import (
	"context"
	"strconv"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
)

// storedFiles serves the operations on files stored for the workspace; done is false if the id
// is that of another file.
func storedFiles(ctx context.Context, j *chat.Job, purposes string) (a *chat.JobResponse, done bool, err error) {
	switch j.Operation {
	case "files_upload":
		a, err = saveStored(ctx, j, purposes)
		return a, true, err
	case "files_list":
		a, err = listStored(ctx, j)
		return a, true, err
	}
	f, err := j.Files.File(ctx, j.ID)
	if err != nil || f == nil {
		return nil, err != nil, err
	}
	switch j.Operation {
	case "files_get":
		return chat.JobJSON(appendFile(nil, f)), true, nil
	case "files_content":
		return &chat.JobResponse{Type: "application/jsonl", Body: j.Files.Open(ctx, f), Length: f.Bytes}, true, nil
	case "files_delete":
		if _, err := j.Files.Remove(ctx, j.ID); err != nil {
			return nil, true, err
		}
		o := upstream.Begin(nil)
		o.Str("id", j.ID)
		o.Str("object", "file")
		o.Bool("deleted", true)
		o.Close('}')
		return chat.JobJSON(o.B), true, nil
	}
	return nil, false, nil
}

// saveStored stores an upload. purposes are the allowed ones: "batch" or "batch fine-tune".
func saveStored(ctx context.Context, j *chat.Job, purposes string) (*chat.JobResponse, error) {
	purpose := func() (string, error) {
		fields, err := j.Upload.Fields()
		if err != nil {
			return "", err
		}
		for name := range fields {
			if name != "purpose" {
				j.Loss.Add(name, upstream.UnsupportedField)
			}
		}
		p := fields["purpose"]
		if p == "batch" || p == "fine-tune" && purposes != "batch" {
			return p, j.Loss.Err()
		}
		if purposes == "batch" {
			return "", fault.Invalid("purpose", "purpose must be batch for %s", j.ProviderName)
		}
		return "", fault.Invalid("purpose", "purpose must be batch or fine-tune for %s", j.ProviderName)
	}
	f, err := j.Files.Save(ctx, j.Upload.Name, j.Upload.File, purpose)
	if err != nil {
		return nil, err
	}
	return chat.JobJSON(appendFile(nil, f)), nil
}

// Bounds of the pages of lists.
const (
	defaultPage = 20
	maxPage     = 100
)

// limitOf reads the length of a page.
func limitOf(j *chat.Job, standard, most int) (int, error) {
	s := j.Query.Get("limit")
	if s == "" {
		return standard, nil
	}
	n, err := strconv.Atoi(s)
	if err != nil || n < 1 || n > most {
		return 0, fault.Invalid("limit", "limit must be a whole number from 1 to %d", most)
	}
	return n, nil
}

func listStored(ctx context.Context, j *chat.Job) (*chat.JobResponse, error) {
	limit, err := limitOf(j, 1000, 10_000)
	if err != nil {
		return nil, err
	}
	page, more, err := j.Files.Files(ctx, j.Query.Get("purpose"), j.Query.Get("after"), limit)
	if err != nil {
		return nil, err
	}
	ids, entries := make([]string, len(page)), make([][]byte, len(page))
	for i := range page {
		ids[i], entries[i] = page[i].ID, appendFile(nil, &page[i])
	}
	return chat.JobJSON(appendList(nil, ids, entries, more)), nil
}

func appendFile(dst []byte, f *chat.StoredFile) []byte {
	o := upstream.Begin(dst)
	o.Str("id", f.ID)
	o.Str("object", "file")
	o.Int("bytes", f.Bytes)
	o.Int("created_at", f.Created)
	if f.Expires > 0 {
		o.Int("expires_at", f.Expires)
	}
	o.Str("filename", f.Name)
	o.Str("purpose", f.Purpose)
	o.Str("status", "processed")
	o.Raw("status_details", []byte("null"))
	o.Close('}')
	return o.B
}

// inputFile finds the file of a new batch or job.
func inputFile(ctx context.Context, j *chat.Job, field, id, purpose string) (*chat.StoredFile, error) {
	f, err := j.Files.File(ctx, id)
	switch {
	case err != nil:
		return nil, err
	case f == nil:
		return nil, fault.Newf(fault.NotFound, field, "There is no file with the id %q: upload it to /files with this provider", clip(id))
	case f.Purpose != purpose:
		return nil, fault.Invalid(field, "%s must be a file with the purpose %s", field, purpose)
	}
	return f, nil
}

func clip(s string) string {
	if len(s) > 128 {
		return s[:128] + "..."
	}
	return s
}

// ServeStored serves the operations on files stored for the job's workspace, which belong to no
// provider. done is false if there is no file with the id, and for other operations.
func ServeStored(ctx context.Context, j *chat.Job) (a *chat.JobResponse, done bool, err error) {
	return storedFiles(ctx, j, "batch")
}

// Limit reads the length of a page of a list from the query.
func Limit(j *chat.Job) (int, error) { return limitOf(j, defaultPage, maxPage) }

// AppendList writes a page of a list: entries are objects, ids are theirs.
func AppendList(dst []byte, ids []string, entries [][]byte, more bool) []byte {
	return appendList(dst, ids, entries, more)
}
