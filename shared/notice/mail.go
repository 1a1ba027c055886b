package notice

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"net/textproto"
	"strings"
	"time"
	"unicode"

	"gateway/shared/fault"
)

// Mail is one message. Text is for readers that show no HTML.
type Mail struct {
	To      []string // bare addresses
	Subject string
	Text    string
	HTML    string // "": none
}

// Mailer sends mails. An error says that the mail was not sent, and why, without naming the
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

// Check refuses a mail that must not be sent.
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
			return fault.Invalid("to", "has an entry that is no e-mail address")
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
