package admin

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/fault/bound"
	"gateway/shared/fault/hint"
)

// Level says in which scope a route acts.
type Level uint8

const (
	// InWorkspace: in one workspace. Workspace keys act in their own;
	// organization keys name one as workspace_id, in the query or the body.
	InWorkspace Level = iota + 1
	// InOrganisation: in the organization; workspace keys are rejected.
	InOrganisation
	// InEither: in the workspace that is named or the key's own, else in the
	// organization.
	InEither
	// Shared: in the organization, also for workspace keys; the family restricts them to their
	// workspace's resources.
	Shared
)

// Route is one operation: everything the engine needs to serve, guard, record
// and document it.
type Route struct {
	Method  string
	Path    string   // such as /configs/{slug}; the form that is documented first
	Aliases []string // other paths with the same variables
	Name    string   // operationId
	Doc     string   // one sentence

	// Scopes are those of which a caller needs one. Empty is a mistake unless
	// Public is set.
	Scopes []string
	Public bool // no credential
	// OptionalAuth authenticates the caller of a public route that sends a valid credential.
	// Without one, or with an invalid one, Caller is empty.
	OptionalAuth bool
	Role         Role // least role of a user; empty: any
	// Recent requires users to have signed in within RecentFor. It does not apply to keys.
	Recent bool
	// KeyHeader takes the credential in x-gateway-api-key and in no other header.
	KeyHeader bool
	Level     Level
	// OrgKeyWithoutWorkspace routes accept organization keys without workspace_id although they are
	// InWorkspace: Do finds the workspace (see MoveByName) or covers all of them.
	OrgKeyWithoutWorkspace bool
	// LevelOf replaces Level if the path of the call determines it.
	LevelOf func(*Call) Level

	Query    []Field
	Body     []Field // top-level fields; nil: no body is read
	BodyMode BodyMode
	MaxBody  int64 // bytes; 0: DefaultMaxBody
	// Unparsed bodies are read as they are sent, in one of the media types of Consumes:
	// Do reads them, by Call.Raw. Body documents those that are JSON.
	Unparsed bool
	// Binary is a media type beside JSON of responses and rejections; "": none.
	Binary string
	// MaxItems means that the body is one object, or a list of at most so many; Call.Items
	// has them.
	MaxItems int

	// Params describe path variables that are no ids, such as the kinds of a thing.
	Params []Field
	// Makes is the path of the item that a create makes. Named contains OpenAPI runtime
	// expressions for its variables if the response does not have them, and the query that
	// shows the written version.
	Makes string
	Named map[string]string

	Status   int    // of a response; default 200
	Response Schema // of that status
	// ResponseOf returns a large Response while the document is generated, which most processes
	// never do.
	ResponseOf func() Schema
	Errors     []int // statuses to document beside those of every route

	// Where a route speaks another protocol than the administration: the media
	// types of responses and bodies, who its callers are, and how it rejects them.
	Produces     string
	Consumes     []string
	Authenticate Authenticate
	Rejections   *Rejections

	// Action and Resource are the names in the audit log. Methods that change something
	// must have both, unless what they write is not administration but data of clients:
	// Unrecorded. ByWorkspaces rejects keys of the organization.
	Action, Resource string
	Unrecorded       bool
	ByWorkspaces     bool

	// Do serves the call. What it gives is encoded as JSON and answered with
	// Status; nil is {}, an Answer is answered as it is, and a *Document answers.
	Do func(*Call) (any, error)

	mistake error // of the description that made the route
}

// BodyMode specifies how a body is checked.
type BodyMode uint8

const (
	CompleteBody BodyMode = iota // required fields must be there
	PartialBody                  // nothing is required, but one field must be given
	OptionalBody                 // nothing is required, and there may be no body
)

// Bounds of bodies, in bytes.
const DefaultMaxBody = 1 << 20

// Schema is a JSON schema (draft 2020-12) for the document.
type Schema map[string]any

// Family is a group of routes that is served and deployed as one.
type Family struct {
	Name   string
	Doc    string
	Routes []Route

	// For all routes that do not say it themselves.
	Produces     string
	Consumes     []string
	Authenticate Authenticate
	Rejections   *Rejections

	// Prefix is a path, such as /scim/, below which unknown paths are rejected as Unknown says.
	Prefix  string
	Unknown *Rejections
}

