package admin

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/resource"
	"gateway/shared/seal"
)

// Deps is what the engine works with.
type Deps struct {
	Resources    *resource.Resources
	Sealer       seal.Sealer // seals the secrets of families that have some
	Authenticate Authenticate
	Audit        Recorder
	// Permissions evaluates the settings for users by role; nil if no settings apply.
	Permissions PermissionCheck
	// Lenient reports whether an organization's settings ignore unknown fields and query
	// parameters; nil: none do.
	Lenient func(ctx context.Context, org string) (bool, error)
	// Repeats reports whether calls that repeat one of the last minute are recognized; nil:
	// they are not. Calls with an idempotency key always are.
	Repeats func() bool
}

// PermissionCheck reports whether the settings grant a user the permission of a scope, regardless of the
// role that the route requires. decided is false if the settings do not cover it.
type PermissionCheck func(ctx context.Context, c *Caller, scope string) (allowed, decided bool, err error)

// Recorder takes audit records that have no change to go with; *audit.Sender.
type Recorder interface {
	Record(ctx context.Context, org string, e audit.Entry) error
}

// Handler serves families of routes.
type Handler struct {
	deps   Deps
	router router
	below  []Family // those that reject unknown paths in a form of their own
	paths  []string // of all routes
}

// NewHandler serves the families. A route without a policy, or declared twice,
// is an error.
func NewHandler(d Deps, families ...Family) (*Handler, error) {
	h := &Handler{deps: d}
	for i := range families {
		families[i].complete()
		if families[i].Prefix != "" {
			h.below = append(h.below, families[i])
		}
		for j := range families[i].Routes {
			r := &families[i].Routes[j]
			if err := r.validate(); err != nil {
				return nil, fmt.Errorf("%w (family %s)", err, families[i].Name)
			}
			if err := h.router.add(r); err != nil {
				return nil, fmt.Errorf("%w (family %s)", err, families[i].Name)
			}
			h.paths = append(h.paths, r.paths()...)
		}
	}
	return h, nil
}

// Serves reports whether an escaped path is one of the handler's, with any
// method.
func (h *Handler) Serves(escapedPath string) bool {
	n, _ := h.router.match(escapedPath)
	if n == nil {
		n, _ = h.router.matchList(escapedPath)
	}
	return n != nil || h.rejectionsBelow(escapedPath) != nil
}

// rejectionsBelow returns how an unknown path is rejected; nil for the usual form.
func (h *Handler) rejectionsBelow(escapedPath string) *Rejections {
	path := withoutVersion(escapedPath)
	for i := range h.below {
		if strings.HasPrefix(path, h.below[i].Prefix) {
			return h.below[i].Unknown
		}
	}
	return nil
}

// Matches reports whether the handler has a route for the method and the
// escaped path.
func (h *Handler) Matches(method, escapedPath string) bool {
	n, _ := h.router.match(escapedPath)
	return n != nil && n.routes[method] != nil
}

// Pattern is the path, as described, of the route that serves the method and the
// escaped path; ok is false when there is none.
func (h *Handler) Pattern(method, escapedPath string) (path string, ok bool) {
	n, _ := h.router.match(escapedPath)
	if n == nil || n.routes[method] == nil {
		return "", false
	}
	return n.routes[method].path, true
}

// maxCallTime limits one call of the administration API; API Gateway times out after 29 s.
const maxCallTime = 28 * time.Second

// requestIDHeader carries the id that errors and audit records name.
const requestIDHeader = "X-Gateway-Request-Id"

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	// net/http ends the context both when a client leaves and when it only closes its
	// sending side and still waits. So a call is always done to its end: no change is left
	// half-way, and a client that waits gets its response.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), maxCallTime)
	defer cancel()
	c := &Call{
		Context: ctx, Request: r, RequestID: uuid.NewString(), handler: h,
		Resources: h.deps.Resources, Sealer: h.deps.Sealer, Now: h.deps.Resources.Now(),
	}
	w.Header().Set(requestIDHeader, c.RequestID)
	v, err := h.serve(w, c)
	if d, ok := v.(*Document); ok && err == nil {
		d.ServeHTTP(w, r)
		return
	}
	var out Response
	if err == nil {
		if out, err = c.Route.respond(v); err != nil {
			err = fault.Internal(err)
		}
	}
	if err != nil {
		f := fault.From(err)
		if c.Caller.Reduced && f.Code == fault.NotAllowed {
			with := *f
			with.Message += ". This key has at most the present permissions of its sponsor: its creator, or the last user of its rank who changed it. A user of that rank becomes the sponsor by rotating it"
			f = &with
		}
		out = reject(c, f)
		f.SetHeaders(w.Header())
		if out.Status >= 500 {
			slog.Error("administration failure", "route", routeName(c), "request_id", c.RequestID, "error", f.Error())
		}
	}
	h.record(c, out.Status)
	out.write(w)
}

