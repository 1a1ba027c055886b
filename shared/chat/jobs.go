package chat

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"time"

	"gateway/shared/fault"
)

// Jobs carries what a provider keeps or runs for longer than a request - files,
// batches and fine-tuning jobs - between OpenAI's shape and the provider's own.
// One operation may take several calls. Implementations are stateless and safe
// for concurrent use. All errors are *fault.Fault.
type Jobs interface {
	// Name is what the catalogue's rows refer to, e.g. anthropic.jobs.
	Name() string
	// Do performs the operation; its response has OpenAI's shape.
	Do(ctx context.Context, j *Job) (*JobAnswer, error)
	// Usage is what the rows of the ended batch j.ID used, with one entry for each model.
	Usage(ctx context.Context, j *Job) ([]Meter, error)
	// DecodeError reads a provider's error answer, as ErrorReader does.
	DecodeError(status int, h http.Header, body []byte) *fault.Fault
}

// Job is one operation that is asked for.
type Job struct {
	Operation string     // files_upload, batches_create ...
	ID        string     // of the thing, as the client names it; "" for a collection
	Query     url.Values // of the client
	Body      []byte     // JSON that the route has checked; nil when there is none
	Upload    *Upload    // of files_upload
	Model     string     // as the provider takes it; "" when the request names none

	Request      string // id of the request; a second call with it makes nothing twice
	Now          time.Time
	ProviderName string
	Strict       bool
	Loss         *Loss

	Field  func(name string) string // of the target's credential; never a secret
	Header func(name string) string // of the client's request
	// Talk gives what rows of a batch need: the conversation between the dialect of the rows
	// and a model of the target. It refuses models that the caller may not use.
	Talk func(client, model string) (*Talk, error)
	Room JobRoom
	// Call sends one request to the provider. Statuses other than 2xx are errors,
	// as DecodeError reads them.
	Call func(ctx context.Context, c *JobCall) (*http.Response, error)
}

// EmbeddingRows is what Job.Talk is asked for rows that ask for embeddings.
const EmbeddingRows = "openai.embeddings"

// Talk is how a client's dialect reaches a model.
type Talk struct {
	Client     Client
	Provider   Provider
	Translator Translator // of rows that are no conversations, in place of both; nil where such rows need none
	Model      string     // as the provider takes it
	Traits     *Traits
	// Adapt changes a body that the provider's dialect wrote where the host differs from others
	// that speak it; dropped are the fields that were omitted.
	Adapt func(body []byte) (adapted []byte, dropped []string)
}

// Wire returns the name of what the provider speaks.
func (t *Talk) Wire() string {
	switch {
	case t.Translator != nil:
		return t.Translator.Name()
	case t.Provider == nil:
		return EmbeddingRows
	}
	return t.Provider.Name()
}

// Spoken reports whether the provider takes the client's own shape.
func (t *Talk) Spoken() bool {
	return t.Translator == nil && (t.Provider == nil || t.Provider.Name() == t.Client.Name())
}

// JobCall is one request to the provider.
type JobCall struct {
	Method    string
	Operation string // whose route gives the address, or
	Object    string // bucket/key of an object in the store of the provider's cloud
	ID        string // in the address of the operation
	Below     string // fixed text behind that address
	URL       string // instead: an address that the provider gave; the credential is not sent there
	Query     string // escaped
	Header    http.Header
	Body      []byte                        // or
	Open      func() (io.ReadCloser, error) // a body of Length bytes; may be called again
	Length    int64
}

// JobAnswer is the response to the client.
type JobAnswer struct {
	Type   string // media type
	Body   io.ReadCloser
	Length int64 // bytes; -1: not known
}

// JobJSON returns a response of JSON.
func JobJSON(b []byte) *JobAnswer {
	return &JobAnswer{Type: "application/json", Body: io.NopCloser(bytes.NewReader(b)), Length: int64(len(b))}
}

// Upload is a file that the client sends.
type Upload struct {
	Name string
	File io.Reader
	// Fields gives the form's fields. Fields that follow the file are known only when the
	// file has been read; the rest of it is skipped.
	Fields func() (map[string]string, error)
}

// JobRoom keeps for a workspace what its provider has no place for.
type JobRoom interface {
	// Save keeps a file, sealed; purpose is asked for when its bytes have been read.
	Save(ctx context.Context, name string, src io.Reader, purpose func() (string, error)) (*HeldFile, error)
	// File finds a file; nil when the workspace has none with the id.
	File(ctx context.Context, id string) (*HeldFile, error)
	// Open reads a file's bytes.
	Open(ctx context.Context, f *HeldFile) io.ReadCloser
	// Remove deletes a file; false when there is none.
	Remove(ctx context.Context, id string) (bool, error)
	// Files lists files, the newest first, from behind the id after.
	Files(ctx context.Context, purpose, after string, limit int) (page []HeldFile, more bool, err error)
	// Note keeps what must be known about a thing beyond what its provider tells; Noted gives
	// the notes by id.
	Note(ctx context.Context, id string, note []byte) error
	Noted(ctx context.Context, ids ...string) (map[string][]byte, error)
}

// HeldFile is a file that the gateway keeps.
type HeldFile struct {
	ID, Name, Purpose string
	Bytes             int64
	Created, Expires  int64 // Unix seconds
}
