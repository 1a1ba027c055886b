// Package replay stores the first response of a call, so that the same call again returns it
// instead of acting twice. A response is encrypted under a key that is derived from the
// caller's credential, which is stored nowhere: only the same caller can read it, and no
// function needs a key of a vault for it.
package replay

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"gateway/shared/store"
)

// Lifetimes of responses.
const (
	// Window is how long a call without an idempotency key counts as repeated.
	Window = time.Minute
	// KeyedWindow is the same for calls with an idempotency key.
	KeyedWindow = 24 * time.Hour
	// maxRun is how long a call may run. One that takes longer has died.
	maxRun = 30 * time.Second
	// MaxResponse is the maximum size of a stored response, in bytes.
	MaxResponse = 128 << 10
)

// Call identifies a call and its caller.
type Call struct {
	Org        string
	Credential string // the caller's own, as it was sent
	Method     string
	Target     string // path and query
	Key        string // the idempotency key; empty without one
	Body       []byte
}

// name returns the name of the row. It is derived from the credential, so that callers share
// no rows.
func (c *Call) name() string {
	h := sha256.New()
	for _, part := range []string{c.Credential, c.Method, c.Target, c.Key} {
		fmt.Fprintf(h, "%d:%s", len(part), part)
	}
	if c.Key == "" {
		h.Write(c.Body)
	}
	return hex.EncodeToString(h.Sum(nil))
}

func (c *Call) bodyHash() string {
	sum := sha256.Sum256(c.Body)
	return hex.EncodeToString(sum[:])
}

func (c *Call) rowKey() store.Key {
	return store.Scope{Org: c.Org}.Partition().Key("REPLAY", c.name())
}

func (c *Call) window() time.Duration {
	if c.Key != "" {
		return KeyedWindow
	}
	return Window
}

// Record is a resource that a call created or changed, with the revision after it.
type Record struct {
	Kind, Workspace, ID string
	Rev                 int64
}

// Response is a stored response. One without a status was lost: the call made its change, and
// failed afterwards.
type Response struct {
	Status      int         `json:"status"`
	ContentType string      `json:"content_type"`
	Header      http.Header `json:"header,omitempty"`
	Body        []byte      `json:"body"`
	Records     []Record    `json:"records,omitempty"`
}

// Errors of Begin.
var (
	// ErrOtherBody is returned for an idempotency key that was used with another body.
	ErrOtherBody = errors.New("replay: the key was used with another body")
	// ErrRunning is returned if the first call has not ended yet.
	ErrRunning = errors.New("replay: the first call is running")
)

// Attributes of a row.
var (
	attrBy   = store.At("by")   // the run
	attrDone = store.At("done") // whether it has ended
)

// Calls stores responses of calls. The zero value of Now is not usable.
type Calls struct {
	Table store.Table // control
	Now   func() time.Time
}

// Run is a call that is executed.
type Run struct {
	calls *Calls
	call  Call
	id    string
}

// Begin returns the response of the first call, or a Run if this is the first one: exactly one
// of both without an error. run is a unique id.
func (s *Calls) Begin(ctx context.Context, c Call, run string) (*Response, *Run, error) {
	now := s.Now()
	row := store.Row{Key: c.rowKey(), Expires: now.Add(c.window() + maxRun), Item: store.Item{attrBy.Attr: run, "body": c.bodyHash(), "at": now.UnixMilli()}}
	err := s.Table.Put(ctx, row, store.IfAbsent())
	for range 3 {
		if err == nil {
			return nil, &Run{s, c, run}, nil
		}
		failed, refused := store.AsCondition(err)
		if !refused {
			return nil, nil, err
		}
		was := failed.Current
		age := now.Sub(time.UnixMilli(was.Int("at")))
		switch done := was.Bool(attrDone.Attr); {
		case was == nil:
			err = s.Table.Put(ctx, row, store.IfAbsent())
		case done && age > c.window() || !done && age > maxRun:
			err = s.Table.Put(ctx, row, store.IfEqual(attrBy, was.String(attrBy.Attr)))
		case was.String("body") != c.bodyHash():
			return nil, nil, ErrOtherBody
		case !done:
			return nil, nil, ErrRunning
		default:
			a, err := open(&c, was.Bytes("answer"))
			return a, nil, err
		}
	}
	return nil, nil, ErrRunning
}

// Replace begins a call again although it has a response that no longer counts.
func (s *Calls) Replace(ctx context.Context, c Call, run string) (*Run, error) {
	if err := s.Table.Delete(ctx, c.rowKey()); err != nil {
		return nil, err
	}
	_, r, err := s.Begin(ctx, c, run)
	if err == nil && r == nil {
		err = ErrRunning
	}
	return r, err
}

// End stores the response of the run.
func (r *Run) End(ctx context.Context, a Response) error {
	sealed, err := seal(&r.call, &a)
	if err != nil {
		return err
	}
	_, _, err = r.calls.Table.Update(ctx, store.Update{
		Key: r.call.rowKey(), If: []store.Cond{store.IfEqual(attrBy, r.id)},
		Set: []store.Assign{{Path: store.At("answer"), Value: sealed}, {Path: attrDone, Value: true}, {Path: store.At("at"), Value: r.calls.Now().UnixMilli()}},
	})
	return err
}

// Discard removes the run: the call had no effect and may be made again.
func (r *Run) Discard(ctx context.Context) error {
	err := r.calls.Table.Delete(ctx, r.call.rowKey(), store.IfEqual(attrBy, r.id))
	if _, refused := store.AsCondition(err); refused {
		return nil
	}
	return err
}

// aead returns the cipher of a caller's answers.
func aead(c *Call) (cipher.AEAD, error) {
	key, err := hkdf.Key(sha256.New, []byte(c.Credential), nil, "gateway replayed answer", 32)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

func seal(c *Call, a *Response) ([]byte, error) {
	raw, err := json.Marshal(a)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	box, err := aead(c)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	return box.Seal(nil, nil, raw, []byte(c.name())), nil
}

func open(c *Call, sealed []byte) (*Response, error) {
	box, err := aead(c)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	raw, err := box.Open(nil, nil, sealed, []byte(c.name()))
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	var a Response
	if err := json.Unmarshal(raw, &a); err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	return &a, nil
}