// record puts the call into the audit log, unless its change did.
func (h *Handler) record(c *Call, status int) {
	if c.recorded || c.Route == nil || !c.Route.changes() || c.Route.Unrecorded || c.Caller.Scope.Org == "" || h.deps.Audit == nil {
		return
	}
	ctx := context.WithoutCancel(c.Context)
	if err := h.deps.Audit.Record(ctx, c.Caller.Scope.Org, c.entry(status)); err != nil {
		slog.Error("a call is missing in the audit log", "route", routeName(c), "request_id", c.RequestID, "status", status, "error", err)
	}
}

func routeName(c *Call) string {
	if c.Route == nil {
		return "none"
	}
	return c.Route.Name
}

// serve takes the call through all checks, in the documented order, and does it.
func (h *Handler) serve(w http.ResponseWriter, c *Call) (answer any, err error) {
	defer func() {
		if p := recover(); p != nil {
			answer, err = nil, fault.Internal(fmt.Errorf("panic: %v\n%s", p, debug.Stack()))
		}
	}()
	if err := h.route(w, c); err != nil {
		return nil, err
	}
	if !c.Route.Public {
		if c.Caller, err = c.authenticate(); err != nil {
			return nil, err
		}
		c.Scope = c.Caller.Scope
	} else if c.Route.OptionalAuth {
		if err := welcome(c); err != nil {
			return nil, err
		}
	}
	readErr := c.body.read(w)
	if !c.Route.Public && !c.Caller.HasAny(c.Route.Scopes) {
		return nil, lacksScope(slices.Clone(c.Route.Scopes))
	}
	if !c.Route.Public && c.Route.ByWorkspaces && c.Caller.OfOrganisation() {
		return nil, Denied()
	}
	if readErr != nil {
		return nil, readErr
	}
	raw, err := c.body.object()
	if err != nil {
		return nil, err
	}
	list, err := c.body.list()
	if err != nil {
		return nil, err
	}
	var p problems
	if !c.Route.Public {
		if err := locateAndCheckRole(c, raw, &p); err != nil {
			return nil, err
		}
	}
	if err := c.validate(w, raw, list, &p); err != nil {
		return nil, err
	}
	return c.handler.doOnce(c)
}

func (h *Handler) route(w http.ResponseWriter, c *Call) error {
	n, values := h.router.match(c.Request.URL.EscapedPath())
	if n == nil && c.Request.Method == http.MethodGet {
		n, values = h.router.matchList(c.Request.URL.EscapedPath())
	}
	if n == nil {
		c.rejections = h.rejectionsBelow(c.Request.URL.EscapedPath())
		return h.routeNotFound(c.Request.URL.EscapedPath())
	}
	b := n.routes[c.Request.Method]
	if b == nil {
		allowed := n.methods()
		c.rejections = n.routes[allowed[0]].route.Rejections
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		return methodNotAllowed(c.Request.Method, n)
	}
	c.Route, c.body = b.route, requestBody{request: c.Request, route: b.route}
	if get := n.routes[http.MethodGet]; get != nil {
		c.reads = get.route
	}
	c.params = make(map[string]string, len(values))
	for i, v := range values {
		c.params[b.names[i]] = v
	}
	return nil
}

// checkRole rejects a caller with a role below the route's, unless the settings decide for the
// role. Settings do not apply to owners.
func (c *Call) checkRole() error {
	if c.bound() {
		for _, scope := range c.Route.Scopes {
			allowed, decided, err := c.handler.deps.Permissions(c.Context, &c.Caller, scope)
			switch {
			case err != nil:
				return err
			case decided && !allowed:
				return Denied()
			case decided:
				return nil
			}
		}
	}
	if !c.Caller.AtLeast(c.Route.Role) {
		return Denied()
	}
	return nil
}

// RecentFor is the maximum age of a sign-in for routes with Recent.
const RecentFor = 15 * time.Minute

func (c *Call) signedInLately() error {
	if c.Caller.Since.IsZero() || c.Now.Sub(c.Caller.Since) <= RecentFor {
		return nil
	}
	return fault.New(fault.SignInAgain, "", "This call requires a sign-in within the last 15 minutes: sign in again and repeat it")
}

// Renew finds the caller again, for a response that lasts long. A credential that was
// revoked meanwhile, or that reaches elsewhere now, is rejected.
func (c *Call) Renew() error {
	caller, err := c.authenticate()
	if err != nil {
		return err
	}
	if caller.Scope != c.Caller.Scope || !caller.HasAny(c.Route.Scopes) {
		return Denied()
	}
	c.Caller = caller
	return c.checkRole()
}

