package mockprovider

import (
	_ "embed"
	"strconv"
	"strings"
	"sync"
)

// collection is one kind of stored objects with its routes, as a file of objects.txtar
// describes it. A file consists of directives, one a line, and the template of an object:
//
//	at HOST PATH       where the collection is; {name} is a segment of the path
//	in KIND            the kind of the objects that the last variable of the path names
//	id PREFIX          the beginning of ids
//	create RULES       POST PATH makes an object; without it the kind's own handler does
//	change RULES       POST PATH/{id} replaces fields of the object
//	refer FIELD=KIND   objects that a body names; [] follows a list
//	input FIELD=KIND RULES   the file of a job, and the rules of its lines
//	model FIELD        the model of a job
//	states A B C       the state after so many reads; the last one finishes the object
//	stops A B          the same after a cancellation
//	cancel SUFFIX      POST PATH/{id}SUFFIX cancels
//	ended STATUS CODE MESSAGE   the error for canceling an object that has ended
//	missing STATUS PARAM CODE MESSAGE   the error for an unknown id, which replaces %s
//	gone JSON          DELETE PATH/{id} responds with it
//	created JSON       replaces the object in the response to POST; <object> is the object
//	canceled JSON     replaces the object in the response to a cancellation
//	filter PARAM=NAME  a list has only objects with this value
//	order asc          the standard order of a list is by age
//	page NAMES         the parameters limit=, max=, after=, before=, order= and number= of a list
//	list JSON          a list; <rows>, <first>, <last>, <more>
//	beta, poll, takes-model   flags: see the uses
type collection struct {
	kind                    string
	host, path, listPath    string
	in, id, order           string
	creates, changes, lines *rules
	refs, filters           [][2]string
	input                   [2]string
	model, cancel           string
	states, stops           []string
	ended, missing          *apiError
	page                    map[string]string
	flags                   map[string]bool
	object, list            template
	gone, made, cancelled   template
}

//go:embed objects.txtar
var objectsFile string

// collections are all kinds of stored objects, by their names.
var collections = sync.OnceValue(func() map[string]*collection {
	all := map[string]*collection{}
	for f := range strings.SplitSeq("\n"+objectsFile, "\n-- ") {
		if kind, data, ok := strings.Cut(f, " --\n"); ok {
			all[kind] = parseCollection(kind, data)
		}
	}
	return all
})

func parseCollection(kind, s string) *collection {
	c := &collection{kind: kind, order: "desc", cancel: "/cancel", flags: map[string]bool{}, page: map[string]string{"limit": "limit", "max": "100", "after": "after", "before": "before", "order": "order"},
		list: parseTemplate(`{"object":"list","data":[<rows>],"first_id":<first>,"last_id":<last>,"has_more":<more>}`)}
	for line := range strings.Lines(s) {
		if line[0] == '{' || line[0] == '<' { // the template is the rest of the file
			c.object = parseTemplate(s[strings.Index(s, "\n"+line):])
			break
		}
		key, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		words := strings.Fields(rest)
		switch key {
		case "at":
			c.host, c.path = words[0], words[1]
			c.listPath = words[len(words)-1]
		case "in":
			c.in = rest
		case "id":
			c.id = rest
		case "create":
			c.creates = parseRules(rest)
		case "change":
			c.changes = parseRules(rest)
		case "refer":
			c.refs = append(c.refs, pairs(words)...)
		case "filter":
			c.filters = append(c.filters, pairs(words)...)
		case "input":
			c.input, c.lines = pairs(words[:1])[0], parseRules(strings.Join(words[1:], " "))
		case "model":
			c.model = rest
		case "states":
			c.states = words
		case "stops":
			c.stops = words
		case "cancel":
			c.cancel = rest
		case "order":
			c.order = rest
		case "ended", "missing":
			status, _ := strconv.Atoi(words[0])
			e := &apiError{status: status}
			if words = words[1:]; key == "missing" {
				e.param, words = strings.Trim(words[0], "-"), words[1:]
			}
			e.code, e.message = strings.Trim(words[0], "-"), strings.Join(words[1:], " ")
			if key == "ended" {
				c.ended = e
			} else {
				c.missing = e
			}
		case "gone":
			c.gone = parseTemplate(rest)
		case "created":
			c.made = parseTemplate(rest)
		case "cancelled":
			c.cancelled = parseTemplate(rest)
		case "list":
			c.list = parseTemplate(rest)
		case "page":
			if c.page = nil; rest == "none" {
				break
			}
			c.page = map[string]string{}
			for _, p := range pairs(words) {
				c.page[p[0]] = p[1]
			}
		case "beta", "poll", "takes-model":
			c.flags[key] = true
		case "":
		default:
			panic(kind + ": unknown directive " + key)
		}
	}
	return c
}

func pairs(words []string) (out [][2]string) {
	for _, w := range words {
		name, val, _ := strings.Cut(w, "=")
		out = append(out, [2]string{name, val})
	}
	return out
}

// routesOf returns the operations of a host.
func routesOf(host string) []operation {
	var out []operation
	for _, c := range collections() {
		if c.host != host {
			continue
		}
		item := c.path + "/{id}"
		add := func(when bool, method, path string, handle func(*exchange) *apiError) {
			if when {
				out = append(out, operation{method, path, handle})
			}
		}
		own := behaviors[c.kind].create
		add(own != nil, "POST", c.path, own)
		add(own == nil && c.creates != nil, "POST", c.path, c.create)
		add(c.page != nil, "GET", c.listPath, c.all)
		add(true, "GET", item, c.one)
		add(c.changes != nil, "POST", item, c.update)
		add(c.gone != nil, "DELETE", item, c.remove)
		add(c.stops != nil || behaviors[c.kind].cancel != nil, "POST", item+c.cancel, c.stop)
	}
	return out
}

// behavior is what a kind does besides storing its objects. Each function may be nil; all but
// create are called while no other request changes objects.
type behavior struct {
	create  func(x *exchange) *apiError // serves POST of the collection
	check   func(x *exchange, n *resource) *apiError
	created func(x *exchange, n *resource)
	read    func(x *exchange, n *resource)
	changed func(x *exchange, n *resource, v value) *apiError
	cancel  func(x *exchange, n *resource) *apiError
	finish  func(x *exchange, n *resource) // the object has reached its last state
	filter  func(x *exchange, n *resource) bool
	listing func(x *exchange, parent string) *apiError // before a list is written
	values  map[string]func(x *exchange, n *resource) any
}
