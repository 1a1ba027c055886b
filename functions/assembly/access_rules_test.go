package assembly_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"gateway/shared/admin"
	"gateway/shared/identity"
	"gateway/shared/identity/membership"
	"gateway/shared/testkit/admintest/drive"
)

// accessRules are what testdata/access_rules.txt promises.
type accessRules struct {
	holders  map[string]string   // kinds of keys by scope
	families map[string][]string // scopes by the path of a collection
	routes   map[string][]string // scopes by method and path
	below    map[string][]string // scopes of all routes below a path
	also     map[string]string   // scope that a route needs beside one of those
	least    map[string]string   // role by method and path
	grants   map[string]bool     // routes that need, beside a scope, all that they give
	cells    map[string]string   // what a caller gets in spite of the rules, by row and caller
	used     map[string]bool     // lines that were of use
}

func readRules(t *testing.T) *accessRules {
	t.Helper()
	raw, err := os.ReadFile("testdata/access_rules.txt")
	if err != nil {
		t.Fatal(err)
	}
	r := &accessRules{holders: map[string]string{}, families: map[string][]string{}, routes: map[string][]string{}, below: map[string][]string{}, also: map[string]string{}, least: map[string]string{}, grants: grantingRoutes(t, whole), cells: map[string]string{}, used: map[string]bool{}}
	for l := range strings.Lines(string(raw)) {
		f := strings.Fields(l)
		if len(f) == 0 || f[0] == "#" {
			continue
		}
		switch rest := f[1:]; f[0] {
		case "scope":
			for _, a := range rest[1 : len(rest)-1] {
				r.holders[rest[0]+"."+a] = rest[len(rest)-1]
			}
		case "routes":
			r.families[rest[0]] = rest[1:]
		case "route":
			r.routes[rest[0]+" "+rest[1]] = rest[2:]
		case "also":
			r.also[rest[0]+" "+rest[1]] = rest[2]
		case "below":
			r.below[rest[0]] = rest[1:]
		case "role":
			r.least[rest[0]+" "+rest[1]] = rest[2]
		case "cell": // cell METHOD PATH [organisation] CALLER... = VALUE
			at := slices.Index(rest, "=")
			n := 2
			if rest[2] == "organisation" {
				n = 3
			}
			for _, caller := range rest[n:at] {
				r.cells[strings.Join(rest[:n], " ")+" "+caller] = rest[at+1]
			}
		default:
			t.Fatalf("testdata/access_rules.txt: %s", l)
		}
	}
	return r
}

// scopes are those of which a route needs one where what it is about is in a place.
func (r *accessRules) scopes(op *drive.Operation, place drive.Place) (out []string, known bool) {
	name := op.Method + " " + op.Path
	list, known := r.routes[name]
	action := ""
	for path, scopes := range r.below {
		if strings.HasPrefix(op.Path, path+"/") {
			name, list, known = path, scopes, true
		}
	}
	if known {
		r.used[name] = true
	} else {
		collection := op.Path
		for ; r.families[collection] == nil && collection != ""; collection = drive.Collection(collection) {
		}
		if list = r.families[collection]; collection == "" {
			return nil, false
		}
		r.used[collection] = true
		action = "." + actionOf(op, collection)
	}
	for _, s := range list {
		top, inside, levels := strings.Cut(s, "/")
		switch {
		case !levels:
			out = append(out, s+action)
		case len(drive.Variables(op.Path)) == 0 && op.Method == "GET": // a list of both
			out = append(out, top+action, inside+action)
		case place == drive.Organisation:
			out = append(out, top+action)
		default:
			out = append(out, inside+action)
		}
	}
	return out, true
}

func actionOf(op *drive.Operation, collection string) string {
	at := op.Path == collection
	switch {
	case op.Method == "GET" && at:
		return "list"
	case op.Method == "GET":
		return "read"
	case op.Method == "POST" && at:
		return "create"
	case op.Method == "DELETE" && drive.Collection(op.Path) == collection:
		return "delete"
	}
	return "update"
}

// may reports whether a kind of key may have a scope.
func (r *accessRules) may(c *caller, scope string) bool {
	if scope == admin.AnyScope {
		return true
	}
	holders := r.holders[scope]
	_, action, _ := strings.Cut(scope, ".")
	switch c.kind {
	case signedIn: // what their role allows; who runs the organization may all
		return runs(c) || strings.Contains(holders, "P") || slices.Contains(membership.ScopesOf(strings.TrimPrefix(c.role, "ws-")), scope)
	case identity.OrganisationService:
		return strings.Contains(holders, "A")
	case identity.WorkspaceService:
		return strings.Contains(holders, "S")
	case identity.WorkspaceUser:
		return strings.Contains(holders, "U")
	}
	return strings.Contains(holders, "U") || strings.Contains(holders, "S") && (action == "read" || action == "list")
}

// runs reports whether a caller can access the entire organization.
func runs(c *caller) bool {
	return c.kind == identity.OrganisationService || c.kind == signedIn && (c.role == "owner" || c.role == "org-admin")
}

