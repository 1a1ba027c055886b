package notice

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"gateway/shared/fault"
	"gateway/shared/fault/bound"
	"gateway/shared/store"
)

// Types of events.
const (
	BudgetThreshold   = "budget.threshold_reached"
	BudgetExhausted   = "budget.exhausted"
	KeyExpiring       = "api_key.expiring"
	KeyExpired        = "api_key.expired"
	KeyRotationDue    = "api_key.rotation_due"
	KeyRotated        = "api_key.rotated"
	OldSecretExpiring = "api_key.old_secret_expiring"
	InviteSent        = "invite.sent"
	InviteExpiring    = "invite.expiring"
	InviteExpired     = "invite.expired"
	Ping              = "webhook.ping"
)

// Types are the events that a webhook may subscribe to. A ping is sent to the tested webhook
// regardless of its subscriptions.
func Types() []string {
	return []string{
		BudgetThreshold, BudgetExhausted, KeyExpiring, KeyExpired, KeyRotationDue, KeyRotated, OldSecretExpiring,
		InviteSent, InviteExpiring, InviteExpired,
	}
}

// Event is something that happened or is about to. Nothing of it is secret.
type Event struct {
	ID        string            `json:"id"` // ULID
	Type      string            `json:"type"`
	Org       string            `json:"organisation_id"`
	Workspace string            `json:"workspace_id,omitempty"` // "": the organization's own
	At        time.Time         `json:"at"`
	Summary   string            `json:"summary"` // one sentence
	Data      map[string]string `json:"data,omitempty"`
	Audience  Audience          `json:"audience"`
	Webhook   string            `json:"webhook,omitempty"` // the only one that gets it
}

// Audience are the users that an event concerns and who get a mail; the zero value is empty.
type Audience struct {
	Admins   bool     `json:"admins,omitempty"`   // of the organization, owners included
	Managers bool     `json:"managers,omitempty"` // and admins, of the workspace
	Key      string   `json:"key,omitempty"`      // the key; its owner and alert_emails are recipients
	Users    []string `json:"users,omitempty"`    // by id
}

func (a *Audience) empty() bool {
	return !a.Admins && !a.Managers && a.Key == "" && len(a.Users) == 0
}

// Scope is where the event happened.
func (e *Event) Scope() store.Scope { return store.Scope{Org: e.Org, Workspace: e.Workspace} }

// Names are the names of the resources that an event identifies by id; "" if there is none.
type Names struct {
	Workspace string // of Event.Workspace
	Key       string // of Audience.Key
	Subject   string // of the resource that Data identifies by "kind" and "id", such as a policy
}

// members returns the names under the fields of a webhook's data, such as policy_name.
func (n Names) members(e *Event) map[string]string {
	out := map[string]string{}
	for _, one := range [...]struct{ kind, name string }{{e.Data["kind"], n.Subject}, {"workspace", n.Workspace}, {"key", n.Key}} {
		if one.kind != "" && one.name != "" {
			out[one.kind+"_name"] = one.name
		}
	}
	return out
}

// summary is the event's sentence with names in place of ids.
func (e *Event) summary(named Names) string {
	text := e.Summary
	for _, one := range [...]struct{ id, name string }{{e.Workspace, named.Workspace}, {e.Audience.Key, named.Key}, {e.Data["id"], named.Subject}} {
		quoted := `"` + oneLine(one.name) + `"`
		if one.id != "" && one.name != "" && !strings.Contains(text, quoted) {
			text = strings.ReplaceAll(text, one.id, quoted)
		}
	}
	return text
}

// mail is the subject and the text of the event in a mail.
func (e *Event) mail(named Names) (subject, text string) {
	subject = e.summary(named)
	var b strings.Builder
	b.WriteString(subject + "\n\n")
	for _, name := range slices.Sorted(maps.Keys(e.Data)) {
		if e.Data[name] != "" {
			fmt.Fprintf(&b, "%s: %s\n", strings.ReplaceAll(name, "_", " "), oneLine(e.Data[name]))
		}
	}
	for _, line := range [...]struct{ name, value string }{{e.Data["kind"], named.Subject}, {"key", named.Key}, {"workspace", named.Workspace}, {"workspace id", e.Workspace}} {
		if line.value != "" {
			fmt.Fprintf(&b, "%s: %s\n", line.name, oneLine(line.value))
		}
	}
	fmt.Fprintf(&b, "time: %s\n", e.At.UTC().Format(time.RFC3339))
	return subject, b.String()
}

// oneLine replaces control characters, so that a name stays within one line.
func oneLine(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0x2028 || r == 0x2029 || r >= 0x80 && r < 0xa0 {
			return ' '
		}
		return r
	}, s)
}

// queues is how many partitions share the work.
const queues = 4

