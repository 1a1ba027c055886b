package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	official "github.com/modelcontextprotocol/go-sdk/mcp"
)

// scenario is what the suite wants of a client: to use its server, with what it is told
// besides.
type scenario struct {
	Server  string          `json:"server"`
	Name    string          `json:"scenario"`
	Context json.RawMessage `json:"context"`
	done    chan error
}

// player stands for the suite's client: the gateway, with a client of the official SDK
// before it.
type player struct {
	*gateway
	old   bool   // with sessions
	key   string // of a user
	front string // address before the gateway that adds the key
	made  int
}

// TestClientConformance: towards servers the gateway is as good a client as the client in
// front of it. If users sign in at the server, the gateway is the server's only client, and
// the user is a browser that follows links.
func TestClientConformance(t *testing.T) {
	suite := prepared(t)
	p := &player{gateway: startGateway(t)}
	p.key = p.userKey("bea@example.com")
	for _, revision := range []string{withSessions, withoutSessions} {
		t.Run(revision, func(t *testing.T) {
			p.t, p.old = t, revision == withSessions
			p.front = p.keyed(p.key, p.old)
			p.play(t, suite, revision)
		})
	}
}

// userKey gives the key of somebody who has just been invited.
func (g *gateway) userKey(email string) string {
	invited := g.admin("POST", "/admin/users/invites", fmt.Sprintf(`{"email":%q,"role":"member","workspaces":[{"id":"default","role":"member"}],"workspace_api_key_details":{"scopes":["mcp.invoke"]}}`, email))
	_, query, _ := strings.Cut(invited["invite_link"].(string), "?")
	status, text, err := g.call("POST", "/invites/accept?"+query, "", `{"first_name":"Bea","last_name":"Lee"}`)
	var accepted struct {
		Keys []struct {
			Key string `json:"key"`
		} `json:"api_keys"`
	}
	if err != nil || status != http.StatusOK || json.Unmarshal([]byte(text), &accepted) != nil || len(accepted.Keys) != 1 {
		g.t.Fatalf("%d %s %v", status, text, err)
	}
	return accepted.Keys[0].Key
}

// play runs the suite. It starts all its scenarios at once; they are played one behind the
// other.
func (p *player) play(t *testing.T, suite, revision string) {
	scenarios, over := make(chan *scenario), make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		one := &scenario{done: make(chan error, 1)}
		if err := json.NewDecoder(r.Body).Decode(one); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		select {
		case scenarios <- one:
		case <-over:
			return
		}
		if err := <-one.done; err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
		}
	}))
	defer s.Close()
	command := node(t) + " client.mjs " + s.URL
	go func() { // ends with the suite
		defer close(over)
		run(t, suite, "client", revision, "--verbose", "--command", command)
	}()
	for {
		select {
		case one := <-scenarios:
			err := p.playOne(one)
			if err != nil {
				t.Logf("%s: %v", one.Name, err)
			}
			one.done <- err
		case <-over:
			return
		}
	}
}

func (p *player) playOne(one *scenario) error {
	if strings.HasPrefix(one.Name, "auth/") {
		return p.signsIn(one)
	}
	slug := p.next()
	p.register(slug, one.Server, "none", "{}")
	if one.Name == "json-schema-2020-12-preservation" {
		return p.echoes(slug)
	}
	cmd := exec.Command(program(p.t, sdk+"everything-client"), p.front+"/"+slug+"/mcp")
	cmd.Env = append(os.Environ(), "MCP_CONFORMANCE_SCENARIO="+one.Name, "MCP_CONFORMANCE_CONTEXT="+string(one.Context))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: %s", err, bytes.TrimSpace(out))
	}
	return nil
}

// echoes sends the schema of a tool back, as it came through the gateway: the SDK's
// program does not have this scenario yet.
func (p *player) echoes(slug string) error {
	s, err := p.connect(slug, &speaking{p.key, p.old})
	if err != nil {
		return err
	}
	defer s.Close()
	ctx := context.Background()
	tools, err := s.ListTools(ctx, nil)
	if err != nil || len(tools.Tools) != 2 {
		return fmt.Errorf("%+v %w", tools, err)
	}
	of, echo := tools.Tools[0], tools.Tools[1]
	if of.Name != "json_schema_2020_12_tool" {
		of, echo = echo, of
	}
	_, err = s.CallTool(ctx, &official.CallToolParams{Name: echo.Name, Arguments: map[string]any{"schema": of.InputSchema}})
	return err
}