// roles from the least; what changes something needs a manager.
var roles = []string{"member", "manager", "ws-admin", "org-admin", "owner"}

// want is what a caller must get: y or -.
func (r *accessRules) want(l *line, c *caller) string {
	at := l.name() + " " + c.name
	if cell, ok := r.cells[at]; ok {
		r.used[at] = true
		return cell
	}
	place := r.placeOf(l, c)
	if place == drive.Organisation && !runs(c) {
		return "-" // a resource of the organization or of another workspace
	}
	scopes, _ := r.scopes(l.op, place)
	if !slices.ContainsFunc(scopes, func(s string) bool { return r.may(c, s) }) {
		return "-"
	}
	least := "manager"
	if l.op.Method == "GET" {
		least = "member"
	}
	name := l.op.Method + " " + l.op.Path
	if role, ok := r.least[name]; ok {
		r.used[name+" role"] = true
		least = role
	}
	if c.role != "" && slices.Index(roles, c.role) < slices.Index(roles, least) {
		return "-"
	}
	return "y"
}

// placeOf is where a caller acts: where no workspace is named it is the key's own.
func (r *accessRules) placeOf(l *line, c *caller) drive.Place {
	if !runs(c) && len(drive.Variables(l.op.Path)) == 0 {
		return drive.Workspace
	}
	return l.place
}

// compare holds the matrix against the rules.
func (r *accessRules) compare(t *testing.T, lines []*line, all []caller) {
	t.Helper()
	for _, l := range lines {
		scopes, known := r.scopes(l.op, l.place)
		if !known {
			t.Errorf("%s: testdata/access_rules.txt says nothing about it", l.name())
			continue
		}
		for _, s := range scopes {
			if !slices.Contains(l.op.Scopes, s) {
				t.Errorf("%s: %s should do, and is not declared: %v", l.name(), s, l.op.Scopes)
			}
			if r.holders[s] == "" && s != admin.AnyScope {
				t.Errorf("%s: there is no scope %s", l.name(), s)
			}
		}
		for i := range all {
			want, got := r.want(l, &all[i]), l.cells[i]
			if want == "-" && got == "404" && l.place == drive.Organisation && !runs(&all[i]) {
				continue // a resource out of reach does not exist for the caller
			}
			if got != want && (want == "-" || got == "-") {
				t.Errorf("%s as %s: %s, and by the rules %s", l.name(), all[i].name, got, want)
			}
		}
	}
	for _, m := range []map[string][]string{r.families, r.routes, r.below} {
		for name := range m {
			if !r.used[name] {
				t.Errorf("testdata/access_rules.txt: %s is no route", name)
			}
		}
	}
	for name := range r.cells {
		if !r.used[name] {
			t.Errorf("testdata/access_rules.txt: the cell %s is none of the matrix", name)
		}
	}
	for name := range r.least {
		if !r.used[name+" role"] {
			t.Errorf("testdata/access_rules.txt: the role of %s is of no use", name)
		}
	}
	for s, kinds := range r.holders { // the table of the product is that of the rules
		for kind, letter := range map[identity.KeyType]string{identity.OrganisationService: "A", identity.WorkspaceService: "S", identity.WorkspaceUser: "U"} {
			if kind.Grantable(s) != strings.Contains(kinds, letter) {
				t.Errorf("the scope %s and keys of the kind %s: %v", s, kind, kind.Grantable(s))
			}
		}
	}
	for _, kind := range []identity.KeyType{identity.OrganisationService, identity.WorkspaceService, identity.WorkspaceUser} {
		for _, s := range identity.ScopesFor(kind) {
			if r.holders[s] == "" {
				t.Errorf("keys of the kind %s may hold %s, which the rules do not know", kind, s)
			}
		}
	}
}

// write is the matrix as a table.
func write(lines []*line, all []caller) string {
	var out strings.Builder
	fmt.Fprint(&out, "# What each kind of caller gets from each route, with all scopes that it may hold: y is\n"+
		"# served, - is refused with 403 AB03, a number is another status of a call that was let\n"+
		"# in. Rows of things that are the organization's, or another workspace's, end with\n"+
		"# organization. Without a workspace_id a key of a workspace acts in its own.\n"+
		"# Written by: go test ./functions/assembly -run AccessMatrix -update\n")
	width := 0
	for _, l := range lines {
		width = max(width, len(l.name()))
	}
	fmt.Fprintf(&out, "%-*s", width, "")
	for _, c := range all {
		fmt.Fprintf(&out, "  %s", c.name)
	}
	for _, l := range lines {
		fmt.Fprintf(&out, "\n%-*s", width, l.name())
		for i, c := range l.cells {
			fmt.Fprintf(&out, "  %-*s", len(all[i].name), c)
		}
		fmt.Fprintf(&out, "  %s", strings.Join(slices.Compact(slices.Sorted(slices.Values(l.op.Scopes))), " "))
	}
	return out.String() + "\n"
}
