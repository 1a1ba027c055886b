package audit

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/oklog/ulid/v2"

	"gateway/shared/resource"
	"gateway/shared/store"
)

// Topic is the outbox topic of audit records.
const Topic = "audit"

// Actions of an Entry.
const (
	Create    = "create"
	Update    = "update"
	Delete    = "delete"
	Publish   = "publish"
	Export    = "export"
	Rotate    = "rotate"
	Manage    = "manage"
	Duplicate = "duplicate"
	Invite    = "invite"
	Resend    = "resend"
	Accept    = "accept"
	Login     = "login"
	Logout    = "logout"
	Reset     = "reset"
	Start     = "start"
	Cancel    = "cancel"
	Test      = "test"
)

// Entry is one audit record. Bodies, queries and headers are JSON strings, made
// with MaskBody, MaskQuery and MaskHeaders.
type Entry struct {
	ID             string    `json:"id"`        // ULID; given by Append and Record
	Timestamp      time.Time `json:"timestamp"` // UTC; given by Append and Record when zero
	Method         string    `json:"method"`    // empty for events without a call
	URI            string    `json:"uri"`       // path as called, without the query, credentials masked
	RequestID      string    `json:"request_id"`
	RequestBody    string    `json:"request_body"`
	QueryParams    string    `json:"query_params"`
	RequestHeaders string    `json:"request_headers"`
	UserID         string    `json:"user_id"`   // acting user, or id of the API key
	UserType       string    `json:"user_type"` // user or api_key
	APIKeyID       string    `json:"api_key_id,omitempty" doc:"Key of the user, if the call was made with one."`
	OrganisationID string    `json:"organisation_id"`
	WorkspaceID    string    `json:"workspace_id"`
	StatusCode     int       `json:"response_status_code"`
	ResourceType   string    `json:"resource_type"` // scope family, such as configs
	Action         string    `json:"action"`
	ResourceID     string    `json:"resource_id"`
	ClientIP       string    `json:"client_ip"`
	Country        string    `json:"country"`
	// Details are the special fields of events: rotation, thresholds, failed
	// tokens. Values must be masked by whoever makes them.
	Details map[string]string `json:"details,omitempty"`
}

// Describe notes the address of the request, its headers and who sent it, with secrets
// masked. The caller, who has read the body, adds it.
func (e *Entry) Describe(r *http.Request) {
	e.Method, e.URI = r.Method, r.URL.EscapedPath()
	e.QueryParams, e.RequestHeaders = MaskQuery(r.URL.Query()), MaskHeaders(r.Header)
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		host = r.RemoteAddr
	}
	e.ClientIP = host
}

// complete fills the fields that the maker of an entry left open, and masks credentials in
// those that come from the path of the request.
func (e *Entry) complete(now time.Time, org string) {
	e.URI, e.ResourceID = MaskPath(e.URI), maskSegment(e.ResourceID)
	if e.Timestamp.IsZero() {
		e.Timestamp = now
	}
	e.Timestamp = e.Timestamp.UTC().Truncate(time.Millisecond)
	if e.ID == "" {
		// The id carries the record's own time, which is the order of the log.
		e.ID = ulid.MustNew(ulid.Timestamp(e.Timestamp), ulid.DefaultEntropy()).String()
	}
	e.OrganisationID = org
}

// Append puts the record into the outbox as part of a change.
func Append(tx *resource.Tx, e Entry) error {
	e.complete(tx.Now(), tx.Scope().Org)
	body, err := json.Marshal(&message{Entry: e})
	if err != nil {
		return fmt.Errorf("audit: encode: %w", err)
	}
	tx.Outbox(Topic, body)
	return nil
}

// partition is where the records of one month are.
func partition(org string, at time.Time) store.Partition {
	return store.Scope{Org: org}.Partition("AUDIT", at.UTC().Format("2006-01"))
}

// row is the entry as stored; filters read attributes, not the body.
func (e *Entry) row() (store.Row, error) {
	body, err := json.Marshal(e)
	if err != nil {
		return store.Row{}, fmt.Errorf("audit: encode: %w", err)
	}
	return store.Row{Key: partition(e.OrganisationID, e.Timestamp).Key(e.ID), Item: store.Item{"entry": body}}, nil
}

func decodeEntry(body []byte) (Entry, error) {
	var e Entry
	if err := json.Unmarshal(body, &e); err != nil {
		return Entry{}, fmt.Errorf("audit: decode: %w", err)
	}
	return e, nil
}

// User types of an Entry.
const (
	UserTypeUser   = "user"
	UserTypeAPIKey = "api_key"
)