func (p *player) next() string {
	p.made++
	return fmt.Sprintf("suite-%d", p.made)
}

// asDocument is the address of a document about a client that the suite knows. The
// gateway's own document is at the address by which clients reach it, which is not https
// here.
const asDocument = "https://conformance-test.local/client-metadata.json"

// signsIn calls a server as a user who signs in there when told to.
func (p *player) signsIn(one *scenario) error {
	var has struct {
		ID     string `json:"client_id"`
		Secret string `json:"client_secret"`
	}
	if err := json.Unmarshal(one.Context, &has); err != nil {
		return err
	}
	known := map[string]string{}
	if one.Name == "auth/basic-cimd" {
		has.ID = asDocument
	}
	if has.ID != "" {
		known["client_id"] = has.ID
	}
	if has.Secret != "" {
		known["client_secret"] = has.Secret
	}
	raw, err := json.Marshal(map[string]any{"oauth_metadata": known})
	if err != nil {
		return err
	}
	slug := p.next()
	p.register(slug, one.Server, "oauth_auto", string(raw))
	for range 6 {
		sent := &sending{speaking: speaking{p.key, p.old}}
		err := p.uses(slug, sent)
		if err == nil || sent.to == "" {
			return err
		}
		if err := p.browse(sent.to); err != nil {
			return err
		}
	}
	return errors.New("there is no end of signing in")
}

// sending notes where a rejection sends the user.
type sending struct {
	speaking
	to string
}

func (s *sending) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := s.speaking.RoundTrip(r)
	if err == nil && res.StatusCode == http.StatusUnauthorized {
		if _, rest, ok := strings.Cut(res.Header.Get("Www-Authenticate"), `authorization_uri="`); ok {
			s.to, _, _ = strings.Cut(rest, `"`)
		}
	}
	return res, err
}

// uses uses a server as the suite wants it: the list of its tools, and a call of one.
func (p *player) uses(slug string, through http.RoundTripper) error {
	s, err := p.connect(slug, through)
	if err != nil {
		return err
	}
	defer s.Close()
	ctx := context.Background()
	if _, err = s.ListTools(ctx, nil); err != nil {
		return err
	}
	_, err = s.CallTool(ctx, &official.CallToolParams{Name: "test-tool", Arguments: map[string]any{}})
	return err
}

// browse takes the user's browser to the authorization server and back.
func (p *player) browse(link string) error {
	jar := map[string]string{}
	out, err := confirm(link, jar)
	if err != nil {
		return err
	}
	back, err := hop("at the authorization server", out, map[string]string{}, http.StatusFound)
	if err != nil {
		return err
	}
	_, err = hop("the way back", back, jar, http.StatusOK)
	return err
}

// hidden are the fields of a page's form.
var hidden = regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`)

// confirm opens the page that asks whether to connect, and submits its form.
func confirm(link string, jar map[string]string) (to string, err error) {
	_, page, err := send("the page", http.MethodGet, link, nil, jar, http.StatusOK)
	if err != nil {
		return "", err
	}
	form := url.Values{}
	for _, m := range hidden.FindAllStringSubmatch(page, -1) {
		form.Set(html.UnescapeString(m[1]), html.UnescapeString(m[2]))
	}
	address, _, _ := strings.Cut(link, "?")
	to, _, err = send("the way out", http.MethodPost, address, form, jar, http.StatusSeeOther)
	return to, err
}

// hop goes to an address as send does.
func hop(what, address string, jar map[string]string, status int) (to string, err error) {
	to, _, err = send(what, http.MethodGet, address, nil, jar, status)
	return to, err
}

// send makes a request with the cookies of a browser, and stores those of the response. to
// is where the response leads.
func send(what, method, address string, form url.Values, jar map[string]string, status int) (to, page string, err error) {
	req, err := http.NewRequest(method, address, strings.NewReader(form.Encode()))
	if err != nil {
		return "", "", err
	}
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for name, v := range jar {
		req.AddCookie(&http.Cookie{Name: name, Value: v})
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.Do(req)
	if err != nil {
		return "", "", err
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != status {
		return "", "", fmt.Errorf("%s: %d %s %v", what, res.StatusCode, raw, err)
	}
	for _, c := range res.Cookies() {
		jar[c.Name] = c.Value
	}
	return res.Header.Get("Location"), string(raw), nil
}
