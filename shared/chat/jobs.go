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

// Jobs translates long-lived objects of a provider - files, batches and fine-tuning jobs -
// between OpenAI's format and the provider's. One operation may take several calls.
// Implementations are stateless and safe for concurrent use. All errors are *fault.Fault.
type Jobs interface {
	// Name returns the name that the catalog refers to, such as anthropic.jobs.
	Name() string
	// Do performs the operation; its response has OpenAI's format.
	Do(ctx context.Context, j *Job) (*JobAnswer, error)
	// Usage returns the usage of the rows of the ended batch j.ID, with one entry per model.
	Usage(ctx context.Context, j *Job) ([]Meter, error)
	// DecodeError decodes a provider's error response, like ErrorReader.
	DecodeError(status int, h http.Header, body []byte) *fault.Fault
}

// Job is one requested operation.
type Job struct {
	Operation string     // files_upload, batches_create ...
	ID        string     // of the object, as the client names it; empty for a collection
	Query     url.Values // of the client
	Body      []byte     // JSON that the route has validated; may be nil
	Upload    *Upload    // of files_upload
	Model     string     // as the provider names it; empty if the request names none

	Request      string // id of the request, which makes a second call idempotent
	Now          time.Time
	ProviderName string
	Strict       bool
	Loss         *Loss

	Field  func(name string) string // of the target's credential; never a secret
	Header func(name string) string // of the client's request
	// Talk returns the conversation between the dialect of batch rows and a model of the
	// target. It rejects models that the caller may not use.
	Talk  func(client, model string) (*Talk, error)
	Files JobFiles
	// Tier returns the size that a prompt of so many tokens exceeds and by which its price in a
	// batch is determined; 0: prompts of all sizes have the same.
	Tier func(model string, prompt int64) int64
	// Call sends one request to the provider. Statuses other than 2xx are errors, as
	// DecodeError decodes them.
	Call func(ctx context.Context, c *JobCall) (*http.Response, error)
}

// EmbeddingRows is the dialect that Job.Talk accepts for rows with embeddings.
const EmbeddingRows = "openai.embeddings"

// Talk connects a client's dialect with a model.
type Talk struct {
	Client     Client
	Provider   Provider
	Translator Translator // for rows that are not conversations, in place of both; nil if such rows need none
	Model      string     // as the provider names it
	Traits     *Traits
	// Adapt changes a body of the provider's dialect if the host differs from others with that
	// dialect; dropped are the omitted fields.
	Adapt func(body []byte) (adapted []byte, dropped []string)
}

// Wire returns the name of the provider's format.
func (t *Talk) Wire() string {
	switch {
	case t.Translator != nil:
		return t.Translator.Name()
	case t.Provider == nil:
		return EmbeddingRows
	}
	return t.Provider.Name()
}

// Native reports whether the provider uses the client's format.
func (t *Talk) Native() bool {
	return t.Translator == nil && (t.Provider == nil || t.Provider.Name() == t.Client.Name())
}

// JobCall is one request to the provider.
type JobCall struct {
	Method    string
	Operation string // with the route that determines the address, or
	Object    string // bucket/key of an object in the provider's cloud storage
	ID        string // in the address of the operation
	Below     string // fixed path suffix
	URL       string // alternatively an address from the provider; the credential is not sent there
	Query     string // escaped
	Header    http.Header
	Body      []byte                        // or
	Open      func() (io.ReadCloser, error) // a body of Length bytes; may be called repeatedly
	Length    int64
}

// JobAnswer is the response to the client.
type JobAnswer struct {
	Type   string // media type
	Body   io.ReadCloser
	Length int64 // bytes; -1 if unknown
}

// JobJSON returns a JSON response.
func JobJSON(b []byte) *JobAnswer {
	return &JobAnswer{Type: "application/json", Body: io.NopCloser(bytes.NewReader(b)), Length: int64(len(b))}
}

// Upload is a file from the client.
type Upload struct {
	Name string
	File io.Reader
	// Fields returns the form's fields. Fields that follow the file are known only after the
	// file was read; the rest of it is skipped.
	Fields func() (map[string]string, error)
}

// JobFiles stores for a workspace what its provider cannot store.
type JobFiles interface {
	// Save stores a file, sealed; purpose is called after its bytes were read.
	Save(ctx context.Context, name string, src io.Reader, purpose func() (string, error)) (*HeldFile, error)
	// File returns a file, or nil if the workspace has none with the id.
	File(ctx context.Context, id string) (*HeldFile, error)
	// Open returns a file's bytes.
	Open(ctx context.Context, f *HeldFile) io.ReadCloser
	// Remove deletes a file. It returns false if there is none.
	Remove(ctx context.Context, id string) (bool, error)
	// Files lists files, the newest first, starting after the id after.
	Files(ctx context.Context, purpose, after string, limit int) (page []HeldFile, more bool, err error)
	// Note stores data about an object beyond what its provider returns; Noted returns the
	// notes by id.
	Note(ctx context.Context, id string, note []byte) error
	Noted(ctx context.Context, ids ...string) (map[string][]byte, error)
}

// HeldFile is a file that the gateway stores.
type HeldFile struct {
	ID, Name, Purpose string
	Bytes             int64
	Created, Expires  int64 // Unix seconds
}
