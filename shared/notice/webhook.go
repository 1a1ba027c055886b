package notice

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"gateway/shared/fault"
	"gateway/shared/fault/bound"
	"gateway/shared/store"
)

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
	// DisabledReason says why the gateway disabled it; "" when a person did.
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
			bad = append(bad, fault.Detail{Field: at, Message: "is named twice"})
		}
	}
	return bad
}

// Target is a webhook in the form that a delivery needs.
type Target struct {
	Scope   store.Scope // the organisation's, or of one workspace
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