// validate finds mistakes of a description; they stop the start of a process.
func (r *Route) validate() error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("admin: route %s %s: %s", r.Method, r.Path, fmt.Sprintf(format, args...))
	}
	switch {
	case r.mistake != nil:
		return r.mistake
	case r.Do == nil:
		return bad("does nothing")
	case r.Name == "":
		return bad("has no name")
	case r.Public && (len(r.Scopes) > 0 || r.Role != "" || r.Level != 0):
		return bad("is public and guarded")
	case r.KeyHeader && (r.Public || r.Authenticate != nil):
		return bad("reads a key header of its own and also allows another form of authentication")
	case r.OptionalAuth && !r.Public:
		return bad("has optional authentication, although its scope requires a caller")
	case r.Public && r.Recent:
		return bad("is public and requires a recent sign-in")
	case !r.Public && len(r.Scopes) == 0:
		return bad("has no scope: either no caller or every caller could use it")
	case !r.Public && r.Level == 0:
		return bad("does not state the level at which it acts")
	case r.changes() && !r.Public && !r.Unrecorded && (r.Action == "" || r.Resource == ""):
		return bad("changes something and has no name for the audit log")
	}
	for _, p := range r.paths() {
		if variables(p) != variables(r.Path) {
			return bad("the alias %s has other variables", p)
		}
	}
	return nil
}

// changes reports whether calls of the route are recorded in the audit log.
func (r *Route) changes() bool { return r.Method != "GET" }

func (r *Route) paths() []string { return append([]string{r.Path}, r.Aliases...) }

func variables(path string) string {
	var out []string
	for _, seg := range strings.Split(path, "/") {
		if strings.HasPrefix(seg, "{") {
			out = append(out, seg)
		}
	}
	return strings.Join(out, "/")
}

// routeNotFound and methodNotAllowed are responses of the router.
func (h *Handler) routeNotFound(escapedPath string) *fault.Fault {
	meant := hint.SuggestPath(withoutVersion(escapedPath), h.paths)
	if meant == "" {
		meant = "; paths of the administration are never forwarded to a provider; its path of the same name is below /v1/proxy/"
	}
	return fault.New(fault.RouteNotFound, "", "There is no such route"+meant)
}

// methodNotAllowed also names the route with the method below the path, if there is one: many
// send POST to a list whose entries are made below it, or DELETE to a list.
func methodNotAllowed(method string, n *node) *fault.Fault {
	meant := ""
	if path := n.below(method, 2); path != "" {
		meant = "; did you mean " + method + " " + path + "?"
	}
	return fault.Newf(fault.MethodNotAllowed, "", "This route accepts %s, not %s%s", strings.Join(n.methods(), ", "), method, meant)
}

