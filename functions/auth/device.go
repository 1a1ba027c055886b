package auth

import (
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"gateway/shared/admin"
	"gateway/shared/admin/page"
	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/mcp/oauthserver"
	"gateway/shared/resource"
	"gateway/shared/signin"
	"gateway/shared/signin/attempts"
	"gateway/shared/signin/device"
)

// Paths of devices without a browser, below the gateway's address.
const (
	pathDeviceAuthorization = "/oauth/device_authorization"
	pathDevice              = "/oauth/device"
)

// grantDevice is the grant type of RFC 8628.
const grantDevice = "urn:ietf:params:oauth:grant-type:device_code"

// codesPerUser limits how many codes a user may try. Valid ones count too, so that the count
// does not reveal which of many was valid. A code has 34 random bits.
var codesPerUser = attempts.Limit{Name: "device codes", Most: 30, Take: 1, Each: 10 * time.Minute}

// devices serves devices without a browser.
type devices struct{ granting *granting }

func (f *devices) routes() []admin.Route {
	text := func(name string, most int64, doc string) admin.Field {
		return admin.Field{Name: name, Type: admin.String, Max: most, Doc: doc}
	}
	client := text("client_id", oauthserver.MaxClientID, device.ClientGateway+", id of a registration, or address of the client's own document.")
	client.Required, client.Example = true, device.ClientGateway
	code := text("user_code", 64, "The code shown on the device.")
	routes := []admin.Route{
		{Method: "POST", Path: pathDeviceAuthorization, Name: "authorizeDevice", Consumes: []string{form}, Unrecorded: true, ResponseOf: admin.SchemaOf[authorizing], Do: f.begin,
			Doc: "Start the sign-in of a device without a browser (RFC 8628): it shows user_code and polls for its token with device_code.", Body: []admin.Field{
				client, text("scope", 255, "What the device gets: session (default) or api_key."),
				text("workspace", 255, "For api_key: id or slug of the workspace of the key; without it the user chooses."),
			}},
		{Method: "GET", Path: pathDevice, Name: "showDevice", Response: admin.Schema{"type": "string"}, Produces: page.HTML, Do: f.show,
			Doc: "Show the consent page on which a user allows a device to sign in.", Query: []admin.Field{code, {Name: "here", Type: admin.Boolean, Doc: "Set by the page itself."}}},
		{Method: "POST", Path: pathDevice, Name: "decideDevice", Response: admin.Schema{"type": "string"}, Produces: page.HTML, Consumes: []string{form}, Unrecorded: true, Do: f.decide,
			Doc: "Submit the user's decision.", Body: []admin.Field{
				{Name: "user_code", Type: admin.String, Max: 64, Required: true, Doc: code.Doc}, text("csrf", 255, "Of the page."), text("workspace", 255, "Id or slug of the workspace of the key."),
				{Name: "decision", Type: admin.String, Enum: []string{"allow", "deny"}, Required: true},
			}},
	}
	for i := range routes {
		routes[i].Public, routes[i].Rejections = true, oauthRejections
	}
	return routes
}

// authorizing is the first response to a device.
type authorizing struct {
	Device   string `json:"device_code"`
	User     string `json:"user_code"`
	Page     string `json:"verification_uri"`
	Complete string `json:"verification_uri_complete"`
	Expires  int64  `json:"expires_in"` // seconds
	Interval int64  `json:"interval"`
}

// clientName returns the displayed name of a client.
func (f *devices) clientName(c *admin.Call, id string) (name string, err error) {
	if id == device.ClientGateway {
		return oauthserver.BuiltIn, nil
	}
	found, err := (&oauthserver.Fetcher{Transport: f.granting.family.Transport, CheckURL: f.granting.family.CheckURL}).Find(c.Context, id)
	if err != nil {
		return "", err
	}
	if h := found.Host(); h != "" {
		return found.DisplayName() + " (" + h + ")", nil
	}
	return found.DisplayName(), nil
}

