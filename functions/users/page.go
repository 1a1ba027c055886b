package users

import (
	"cmp"
	"crypto/rand"
	"html"
	"net/http"
	"strings"

	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/identity/membership"
	"gateway/shared/store"
	"gateway/shared/tenant"
)

// described is the description of an invitation for the invited user.
type described struct {
	organization, inviter, role string
	workspaces                  []joined
	key                         bool // the user gets a key in each workspace
}

// joined is a workspace that an invited user joins.
type joined struct{ id, name, role string }

// offer returns the roles of an invitation, as the end of a sentence.
func (d *described) offer() string {
	out := "as " + d.role
	for i, w := range d.workspaces {
		sep := ", "
		if i == 0 {
			sep = ", with the workspace "
			if len(d.workspaces) > 1 {
				sep = ", with the workspaces "
			}
		}
		out += sep + w.name + " (" + w.role + ")"
	}
	return out
}

// describe reads the names of what an invitation refers to.
func (f *family) describe(c *admin.Call, org store.Scope, i *membership.Invite) (*described, error) {
	d := &described{role: i.Role, inviter: "An administrator", key: i.Keys != nil}
	rec, _, err := c.Resources.Get(c.Context, org, tenant.KindOrganisation, org.Org)
	if err != nil {
		return nil, err
	}
	d.organization = cmp.Or(rec.Name, org.Org)
	by, ok, err := c.Resources.Get(c.Context, org, membership.KindUser, i.InvitedBy)
	if err != nil {
		return nil, err
	}
	if ok { // otherwise a service key invites
		user, err := membership.DecodeUser(by)
		if err != nil {
			return nil, err
		}
		d.inviter = user.Email
		if name := strings.TrimSpace(user.FirstName + " " + user.LastName); name != "" {
			d.inviter = name + " (" + user.Email + ")"
		}
	}
	for _, to := range i.Workspaces {
		ws, ok, err := c.Resources.Get(c.Context, org, tenant.KindWorkspace, to.ID)
		if err != nil {
			return nil, err
		}
		if ok && !ws.Archived() {
			d.workspaces = append(d.workspaces, joined{to.ID, ws.Name, to.Role})
		}
	}
	return d, nil
}

// The page that an invitation links to. Only its button accepts the invitation, because some
// mail programs open links to check them.
const (
	pageHead = `<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width"><title>Invitation</title></head>
<body style="font-family:sans-serif;max-width:32em;margin:3em auto;padding:0 1em">
<h1>Invitation</h1>
`
	pageDead = `<p>This invitation is no longer valid: it was accepted, replaced by a newer one or withdrawn, or it has expired. Ask the person who invited you for a new one.</p>
</body></html>
`
	pageForm = `<form id="f" data-base="BASE"><p><label>First name<br><input name="first_name" maxlength="255" autocomplete="given-name"></label></p>
<p><label>Last name<br><input name="last_name" maxlength="255" autocomplete="family-name"></label></p>
<p><button>Accept the invitation</button></p></form>
<p id="note" role="status"></p><dl id="keys" style="overflow-wrap:anywhere"></dl><p id="next"></p>
<script nonce="NONCE">
const add = (tag, text) => { const e = document.createElement(tag); e.textContent = text; document.getElementById('keys').append(e); };
document.getElementById('f').addEventListener('submit', async (e) => {
  e.preventDefault();
  const body = Object.fromEntries(new FormData(e.target));
  const res = await fetch(location.href, {method: 'POST', headers: {'content-type': 'application/json'}, body: JSON.stringify(body)});
  const answer = await res.json();
  const note = document.getElementById('note');
  if (!res.ok) { note.textContent = answer.data ? answer.data.message : 'This did not work.'; return; }
  e.target.remove();
  note.textContent = answer.api_keys.length ? 'Welcome. Copy your keys now, they are shown this once:' : 'Welcome. You have joined.';
  for (const k of answer.api_keys) {
    const ws = [...document.querySelectorAll('[data-workspace]')].find((w) => w.dataset.workspace === k.workspace_id);
    add('dt', 'Key of the workspace ' + (ws ? ws.dataset.name : k.workspace_id));
    add('dd', k.key);
  }
  const base = e.target.dataset.base;
  document.getElementById('next').textContent = answer.api_keys.length ? 'Use a key with any OpenAI or Anthropic SDK and the base URL ' + base + '; the reference is ' + base + '/docs.' : 'Sign in on the console: ' + base.replace(/\/v1$/, '/console/');
});
</script></body></html>
`
)

// page shows an invitation to the person with its link. Any other token gets the same page with
// status 404, which states that the link is dead.
func (f *family) page(c *admin.Call) (any, error) {
	nonce, status := rand.Text(), http.StatusOK
	text, err := f.invitation(c, nonce)
	if err != nil {
		return nil, err
	}
	if text == pageDead {
		status = http.StatusNotFound
	}
	return admin.Response{Status: status, Body: []byte(pageHead + text), Header: http.Header{
		"Content-Security-Policy": {"default-src 'none'; style-src 'unsafe-inline'; connect-src 'self'; script-src 'nonce-" + nonce + "'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"},
		"Referrer-Policy":         {"no-referrer"},
	}}, nil
}

// invitation returns what the page of a token contains. Its script has the nonce.
func (f *family) invitation(c *admin.Call, nonce string) (string, error) {
	org, id, err := membership.OfToken(c.Context, c.Resources.Store(), c.Query.Text("token"))
	if fault.Is(err, fault.NotFound) {
		return pageDead, nil
	}
	if err != nil {
		return "", err
	}
	rec, ok, err := c.Resources.Get(c.Context, org, membership.KindInvite, id)
	if err != nil {
		return "", err
	}
	if !ok || rec.Archived() {
		return pageDead, nil
	}
	form, err := membership.DecodeInvite(rec)
	if err != nil {
		return "", err
	}
	if form.StateAt(c.Now) != membership.Pending {
		return pageDead, nil
	}
	d, err := f.describe(c, org, form)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	esc := html.EscapeString
	b.WriteString("<p>" + esc(d.inviter) + " invites you, " + esc(form.Email) + ", to join <b>" + esc(d.organization) + "</b> on the AI gateway as " + esc(d.role) + ".</p>\n")
	if len(d.workspaces) > 0 {
		b.WriteString("<p>You join these workspaces")
		if d.key {
			b.WriteString(" and get an API key for each")
		}
		b.WriteString(":</p>\n<ul>\n")
		for _, w := range d.workspaces {
			b.WriteString(`<li data-workspace="` + esc(w.id) + `" data-name="` + esc(w.name) + `">` + esc(w.name) + " as " + esc(w.role) + "</li>\n")
		}
		b.WriteString("</ul>\n")
	}
	b.WriteString("<p>The invitation is valid until " + esc(until(form.ExpiresAt)) + ".</p>\n")
	return b.String() + strings.NewReplacer("BASE", esc(f.base(c.Request)), "NONCE", nonce).Replace(pageForm), nil
}