// required names the required fields of a body, for the message about an empty one.
func (r *Route) required() string {
	var names []string
	for i := range r.Body {
		if r.Body[i].Required && r.BodyMode == CompleteBody {
			names = append(names, r.Body[i].Name)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return " with " + strings.Join(names, ", ")
}

// described is what the routes of a collection need of its description, whatever it
// stores.
type described struct {
	path, item, param, object string
	aliases                   []string
	reads, writes             Role
	fields                    []Field
	listQuery, readQuery      []Field
	deleteBody                []Field
	latest                    bool // reads return a new version only if they request the latest one
}

// article returns a or an, by the sound of the names of resources.
func article(word string) string {
	first, _, _ := strings.Cut(word, " ")
	if strings.ContainsRune("aeioAEIO", rune(word[0])) || first == "MCP" || first == "SSO" { // but a user, a SCIM token
		return "an"
	}
	return "a"
}

var acronyms = map[string]string{"api": "API", "mcp": "MCP", "sso": "SSO", "scim": "SCIM"}

// nouns returns the singular and the plural by which summaries name a kind of resource, given
// its object: policy_usage_limits are usage limits policies.
func nouns(object string) (one, many string) {
	words := strings.Split(title(object), " ")
	if words[0] == "policy" && len(words) > 1 {
		words = append(words[1:], words[0])
	}
	for i, w := range words {
		if a := acronyms[w]; a != "" {
			words[i] = a
		}
	}
	one = strings.Join(words, " ")
	if stem, ok := strings.CutSuffix(one, "cy"); ok {
		return one, stem + "cies"
	}
	return one, one + "s"
}

type actionRoute struct {
	action string
	Route
}

// routes are list, create, read, update and delete, with what they answer.
func (d *described) routes(listed, created, read, updated func() Schema) []actionRoute {
	var itemAliases []string
	for _, a := range d.aliases {
		itemAliases = append(itemAliases, a+"/{"+d.param+"}")
	}
	word, words := nouns(d.object)
	id := operation(d.object)
	one := article(word) + " " + word
	routes := []actionRoute{
		{"list", Route{Method: "GET", Path: d.path, Aliases: d.aliases, Name: "list" + strings.TrimSuffix(id, "s") + "s", Doc: "List " + words + ".", Role: d.reads,
			Query: d.listQuery, ResponseOf: listed}},
		{"create", Route{Method: "POST", Path: d.path, Aliases: d.aliases, Name: "create" + id, Doc: "Create " + one + ".", Role: d.writes,
			Body: d.fields, ResponseOf: created, Action: audit.Create, Errors: []int{409}, Makes: d.item}},
		{"read", Route{Method: "GET", Path: d.item, Aliases: itemAliases, Name: "get" + id, Doc: "Read " + one + ".", Role: d.reads,
			Query: d.readQuery, ResponseOf: read}},
		{"update", Route{Method: "PUT", Path: d.item, Aliases: itemAliases, Name: "update" + id, Doc: "Change " + one + ": absent fields are unchanged, null clears a field.", Role: d.writes,
			Body: d.fields, BodyMode: PartialBody, ResponseOf: updated, Action: audit.Update, Errors: []int{409}}},
		{"delete", Route{Method: "DELETE", Path: d.item, Aliases: itemAliases, Name: "delete" + id, Doc: "Delete " + one + ".", Role: d.writes,
			Body: d.deleteBody, BodyMode: OptionalBody, Response: emptySchema, Action: audit.Delete, Errors: []int{409}}},
	}
	if d.latest {
		routes[1].Named = map[string]string{"version": latest}
	}
	return routes
}

// Instant is a time as responses write it, for responses that are Go values.
type Instant time.Time

// MarshalJSON gives RFC 3339, UTC, milliseconds; null for the zero time.
func (t Instant) MarshalJSON() ([]byte, error) { return json.Marshal(FormatTime(time.Time(t))) }

var (
	instantType = reflect.TypeFor[Instant]()
	numberType  = reflect.TypeFor[json.Number]()
)

// SchemaOf describes responses that are Go values, so that they are not written
// twice: an object has the fields of its struct and no other; those with
// omitempty may be absent, pointers may be null. The tags doc and enum count.
func SchemaOf[T any]() Schema { return schemaOf(reflect.TypeFor[T](), "", bound.Bound{}) }

// SchemaOfType is SchemaOf for a type that is not known when this is compiled.
func SchemaOfType(t reflect.Type) Schema { return schemaOf(t, "", bound.Bound{}) }

// MergeSchemas describes objects that have the fields of all of several schemas of
// SchemaOf.
func MergeSchemas(objects ...Schema) Schema {
	props, required := map[string]Schema{}, []string{}
	for _, s := range objects {
		maps.Copy(props, s["properties"].(map[string]Schema))
		required = append(required, s["required"].([]string)...)
	}
	slices.Sort(required)
	return Schema{"type": "object", "properties": props, "required": required, "additionalProperties": false}
}

func schemaOf(t reflect.Type, doc string, b bound.Bound) Schema {
	null := t.Kind() == reflect.Pointer
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	f := Field{Doc: doc, Type: typeOf(t), Enum: b.Enum}
	switch t {
	case instantType:
		f.Type = Timestamp
	case numberType:
		f.Type = Number
	}
	var s Schema
	switch f.Type {
	case Object:
		s = structSchema(t)
		if doc != "" {
			s["description"] = doc
		}
	case Array, Map:
		each := bound.Bound{}
		if b.Each != nil {
			each = *b.Each
		}
		member := map[Type]string{Array: "items", Map: "additionalProperties"}[f.Type]
		s = f.readSchema()
		s[member] = schemaOf(t.Elem(), "", each)
	default:
		s = f.readSchema()
	}
	if null {
		return nullable(s)
	}
	return s
}

func structSchema(t reflect.Type) Schema {
	members, err := bound.Members(t)
	if err != nil {
		panic("admin: " + err.Error()) // a mistake of the type, which its first test meets
	}
	props, required := map[string]Schema{}, []string{}
	for _, m := range members {
		props[m.Name] = schemaOf(m.Type, m.Doc, m.Bound)
		if !m.Optional() {
			required = append(required, m.Name)
		}
	}
	slices.Sort(required)
	return Schema{"type": "object", "properties": props, "required": required, "additionalProperties": false}
}
