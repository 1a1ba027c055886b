// Package placement is the single table of where a route runs: which family serves a
// method and a path, and whether that is a Lambda function, streamed or buffered, or the
// container. The infrastructure is generated from it, the edge routes by it, and the
// local -lambda mode follows it.
package placement

import (
	"bufio"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Place is where a route runs.
type Place string

// The places. The API itself rejects a Refused route.
const (
	Stream    Place = "stream"   // a Lambda function with a streamed response
	Buffered  Place = "buffered" // a Lambda function with a buffered response
	Container Place = "container"
	Refused   Place = "refused"
)

// NoFunction is the status of a route that no function can serve.
const NoFunction = 501

// NoUpgrade is the status for a WebSocket if its clients fall back to HTTP requests: they
// do so immediately after this status and retry after others.
const NoUpgrade = 426

// BalancerIdle is how long the load balancer in front of the container keeps an unused
// connection. The container must keep it longer: otherwise a request can arrive at a
// closing connection, and the balancer responds with 502.
const BalancerIdle = 4000 * time.Second

// AnyMethod is the method of a route that accepts all PassThroughMethods.
const AnyMethod = "*"

// PassThrough is the family of all paths without another family.
const PassThrough = "passthrough"

// PassThroughMethods are the methods that AnyMethod accepts.
var PassThroughMethods = []string{"DELETE", "GET", "POST", "PUT"}

// Route is a row of the table.
type Route struct {
	Method string
	// Path is below the base URL. {name} is one segment, {name+} at the end is one
	// or more.
	Path   string
	Family string
	Place  Place
	// WithoutContainer is where the route runs in installations without a container: a
	// Place, or Refused with Status.
	WithoutContainer Place
	Status           int // for Refused
}

//go:embed routes.txt
var text string

// Table returns the table, in the order of the file.
var Table = sync.OnceValue(func() []Route {
	routes, err := parse(text)
	if err != nil {
		panic("placement: " + err.Error()) // a test parses the same file
	}
	return routes
})

// Hash changes with the table.
func Hash() string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:6])
}

func parse(text string) ([]Route, error) {
	var routes []Route
	seen := map[string]bool{}
	sc := bufio.NewScanner(strings.NewReader(text))
	for n := 1; sc.Scan(); n++ {
		line, _, _ := strings.Cut(sc.Text(), "#")
		f := strings.Fields(line)
		if len(f) == 0 {
			continue
		}
		if len(f) < 4 || len(f) > 5 {
			return nil, fmt.Errorf("routes.txt:%d: want method, path, family, place and, for the container, what is without it", n)
		}
		r := Route{Method: f[0], Path: f[1], Family: f[2], Place: Place(f[3])}
		if err := r.without(f[4:]); err != nil {
			return nil, fmt.Errorf("routes.txt:%d: %w", n, err)
		}
		if !strings.HasPrefix(r.Path, "/") || seen[r.Method+r.Path] {
			return nil, fmt.Errorf("routes.txt:%d: %s %s is not a path or is listed twice", n, r.Method, r.Path)
		}
		seen[r.Method+r.Path] = true
		routes = append(routes, r)
	}
	return routes, nil
}

func (r *Route) without(column []string) error {
	switch r.Place {
	case Stream, Buffered:
		if len(column) > 0 {
			return fmt.Errorf("%s needs no container", r.Place)
		}
		r.WithoutContainer = r.Place
	case Container:
		if len(column) == 0 {
			return fmt.Errorf("what without a container?")
		}
		if r.WithoutContainer = Place(column[0]); r.WithoutContainer == Stream {
			return nil
		}
		status, err := strconv.Atoi(column[0])
		if err != nil || status < 400 || status > 599 {
			return fmt.Errorf("%q is neither stream nor a status", column[0])
		}
		r.WithoutContainer, r.Status = Refused, status
	default:
		return fmt.Errorf("no place %q", r.Place)
	}
	return nil
}

// Find returns the route of a method and an escaped path below the base URL, with API
// Gateway's precedence: a plain segment before a variable, that before a greedy one;
// AnyMethod accepts methods without a route of the path. A path of the administration
// belongs to its family with any method, and the family lists the allowed ones.
func Find(method, escapedPath string) (Route, bool) {
	segments := strings.Split(strings.TrimPrefix(escapedPath, "/"), "/")
	var best, owner Route
	found, owned := false, false
	for _, r := range Table() {
		if !r.matches(segments) {
			continue
		}
		if r.takes(method) && (!found || r.before(best)) {
			best, found = r, true
		}
		if r.Place == Buffered && (!owned || r.before(owner)) {
			owner, owned = r, true
		}
	}
	if owned && (!found || Greedy(best.Path[strings.LastIndexByte(best.Path, '/')+1:])) {
		owner.Method = AnyMethod
		return owner, true
	}
	return best, found
}

func (r *Route) takes(method string) bool {
	return r.Method == method || r.Method == AnyMethod && slices.Contains(PassThroughMethods, method)
}

func (r *Route) matches(segments []string) bool {
	pattern := strings.Split(r.Path[1:], "/")
	for i, p := range pattern {
		switch {
		case Greedy(p):
			return len(segments) > i
		case i >= len(segments):
			return false
		case Variable(p):
			if segments[i] == "" {
				return false
			}
		case p != segments[i]:
			return false
		}
	}
	return len(pattern) == len(segments)
}

// before reports whether r is more specific than s; both match the same path.
func (r *Route) before(s Route) bool {
	a, b := strings.Split(r.Path[1:], "/"), strings.Split(s.Path[1:], "/")
	for i := range min(len(a), len(b)) {
		if ra, rb := rank(a[i]), rank(b[i]); ra != rb {
			return ra < rb
		}
	}
	return r.Method != AnyMethod && s.Method == AnyMethod
}

func rank(segment string) int {
	switch {
	case Greedy(segment):
		return 2
	case Variable(segment):
		return 1
	}
	return 0
}

// Variable reports whether a segment of a Path matches any one segment.
func Variable(segment string) bool { return strings.HasPrefix(segment, "{") && !Greedy(segment) }

// Greedy reports whether a segment of a Path matches all following ones.
func Greedy(segment string) bool { return strings.HasSuffix(segment, "+}") }

// Families returns the families that run as functions, sorted, and their places.
func Families() (names []string, places map[string]Place) {
	places = map[string]Place{}
	for _, r := range Table() {
		if r.Status == NoFunction || r.Status == NoUpgrade {
			continue
		}
		if r.Place == Container {
			places[r.Family] = Stream
		} else {
			places[r.Family] = r.Place
		}
	}
	for name := range places {
		names = append(names, name)
	}
	slices.Sort(names)
	return names, places
}