// queueOf is the partition of waiting work. Its rows sort by when they are due, so that
// nothing is lost however long no worker ran.
func queueOf(n int) store.Partition { return store.System("NOTICES#" + strconv.Itoa(n)) }

// waiting is the row of work that is due at a time.
func waiting(at time.Time, id string) store.Key {
	sum := sha256.Sum256([]byte(id))
	return queueOf(int(sum[0])%queues).Key(fmt.Sprintf("%013d", max(at.UnixMilli(), 0)), id)
}

// NewID makes the id of an event.
func NewID(now time.Time) string {
	return ulid.MustNew(ulid.Timestamp(now), ulid.DefaultEntropy()).String()
}

// Stage is the write that raises an event as part of a change. The event gets its id and
// time.
func Stage(e Event, now time.Time) (store.Action, error) {
	if e.At = now.UTC().Truncate(time.Millisecond); e.ID == "" {
		e.ID = NewID(now)
	}
	e.Summary = oneLine(e.Summary)
	body, err := json.Marshal(&e)
	if err != nil {
		return store.Action{}, fmt.Errorf("notice: encode: %w", err)
	}
	return store.Action{Table: store.Control, Put: &store.Put{Row: store.Row{Key: waiting(e.At, e.ID), Item: store.Item{"event": body}}}}, nil
}

// Raise raises an event that belongs to no change.
func Raise(ctx context.Context, s store.Store, e Event, now time.Time) error {
	a, err := Stage(e, now)
	if err != nil {
		return err
	}
	return s.Table(a.Table).Put(ctx, a.Put.Row)
}

// States of a webhook.
const (
	StatusActive   = "active"
	StatusDisabled = "disabled"
)

// Webhook is the stored form of an address that events are sent to. Its secrets are
// sealed beside it.
type Webhook struct {
	URL         string   `json:"url" min:"1" max:"2048"`
	Description string   `json:"description,omitempty" max:"500"`
	Events      []string `json:"events,omitempty" max:"50" each:"max=64"` // none: all
	// Slot is which of two sealed secrets is the newest; PreviousUntil is when the
	// other stops signing.
	Slot          int        `json:"slot,omitempty"`
	PreviousUntil *time.Time `json:"previous_secret_expires_at,omitempty"`
	// DisabledReason explains why the gateway disabled it; "" when a person did.
	DisabledReason string `json:"disabled_reason,omitempty" max:"255"`
}

// Validate returns the fields that exceed their limits.
func (w *Webhook) Validate() []fault.Detail {
	bad := bound.Check(w)
	for i, t := range w.Events {
		at := "events[" + strconv.Itoa(i) + "]"
		switch {
		case !slices.Contains(Types(), t):
			bad = append(bad, fault.Detail{Field: at, Message: "must be one of " + strings.Join(Types(), ", ")})
		case slices.Index(w.Events, t) < i:
			bad = append(bad, fault.Detail{Field: at, Message: "must not be listed twice"})
		}
	}
	return bad
}

// Target is a webhook in the form that a delivery needs.
type Target struct {
	Scope   store.Scope // the organization's, or of one workspace
	ID      string
	URL     string
	Events  []string
	Active  bool
	Secrets []string // as NewSecret gives them, newest first; opened for a delivery only
}

// takes reports whether a webhook receives an event.
func (t *Target) takes(e *Event) bool {
	switch {
	case e.Webhook != "":
		return t.ID == e.Webhook
	case !t.Active || t.Scope.Org != e.Org || t.Scope.Workspace != "" && t.Scope.Workspace != e.Workspace:
		return false
	}
	return len(t.Events) == 0 || slices.Contains(t.Events, e.Type)
}

// secretPrefix begins the secrets of webhooks; receivers' libraries expect it.
const secretPrefix = "whsec_"

// NewSecret makes a secret of 32 bytes that signs deliveries.
func NewSecret() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails (crypto/rand)
	return secretPrefix + base64.StdEncoding.EncodeToString(b[:])
}

// Headers of a delivery, as Standard Webhooks names them.
const (
	headerID        = "Webhook-Id"
	headerTimestamp = "Webhook-Timestamp"
	headerSignature = "Webhook-Signature"
)

// sign puts the headers of a delivery into h: its id, the time of the attempt, and one
// signature by each valid secret. The HMAC-SHA256 is over id.timestamp.body.
func sign(h http.Header, id string, at time.Time, body []byte, secrets []string) {
	stamp := strconv.FormatInt(at.Unix(), 10)
	var signatures []string
	for _, s := range secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(s, secretPrefix))
		if err != nil {
			continue // it is not a secret of the gateway's form
		}
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + stamp + "."))
		mac.Write(body)
		signatures = append(signatures, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	h.Set(headerID, id)
	h.Set(headerTimestamp, stamp)
	h.Set(headerSignature, strings.Join(signatures, " "))
}