func (f *devices) begin(c *admin.Call) (any, error) {
	r := &device.Request{Client: c.Body.Text("client_id"), Wants: device.Session, Workspace: c.Body.Text("workspace"), ClientIP: c.ClientIP(), Agent: agent(c.Request)}
	if s := c.Body.Text("scope"); s != "" {
		r.Wants = s
	}
	if r.Wants != device.Session && r.Wants != device.APIKey {
		return rejectToken("invalid_scope", "scope must be session or api_key")
	}
	if r.Wants == device.Session && r.Workspace != "" {
		return nil, fault.Invalid("workspace", "is only allowed with scope api_key: a session covers all workspaces of its user")
	}
	var err error
	if r.ClientName, err = f.clientName(c, r.Client); err != nil {
		if fault.From(err).Status() < 500 {
			return admin.Response{Status: http.StatusBadRequest, JSON: problem{"invalid_client", sentence(fault.From(err))}}, nil
		}
		return nil, err
	}
	code, err := device.Begin(c.Context, c.Resources.Store(), r, c.Now)
	if err != nil {
		return nil, err
	}
	page := f.granting.issuer(c) + pathDevice
	return authorizing{
		Device: code, User: device.FormatCode(r.UserCode), Page: page, Complete: page + "?user_code=" + device.FormatCode(r.UserCode),
		Expires: int64(device.Life / time.Second), Interval: int64(device.Interval / time.Second),
	}, nil
}

// show leads a user to the decision, in up to three steps: this site, sign-in, code.
func (f *devices) show(c *admin.Call) (any, error) {
	at := f.granting.issuer(c) + pathDevice
	q := url.Values{"here": {"true"}}
	if code := c.Query.Text("user_code"); code != "" {
		q.Set("user_code", code)
	}
	again := at + "?" + q.Encode()
	p, first, err := f.granting.arrive(c, again)
	if err != nil {
		return nil, err
	}
	if first != nil {
		return *first, nil
	}
	if c.Query.Text("user_code") == "" {
		return f.showCodeForm(c, http.StatusOK, ""), nil
	}
	r, stop, err := f.find(c, p, c.Query.Text("user_code"))
	if err != nil {
		return nil, err
	}
	if stop != nil {
		return *stop, nil
	}
	if again := f.requireRecentSignIn(c, p, r); again != nil {
		return *again, nil
	}
	return f.showDecisionForm(c, p, r, http.StatusOK, "")
}

func (f *devices) showCodeForm(c *admin.Call, status int, why string) admin.Response {
	if why != "" {
		why = `<p role="alert">` + page.Escape(why) + "</p>"
	}
	body := why + `<form method="get" action="` + page.Escape(f.granting.issuer(c)+pathDevice) + `"><input type="hidden" name="here" value="true"><label>Code shown on your device<input name="user_code" required autofocus autocomplete="off" maxlength="16" placeholder="XXXX-XXXX"></label><button>Go on</button></form>`
	return page.New(status, "Sign in a device", body)
}

// find returns the request of a code. stop is the page if the code does not exist.
func (f *devices) find(c *admin.Call, p *deciding, typed string) (r *device.Request, stop *admin.Response, err error) {
	if err := f.granting.family.attempts.Count(c.Context, codesPerUser, p.of.Org+"\x00"+p.of.User, c.Now); err != nil {
		f.failed(c, p, "too many codes")
		return nil, nil, err
	}
	r, err = device.Find(c.Context, c.Resources.Store(), typed, c.Now)
	if err != device.ErrUnknown {
		return r, nil, err
	}
	f.failed(c, p, "unknown or expired code")
	missing := f.showCodeForm(c, http.StatusNotFound, "The code is invalid, has expired, or was already used. Check the code on your device.")
	return nil, &missing, nil
}

// requireRecentSignIn returns the page that requires a new sign-in before a key is created; nil if
// the last one is recent, or no key is requested.
func (f *devices) requireRecentSignIn(c *admin.Call, p *deciding, r *device.Request) *admin.Response {
	if r.Wants != device.APIKey || c.Now.Sub(p.of.Authenticated) <= admin.RecentFor {
		return nil
	}
	back := oauthserver.BasePath + pathDevice + "?" + url.Values{"user_code": {device.FormatCode(r.UserCode)}}.Encode()
	q := url.Values{"organisation_id": {p.of.Org}, "email": {p.user.Email}, "fresh": {"true"}, "return_to": {back}}
	if p.of.Via != "" {
		q.Set("sso_client_id", p.of.Via)
	}
	out := page.New(http.StatusForbidden, "Sign in again", `<p>Creating a key requires a recent sign-in.</p><p><a href="`+page.Escape(f.granting.issuer(c)+"/auth/login?"+q.Encode())+`">Sign in again</a></p>`)
	return &out
}

// maxOffered is the number of workspaces that a page offers; others can be typed.
const maxOffered = 100

