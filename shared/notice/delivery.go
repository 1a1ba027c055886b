package notice

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"net/textproto"
	"strings"
	"time"
	"unicode"

	"github.com/oklog/ulid/v2"

	"gateway/shared/fault"
	"gateway/shared/store"
)

// States of a delivery.
const (
	Pending   = "pending"
	Delivered = "delivered"
	Failed    = "failed" // no further attempts
)

// Mails takes the place of a webhook's id in deliveries by mail, which belong to the
// organization.
const Mails = "mail"

// Retention is how long deliveries can be read.
const Retention = 30 * 24 * time.Hour

// maxAttempts is how many attempts a delivery remembers: the newest ones.
const maxAttempts = 30

// Delivery is an event on its way to one receiver.
type Delivery struct {
	ID        string          `json:"id"` // ULID of the event's time
	To        string          `json:"to"` // id of the webhook, or Mails
	Type      string          `json:"type"`
	EventID   string          `json:"event_id"`
	Workspace string          `json:"workspace_id,omitempty"` // of the event
	Created   time.Time       `json:"created_at"`
	Status    string          `json:"status"`
	Payload   json.RawMessage `json:"payload,omitempty"` // the body for a webhook
	Address   string          `json:"address,omitempty"` // the address for a mail
	Subject   string          `json:"subject,omitempty"`
	Text      string          `json:"text,omitempty"`
	Tries     int             `json:"tries"` // since it was made, or since it was sent again
	Total     int             `json:"total"` // of all attempts
	Attempts  []Attempt       `json:"attempts,omitempty"`
	NextAt    *time.Time      `json:"next_attempt_at,omitempty"`
	scope     store.Scope
	turn      int64 // counts the writes of its row
	expires   time.Time
}

// Attempt is one attempt. Of the receiver's answer it has only the status.
type Attempt struct {
	At     time.Time `json:"at"`
	Status int       `json:"status,omitempty"` // of HTTP; 0: no answer
	Error  string    `json:"error,omitempty"`
	Millis int64     `json:"latency_ms"`
}

// payload is the body of a webhook's delivery, with the names of the resources beside their
// ids.
func payload(e *Event, named Names) (json.RawMessage, error) {
	data := map[string]string{"organisation_id": e.Org, "summary": e.summary(named)}
	if e.Workspace != "" {
		data["workspace_id"] = e.Workspace
	}
	maps.Copy(data, named.members(e))
	maps.Copy(data, e.Data)
	return json.Marshal(map[string]any{"id": e.ID, "type": e.Type, "timestamp": e.At.UTC().Format(time.RFC3339Nano), "data": data})
}

// deliveryID is the id of an event's delivery to a receiver. It is the same for every
// worker.
func deliveryID(e *Event, to string) string {
	sum := sha256.Sum256([]byte(e.ID + "\x00" + to))
	var id ulid.ULID
	_ = id.SetTime(ulid.Timestamp(e.At)) // never fails for a time of this age
	_ = id.SetEntropy(sum[:10])
	return id.String()
}

func deliveryKey(sc store.Scope, to, id string) store.Key {
	return sc.Partition("NOTICE", to).Key(id)
}

// row is the delivery as stored by its next write.
func (d *Delivery) row() (store.Row, error) {
	body, err := json.Marshal(d)
	if err != nil {
		return store.Row{}, fmt.Errorf("notice: encode: %w", err)
	}
	return store.Row{
		Key: deliveryKey(d.scope, d.To, d.ID), Expires: d.expires,
		Item: store.Item{"body": body, "turn": d.turn + 1, "until": d.expires.Unix()},
	}, nil
}

func decode(sc store.Scope, it store.Item) (*Delivery, error) {
	d := &Delivery{scope: sc, turn: it.Int("turn"), expires: time.Unix(it.Int("until"), 0)}
	if err := json.Unmarshal(it.Bytes("body"), d); err != nil {
		return nil, fmt.Errorf("notice: stored delivery: %w", err)
	}
	return d, nil
}

// wait is the row by which workers find the delivery.
func (d *Delivery) wait(at time.Time) store.Row {
	return store.Row{Key: waiting(at, d.ID), Item: store.Item{"org": d.scope.Org, "ws": d.scope.Workspace, "to": d.To, "id": d.ID}}
}

// Log reads deliveries.
type Log struct {
	store store.Store
	now   func() time.Time
}

// NewLog makes a Log.
func NewLog(s store.Store, now func() time.Time) *Log { return &Log{s, now} }

// Get reads a delivery of a webhook, or of Mails, that lives in a scope.
func (l *Log) Get(ctx context.Context, sc store.Scope, to, id string) (*Delivery, bool, error) {
	if _, err := ulid.ParseStrict(id); err != nil {
		return nil, false, nil
	}
	it, ok, err := l.store.Table(store.Control).Get(ctx, deliveryKey(sc, to, id), true)
	if err != nil || !ok {
		return nil, false, unavailable(err)
	}
	d, err := decode(sc, it)
	return d, err == nil, err
}

// List returns up to limit deliveries, newest first, after the delivery with the id after:
// those with a status, or all for "". next is the value of after for the next page; "" at the
// end.
func (l *Log) List(ctx context.Context, sc store.Scope, to, status, after string, limit int) (page []*Delivery, next string, err error) {
	q := store.Query{Partition: sc.Partition("NOTICE", to), Reverse: true, After: after, Limit: limit + 1}
	for row, err := range store.Rows(ctx, l.store.Table(store.Control), q) {
		if err != nil {
			return nil, "", unavailable(err)
		}
		d, err := decode(sc, row.Item)
		if err != nil {
			return nil, "", err
		}
		if status != "" && d.Status != status {
			continue
		}
		if len(page) == limit {
			return page, page[limit-1].ID, nil
		}
		page = append(page, d)
	}
	return page, "", nil
}

