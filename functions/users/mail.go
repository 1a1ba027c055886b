package users

import (
	"context"
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
	d, err := f.describe(c, c.Organisation(), i)
	if err == nil {
		err = f.Mailer.Send(ctx, invitation(d, i, link))
	}
	if err != nil {
		slog.Warn("an invitation could not be sent by mail", "request_id", c.RequestID, "error", err.Error())
	}
	return link
}

// base is the address that links begin with.
func (f *family) base(r *http.Request) string { return admin.Address(f.PublicURL, r) }

// plain replaces control characters, so that a name stays within one line of a mail.
func plain(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0x2028 || r == 0x2029 || r >= 0x80 && r < 0xa0 {
			return ' '
		}
		return r
	}, s)
}

func invitation(d *described, i *membership.Invite, link string) notice.Mail {
	name, offer, end := plain(d.organization), plain(d.offer()), until(i.ExpiresAt)
	return notice.Mail{
		To: []string{i.Email}, Subject: "Invitation to " + name + " on the AI gateway",
		Text: fmt.Sprintf("%s invites you to join %s on the AI gateway %s.\n\nOpen this link to accept. It works once, until %s:\n\n%s\n\nIf you do not expect this invitation, leave it unopened.\n", plain(d.inviter), name, offer, end, link),
		HTML: fmt.Sprintf("<p>%s invites you to join <b>%s</b> on the AI gateway %s.</p><p><a href=\"%s\">Accept the invitation</a></p><p>The link works once, until %s. If you do not expect this invitation, leave it unopened.</p>",
			html.EscapeString(plain(d.inviter)), html.EscapeString(name), html.EscapeString(offer), html.EscapeString(link), html.EscapeString(end)),
	}
}