func (f *devices) showDecisionForm(c *admin.Call, p *deciding, r *device.Request, status int, why string) (any, error) {
	rows := [][2]string{{"Application", r.ClientName}, {"Code on the device", device.FormatCode(r.UserCode)}, {"Asked from", r.ClientIP}}
	if r.Agent != "" {
		rows = append(rows, [2]string{"By", r.Agent})
	}
	rows = append(rows, [2]string{"Asked", strconv.Itoa(int(c.Now.Sub(r.Since)/time.Second)) + " seconds ago"}, [2]string{"You are", p.user.Email})
	choose, gets := "", "a session with all of your permissions, until it ends"
	if r.Wants == device.APIKey {
		gets = "an API key of yours for one workspace"
		offered, err := f.offered(c, p)
		if err != nil {
			return nil, err
		}
		preset, options := r.Workspace, ""
		for i, w := range offered {
			if preset == "" && i == 0 {
				preset = w
			}
			options += `<option value="` + page.Escape(w) + `"></option>`
		}
		choose = `<label>Workspace of the key<input name="workspace" required list="workspaces" value="` + page.Escape(preset) + `"></label><datalist id="workspaces">` + options + "</datalist>"
	}
	rows = append(rows, [2]string{"It gets", gets})
	list := "<dl>"
	for _, row := range rows {
		list += "<dt>" + row[0] + "</dt><dd>" + page.Escape(row[1]) + "</dd>"
	}
	if why != "" {
		why = `<p role="alert">` + page.Escape(why) + "</p>"
	}
	body := why + "<p>Allow this only if you began it yourself, and if your device shows this very code.</p>" + list + `</dl><form method="post" action="` + page.Escape(f.granting.issuer(c)+pathDevice) + `">` +
		`<input type="hidden" name="csrf" value="` + page.Escape(signin.WriteToken(p.token)) + `"><input type="hidden" name="user_code" value="` + page.Escape(device.FormatCode(r.UserCode)) + `">` + choose +
		`<button name="decision" value="allow">Allow</button><button name="decision" value="deny" formnovalidate>Refuse</button></form>`
	return page.New(status, "Sign in a device?", body), nil
}

func (f *devices) decide(c *admin.Call) (any, error) {
	p, err := f.granting.person(c)
	if err != nil {
		return nil, err
	}
	if !f.granting.fromOwnPage(c, p) {
		f.failed(c, p, "the form was submitted from another page")
		return nil, errNotOurs()
	}
	r, stop, err := f.find(c, p, c.Body.Text("user_code"))
	if err != nil {
		return nil, err
	}
	if stop != nil {
		return *stop, nil
	}
	if c.Body.Text("decision") != "allow" {
		return f.settle(c, p, r, "", "Refused", "The device was not signed in.", func(tx *resource.Tx) { r.Deny(tx) })
	}
	if again := f.requireRecentSignIn(c, p, r); again != nil {
		return *again, nil
	}
	workspace := ""
	if r.Wants == device.APIKey {
		ws, err := f.keyed(c, p, strings.TrimSpace(c.Body.Text("workspace")))
		if err != nil {
			return nil, err
		}
		if ws == nil {
			return f.showDecisionForm(c, p, r, http.StatusForbidden, "The workspace does not exist, or you may not create a key in it.")
		}
		workspace = ws.ID
	}
	by := device.By{
		Org: p.of.Org, User: p.of.User, Session: p.of.ID, Method: p.of.Method, Via: p.of.Via, Subject: p.of.Subject, SID: p.of.ProviderSID, LogoutURL: p.of.LogoutURL, Authenticated: p.of.Authenticated, Ends: p.of.Until,
	}
	return f.settle(c, p, r, workspace, "It is in", "Return to your device. It continues automatically.", func(tx *resource.Tx) { r.Allow(tx, by, workspace) })
}

// settle stores a decision with its audit record.
func (f *devices) settle(c *admin.Call, p *deciding, r *device.Request, workspace, title, text string, stage func(*resource.Tx)) (any, error) {
	err := c.Resources.Change(c.Context, scopeOf(p), func(tx *resource.Tx) error {
		stage(tx)
		e := f.deviceEntry(c, p.of.User, http.StatusOK, r)
		e.WorkspaceID, e.Action = workspace, audit.Accept
		e.Details["decision"] = c.Body.Text("decision")
		return audit.Append(tx, e)
	})
	if errors.Is(err, device.ErrUnknown) {
		return f.showCodeForm(c, http.StatusConflict, "This code was already used."), nil
	}
	if err != nil {
		return nil, err
	}
	return page.New(http.StatusOK, title, "<p>"+text+"</p>"), nil
}
