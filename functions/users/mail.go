package users

import (
	"context"
	"crypto/rand"
	"fmt"
	"html"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"gateway/shared/admin"
	"gateway/shared/identity/membership"
	"gateway/shared/notice"
	"gateway/shared/tenant"
)

// mailTime bounds how long a call waits for its mail to be taken.
const mailTime = 10 * time.Second

// deliver sends the mail of an invitation and gives its link. A failed mail does not undo
// the invitation: its maker has the link and can send it again.
func (f *family) deliver(c *admin.Call, i *membership.Invite, token string) string {
	link := f.base(c.Request) + "/invites/accept?token=" + url.QueryEscape(token)
	if f.Mailer == nil {
		return link
	}
	ctx, cancel := context.WithTimeout(c.Context, mailTime)
	defer cancel()
	if err := f.Mailer.Send(ctx, invitation(f.organisation(c), i, link)); err != nil {
		slog.Warn("an invitation could not be sent by mail", "request_id", c.RequestID, "error", err.Error())
	}
	return link
}

// base is the address that links begin with.
func (f *family) base(r *http.Request) string { return admin.Address(f.PublicURL, r) }

// organisation is the name of the caller's organisation.
func (f *family) organisation(c *admin.Call) string {
	rec, ok, err := c.Resources.Get(c.Context, c.Organisation(), tenant.KindOrganisation, c.Caller.Scope.Org)
	if err != nil || !ok || rec.Name == "" {
		return c.Caller.Scope.Org
	}
	return rec.Name
}

// plain replaces control characters, so that a name stays within one line of a mail.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0x2028 || r == 0x2029 || r >= 0x80 && r < 0xa0 {
			return ' '
		}
		return r
	}, s)
}

func invitation(organisation string, i *membership.Invite, link string) notice.Mail {
	name, end := plain(organisation), until(i.ExpiresAt)
	return notice.Mail{
		To: []string{i.Email}, Subject: "Invitation to " + name + " on the AI gateway",
		Text: fmt.Sprintf("You are invited to join %s on the AI gateway.\n\nOpen this link to accept. It works once, until %s:\n\n%s\n\nIf you do not expect this invitation, leave it unopened.\n", name, end, link),
		HTML: fmt.Sprintf("<p>You are invited to join <b>%s</b> on the AI gateway.</p><p><a href=\"%s\">Accept the invitation</a></p><p>The link works once, until %s. If you do not expect this invitation, leave it unopened.</p>",
			html.EscapeString(name), html.EscapeString(link), html.EscapeString(end)),
	}
}

// accepting is the page that an invitation links to. Only its button accepts the invitation,
// because some mail programs open links to check them.
const accepting = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Invitation</title></head>
<body style="font-family:sans-serif;max-width:32em;margin:3em auto;padding:0 1em">
<h1>Invitation</h1>
<form id="f"><p><label>First name<br><input name="first_name" maxlength="255" autocomplete="given-name"></label></p>
<p><label>Last name<br><input name="last_name" maxlength="255" autocomplete="family-name"></label></p>
<p><button>Accept the invitation</button></p></form>
<p id="note" role="status"></p><pre id="keys" style="white-space:pre-wrap"></pre>
<script nonce="NONCE">
document.getElementById('f').addEventListener('submit', async (e) => {
  e.preventDefault();
  const body = Object.fromEntries(new FormData(e.target));
  const res = await fetch(location.href, {method: 'POST', headers: {'content-type': 'application/json'}, body: JSON.stringify(body)});
  const answer = await res.json();
  const note = document.getElementById('note');
  if (!res.ok) { note.textContent = answer.data ? answer.data.message : 'This did not work.'; return; }
  e.target.remove();
  note.textContent = answer.api_keys.length ? 'Welcome. Copy your keys now, they are shown this once:' : 'Welcome. You have joined.';
  document.getElementById('keys').textContent = answer.api_keys.map((k) => k.key).join('\n');
});
</script></body></html>
`

// page serves the page. It is the same for every token.
func (f *family) page(*admin.Call) (any, error) {
	nonce := rand.Text()
	return admin.Answer{Body: []byte(strings.Replace(accepting, "NONCE", nonce, 1)), Header: http.Header{
		"Content-Security-Policy": {"default-src 'none'; style-src 'unsafe-inline'; connect-src 'self'; script-src 'nonce-" + nonce + "'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
		"Referrer-Policy":         {"no-referrer"},
	}}, nil
}
