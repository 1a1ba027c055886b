package main

import (
	"strings"
	"testing"
)

// Names on the page of an invitation are text: whoever chose them cannot add markup to it.
func TestInvitationPagesEscapeNames(t *testing.T) {
	t.Parallel()
	r := start(t)
	ws := r.admin("POST", "/admin/workspaces", `{"name":"<img src=x onerror=alert(1)> \" NONCE BASE"}`)["id"].(string)
	link := r.admin("POST", "/admin/users/invites", `{"email":"ann@example.com","role":"member","workspaces":[{"id":"`+ws+`","role":"member"}]}`)["invite_link"].(string)
	page := r.without("GET", strings.TrimPrefix(link, r.base), "")
	if page.status != 200 || strings.Contains(page.body, "<img") || !strings.Contains(page.body, `&lt;img src=x onerror=alert(1)&gt; &#34; NONCE BASE as member`) || strings.Count(page.body, "NONCE") != 2 {
		t.Errorf("%d %s", page.status, page.body)
	}
	r.without("POST", strings.TrimPrefix(link, r.base), `{}`)
	if page = r.without("GET", strings.TrimPrefix(link, r.base), ""); !strings.Contains(page.body, "no longer valid") {
		t.Errorf("a used link: %s", page.body)
	}
}