// Redeliver sends a delivery again from now on, with as many attempts as a new one. A
// delivery that waits for its next attempt is attempted now. If it is being attempted, or
// is due, that is a fault.Conflict.
func (l *Log) Redeliver(ctx context.Context, sc store.Scope, to, id string) (*Delivery, error) {
	d, ok, err := l.Get(ctx, sc, to, id)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fault.New(fault.NotFound, "deliveryId", "There is no such delivery")
	}
	now := l.now().UTC().Truncate(time.Millisecond)
	var actions []store.Action
	if d.Status == Pending {
		if d.NextAt == nil || !d.NextAt.After(now) {
			return nil, underWay()
		}
		// A worker that is attempting it has taken this row.
		waits := d.wait(*d.NextAt).Key
		actions = append(actions, store.Action{Table: store.Control, Delete: &store.Delete{Key: waits, If: []store.Cond{store.IfPresent()}}})
	}
	d.Status, d.Tries, d.NextAt, d.expires = Pending, 0, &now, now.Add(Retention)
	row, err := d.row()
	if err != nil {
		return nil, err
	}
	err = l.store.Transact(ctx, append(actions,
		store.Action{Table: store.Control, Put: &store.Put{Row: row, If: []store.Cond{store.IfEqual(store.At("turn"), d.turn)}}},
		store.Action{Table: store.Control, Put: &store.Put{Row: d.wait(now)}})...)
	if _, lost := store.AsCondition(err); lost {
		return nil, underWay()
	}
	return d, unavailable(err)
}

func underWay() error {
	return fault.New(fault.Conflict, "deliveryId", "the delivery is under way; it can be sent again after this attempt")
}

func unavailable(err error) error {
	if err == nil {
		return nil
	}
	return fault.Unavailable(err)
}

// Mail is one message. Text is for readers that show no HTML.
type Mail struct {
	To      []string // bare addresses
	Subject string
	Text    string
	HTML    string // "": none
}

// Mailer sends mails. An error reports that the mail was not sent, and why, without naming the
// receiver. A fault.ServiceUnavailable may pass.
type Mailer interface {
	Send(ctx context.Context, m Mail) error
}

// maxRecipients is how many SES takes in one message.
const maxRecipients = 50

// Address checks a bare address, such as ann@example.com, and gives it in the form by which
// addresses are compared: lower case, no spaces around.
func Address(s string) (string, bool) {
	if strings.ContainsFunc(s, turnsASCII) {
		return "", false
	}
	s = strings.ToLower(strings.TrimSpace(s))
	a, err := mail.ParseAddress(s)
	if err != nil || a.Address != s || len(s) > 254 {
		return "", false
	}
	local, domain, _ := strings.Cut(s, "@")
	plain := strings.IndexFunc(s, func(r rune) bool { return r == '"' || unicode.IsSpace(r) || unicode.IsControl(r) }) < 0
	return s, plain && len(local) <= 64 && strings.Contains(strings.Trim(domain, "."), ".") || plain && domain == "localhost"
}

// turnsASCII reports whether a text has letters with ASCII lower-case forms: the Kelvin sign
// would turn an address into that of another user.
func turnsASCII(r rune) bool {
	return r > unicode.MaxASCII && unicode.ToLower(r) <= unicode.MaxASCII
}

// Check rejects a mail that must not be sent.
func (m *Mail) Check() error {
	switch {
	case len(m.To) == 0 || len(m.To) > maxRecipients:
		return fault.Invalid("to", "must have 1 to %d recipients, has %d", maxRecipients, len(m.To))
	case m.Text == "":
		return fault.Invalid("text", "must not be empty")
	case strings.ContainsFunc(m.Subject, unicode.IsControl):
		return fault.Invalid("subject", "must not have control characters")
	}
	for _, to := range m.To {
		if _, ok := Address(to); !ok {
			return fault.Invalid("to", "has an entry that is not an e-mail address")
		}
	}
	return nil
}

// Encode writes a mail as an Internet message (RFC 5322), which is what an .eml
// file holds. id is the left part of its Message-ID.
func Encode(m *Mail, from, id string, at time.Time) ([]byte, error) {
	if err := m.Check(); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	head := func(name, value string) { fmt.Fprintf(&out, "%s: %s\r\n", name, value) }
	head("Date", at.UTC().Format(time.RFC1123Z))
	head("From", from)
	head("To", strings.Join(m.To, ",\r\n "))
	head("Subject", mime.QEncoding.Encode("utf-8", m.Subject))
	head("Message-ID", "<"+id+"@gateway>")
	head("MIME-Version", "1.0")
	if m.HTML == "" {
		head("Content-Type", "text/plain; charset=utf-8")
		head("Content-Transfer-Encoding", "quoted-printable")
		out.WriteString("\r\n")
		err := quoted(&out, m.Text)
		return out.Bytes(), err
	}
	parts := multipart.NewWriter(&out)
	head("Content-Type", "multipart/alternative; boundary="+parts.Boundary())
	out.WriteString("\r\n")
	for _, p := range [][2]string{{"text/plain", m.Text}, {"text/html", m.HTML}} {
		w, err := parts.CreatePart(textproto.MIMEHeader{
			"Content-Type": {p[0] + "; charset=utf-8"}, "Content-Transfer-Encoding": {"quoted-printable"},
		})
		if err != nil {
			return nil, err
		}
		if err := quoted(w, p[1]); err != nil {
			return nil, err
		}
	}
	err := parts.Close()
	return out.Bytes(), err
}

func quoted(out io.Writer, text string) error {
	q := quotedprintable.NewWriter(out)
	if _, err := q.Write([]byte(text)); err != nil {
		return err
	}
	return q.Close()
}