func (c *Call) authenticate() (Caller, error) {
	if own := c.Route.Authenticate; own != nil {
		return own(c.Context, c.Request, c.RequestID)
	}
	r := c.Request
	if c.Route.KeyHeader && len(r.Header["X-Gateway-Api-Key"]) == 0 {
		without := *r // what else it has is no credential here
		without.Header = http.Header{}
		r = &without
	}
	return c.handler.deps.Authenticate(c.Context, r, c.RequestID)
}

// bound reports whether settings restrict the caller by its role.
func (c *Call) bound() bool {
	return c.Caller.Role != "" && c.handler.deps.Permissions != nil && rank[c.Caller.Role] < rank[Owner]
}

// Allows reports whether the caller may use a scope: whether it holds the scope and the
// settings do not take it from its role. bySettings reports that the settings allow it to
// the role, so that routes with the scope ask for no higher role.
func (c *Call) Allows(scope string) (ok, bySettings bool, err error) {
	if c.Caller.Scopes == nil || !c.Caller.Scopes.Has(scope) {
		return false, false, nil
	}
	if !c.bound() {
		return true, false, nil
	}
	allowed, decided, err := c.handler.deps.Permissions(c.Context, &c.Caller, scope)
	return allowed || !decided, allowed && decided, err
}

// AllowsView reports whether the settings let the caller see more than a route shows by default, such
// as tenant.SeeOthers. It is true if the settings do not cover it.
func (c *Call) AllowsView(what string) (bool, error) {
	if !c.bound() {
		return true, nil
	}
	allowed, decided, err := c.handler.deps.Permissions(c.Context, &c.Caller, what)
	return allowed || !decided, err
}

func textOf(raw map[string]json.RawMessage, name string) string {
	var s string
	if err := json.Unmarshal(raw[name], &s); err != nil {
		return ""
	}
	return s
}

func isText(raw json.RawMessage) bool {
	s := strings.TrimSpace(string(raw))
	return s == "null" || strings.HasPrefix(s, `"`)
}

// validate checks query and body and gives all errors at once, after those that
// p has already.
func (c *Call) validate(w http.ResponseWriter, raw map[string]json.RawMessage, list []map[string]json.RawMessage, p *problems) error {
	bodies := list
	if raw != nil {
		bodies = []map[string]json.RawMessage{raw}
	}
	before := len(p.list)
	if err := rejectUnknown(c, bodies, p); err != nil {
		return err
	}
	unknown := len(p.list) > before
	c.Query = checkQuery(c.Request.URL.RawQuery, c.Route.Query, p)
	if c.body.isList() {
		reportIgnored(w, c.checkEach(list, p))
	} else if c.Route.Body != nil && !c.Route.Unparsed {
		m := creating
		if c.Route.BodyMode != CompleteBody {
			m = updating
		}
		var ignored []string
		c.Body, ignored = checkFields(raw, c.Route.Body, m, p)
		reportIgnored(w, ignored)
		if c.Route.BodyMode == PartialBody && c.Body.Empty() && !unknown {
			p.add("", "the body names no field that can be changed; these can: %s", strings.Join(changeable(c.Route.Body), ", "))
		}
	}
	if f := fault.Invalids(p.list); f != nil {
		return f
	}
	if c.Route.MaxItems > 0 && !c.body.isList() {
		c.Items = []Values{c.Body}
	}
	return nil
}

// maxNamed is how many fields a message lists.
const maxNamed = 20

func changeable(fields []Field) (out []string) {
	for i := range fields {
		if updating.wanted(&fields[i]) && !fields[i].Fixed {
			out = append(out, fields[i].Name)
		}
	}
	if more := len(out) - maxNamed; more > 0 {
		out = append(out[:maxNamed:maxNamed], fmt.Sprintf("and %d more", more))
	}
	return out
}

// ignoredHeader names fields of the body that cannot be set by the request, and those that
// are unknown to a lenient one.
const ignoredHeader = "X-Gateway-Ignored-Fields"

func reportIgnored(w http.ResponseWriter, names []string) {
	var out []string
	for _, n := range names {
		if n == workspaceID || n == organisationID || len(out) == 10 {
			continue
		}
		clean := strings.Map(func(r rune) rune {
			if r > 0x20 && r < 0x7f && r != ',' {
				return r
			}
			return '?'
		}, clip(n))
		out = append(out, clean)
	}
	if len(out) > 0 {
		w.Header().Set(ignoredHeader, strings.Join(out, ", "))
	}
}
