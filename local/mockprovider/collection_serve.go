package mockprovider

import (
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// begin checks what all requests of a collection need, and returns the id of the parent: of
// the objects that contain the collection; below tells whether the path names an object.
func (c *collection) begin(x *exchange, below bool) (parent string, e *apiError) {
	if c.flags["beta"] {
		if e := beta(x); e != nil {
			return "", e
		}
	}
	if c.in == "" {
		return "", nil
	}
	at := len(x.vars) - 1
	if below {
		at--
	}
	parent = x.vars[at]
	if of := x.s.objects.get(c.in, parent); of == nil || at > 0 && of.parent != "" && of.parent != x.vars[at-1] {
		return "", collections()[c.in].notFound(parent)
	}
	return parent, nil
}

func (c *collection) notFound(id string) *apiError {
	if c.missing == nil {
		return notFound(strings.ReplaceAll(c.kind, "_", " "), id)
	}
	e := *c.missing
	e.message = strings.Replace(e.message, "%s", id, 1)
	return &e
}

// body reads and checks a body; it may be empty.
func (c *collection) body(x *exchange, r *rules) (value, *apiError) {
	v := value{kind: object}
	if len(x.body) > 0 {
		var e *apiError
		if v, e = parseBody(x); e != nil {
			return v, e
		}
	}
	if e := openAIError(r.check(v, "")); e != nil {
		return v, e
	}
	if e := checkMetadata(v); e != nil {
		return v, e
	}
	for _, ref := range c.refs {
		if e := refersTo(x, v, ref[0], ref[1]); e != nil {
			return v, e
		}
	}
	return v, nil
}

// refersTo checks that the objects exist whose ids are at a path of a body.
func refersTo(x *exchange, v value, path, kind string) *apiError {
	name, rest, more := strings.Cut(path, ".")
	name, each := strings.CutSuffix(name, "[]")
	list := []value{v.get(name)}
	if each {
		list = list[0].arr
	}
	for _, m := range list {
		switch {
		case more:
			if e := refersTo(x, m, rest, kind); e != nil {
				return e
			}
		case m.given() && x.s.objects.get(kind, m.s) == nil:
			return notFound(strings.ReplaceAll(kind, "_", " "), m.s)
		}
	}
	return nil
}

func (c *collection) create(x *exchange) *apiError {
	parent, e := c.begin(x, false)
	if e != nil {
		return e
	}
	v, e := c.body(x, c.creates)
	if e != nil {
		return e
	}
	if c.flags["takes-model"] {
		if e := takeModel(x, v); e != nil {
			return e
		}
	}
	n := &resource{kind: c.kind, parent: parent, scope: x.path[max(0, strings.Index(x.path, "projects/")):], body: v, model: x.model}
	if c.model != "" {
		n.model = v.at(c.model).s
	}
	if e := c.readInput(x, n); e != nil {
		return e
	}
	if check := behaviors[c.kind].check; check != nil {
		if e := check(x, n); e != nil {
			return e
		}
	}
	id, done, e := begin(x, c.id, c.kind+v.s+n.name)
	if done {
		return e
	}
	if n.id = id; c.id == "digits" {
		n.id = strconv.FormatInt(1_000_000+x.s.serial.Add(1), 10)
	}
	b := locked(x, func() []byte {
		keep(x, n)
		if created := behaviors[c.kind].created; created != nil {
			created(x, n)
		}
		if c.made != nil {
			return c.made.fill(nil, c.getter(x, n))
		}
		return c.write(x, n)
	})
	x.plain(id, b, Usage{})
	return nil
}

// readInput finds the file of a job and checks its lines.
func (c *collection) readInput(x *exchange, n *resource) *apiError {
	if c.lines == nil {
		return nil
	}
	id := n.body.at(c.input[0]).s
	in := x.s.objects.get(c.input[1], id)
	if n.name = id; in == nil || in.content == nil {
		return notFound("File", id)
	}
	for line := range strings.Lines(string(in.content)) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		row, err := parseJSON(strings.TrimSpace(line))
		if err != nil || row.kind != object {
			return badRequest(c.input[0], "", "a line is not a JSON object: "+line)
		}
		if v := c.lines.check(row, ""); v != nil {
			return badRequest(c.input[0], "", "a line is not valid at "+v.at+": "+line)
		}
	}
	return nil
}

// find calls do with the object that the path names, and responds with what it returns.
func (c *collection) find(x *exchange, do func(n *resource) ([]byte, *apiError)) *apiError {
	parent, e := c.begin(x, true)
	if e != nil {
		return e
	}
	x.s.objects.changes.Lock()
	n := x.s.objects.child(c.kind, parent, x.vars[len(x.vars)-1])
	b, e := []byte(nil), c.notFound(x.vars[len(x.vars)-1])
	if n != nil {
		b, e = do(n)
	}
	x.s.objects.changes.Unlock()
	if e != nil {
		return e
	}
	if c.flags["poll"] {
		x.w.Header()["Openai-Poll-After-Ms"] = []string{"1"}
	}
	return listed(x, b)
}

func (c *collection) one(x *exchange) *apiError {
	own := behaviors[c.kind]
	return c.find(x, func(n *resource) ([]byte, *apiError) {
		n.reads++
		states := c.states
		if n.stopped {
			states = c.stops
		}
		if own.finish != nil && n.reads == len(states)-1 {
			own.finish(x, n)
		}
		if own.read != nil {
			own.read(x, n)
		}
		return c.write(x, n), nil
	})
}

func (c *collection) update(x *exchange) *apiError {
	v, e := c.body(x, c.changes)
	if e != nil {
		return e
	}
	return c.find(x, func(n *resource) ([]byte, *apiError) {
		if changed := behaviors[c.kind].changed; changed != nil {
			if e := changed(x, n, v); e != nil {
				return nil, e
			}
		}
		n.body = n.body.with(v)
		return c.write(x, n), nil
	})
}

func (c *collection) remove(x *exchange) *apiError {
	return c.find(x, func(n *resource) ([]byte, *apiError) {
		x.s.objects.drop(n)
		return c.gone.fill(nil, c.getter(x, n)), nil
	})
}

func (c *collection) stop(x *exchange) *apiError {
	if len(x.body) > 0 && string(x.body) != "{}" || string(x.body) == "{}" && c.cancelled == nil {
		return badRequest("", "", "This request takes no body.")
	}
	return c.find(x, func(n *resource) ([]byte, *apiError) {
		if state := c.state(n); c.ended != nil && (state == c.states[len(c.states)-1] || state == c.stops[len(c.stops)-1]) {
			return nil, c.ended
		}
		if c.stops != nil {
			n.stopped, n.reads = true, 0
		}
		if own := behaviors[c.kind].cancel; own != nil {
			if e := own(x, n); e != nil {
				return nil, e
			}
		}
		if c.cancelled != nil {
			return c.cancelled.fill(nil, c.getter(x, n)), nil
		}
		return c.write(x, n), nil
	})
}

// state is the state of an object: the one that was set, or the one after so many reads.
func (c *collection) state(n *resource) string {
	states := c.states
	if n.stopped {
		states = c.stops
	} else if n.state != "" {
		return n.state
	}
	if states == nil {
		return ""
	}
	return states[min(n.reads, len(states)-1)]
}

func (c *collection) write(x *exchange, n *resource) []byte {
	return c.object.fill(nil, c.getter(x, n))
}

// getter returns the values of an object for templates: <.field> is a field of the body that
// made it, <.field JSON> one with its default.
func (c *collection) getter(x *exchange, n *resource) func(string) json.RawMessage {
	return func(name string) json.RawMessage {
		if path, ok := strings.CutPrefix(name, "."); ok {
			path, none, hasNone := strings.Cut(path, " ")
			if !hasNone {
				none = "null"
			}
			return n.body.at(path).source(none)
		}
		if name == "object" {
			return c.write(x, n)
		}
		if own := behaviors[c.kind].values[name]; own != nil {
			return appendJSON(nil, own(x, n))
		}
		return appendJSON(nil, c.field(n, name))
	}
}

func (c *collection) field(n *resource, name string) any {
	if base, plus, ok := strings.Cut(name, "+"); ok {
		seconds, _ := strconv.ParseInt(plus, 10, 64)
		if base == "iso" {
			return time.Unix(n.created+seconds, 120_000_000).UTC().Format("2006-01-02T15:04:05.000Z")
		}
		return n.created + seconds
	}
	switch name {
	case "id":
		return n.id
	case "parent":
		return n.parent
	case "path":
		return n.scope + "/" + n.id
	case "state":
		return c.state(n)
	case "stopped":
		return n.stopped
	case "reads":
		return n.reads
	case "name":
		return n.name
	case "purpose":
		return n.purpose
	case "model":
		return n.model
	case "size":
		return len(n.content)
	case "content":
		return string(n.content)
	case "raw":
		return json.RawMessage(n.content)
	case "output":
		return orNull(n.output)
	case "failed":
		return orNull(n.failed)
	case "rows":
		return n.rows
	case "good":
		return n.good
	case "bad":
		return n.rows - n.good
	case "input-tokens":
		return n.usage.Input
	case "output-tokens":
		return n.usage.Output
	case "total-tokens":
		return n.usage.Input + n.usage.Output
	}
	panic(c.kind + ": unknown name " + name)
}

// all lists the objects of a collection.
func (c *collection) all(x *exchange) *apiError {
	parent, e := c.begin(x, false)
	if e != nil {
		return e
	}
	q, err := url.ParseQuery(x.query)
	if err != nil {
		return badRequest("", "", "bad query")
	}
	limit := 20
	most, _ := strconv.Atoi(c.page["max"])
	if s := q.Get(c.page["limit"]); c.page["limit"] == "" {
		limit = maxObjects
	} else if s != "" || c.page["needs"] != "" {
		if limit, err = strconv.Atoi(s); err != nil || limit < 1 || limit > most {
			return badRequest(c.page["limit"], "invalid_value", "Invalid '"+c.page["limit"]+"': expected an integer between 1 and "+c.page["max"]+".")
		}
	}
	order := c.order
	if s := q.Get(c.page["order"]); c.page["order"] != "" && s != "" {
		if order = s; s != "asc" && s != "desc" {
			return unsupportedValue("order", s, "asc", "desc")
		}
	}
	if c.page["strict"] != "" {
		for name := range q {
			if name != c.page["limit"] && name != c.page["after"] && name != c.page["before"] {
				return invalid("%s: Extra inputs are not permitted", name)
			}
		}
	}
	own := behaviors[c.kind]
	if own.listing != nil {
		if e := own.listing(x, parent); e != nil {
			return e
		}
	}
	x.s.objects.changes.Lock()
	b, e := c.listed(x, q, parent, order, limit)
	x.s.objects.changes.Unlock()
	if e != nil {
		return e
	}
	return listed(x, b)
}

func (c *collection) listed(x *exchange, q url.Values, parent, order string, limit int) ([]byte, *apiError) {
	all := slices.DeleteFunc(x.s.objects.children(c.kind, parent), func(n *resource) bool {
		get := c.getter(x, n)
		for _, f := range c.filters {
			if want := q.Get(f[0]); want != "" && string(get(f[1])) != quoted(want) {
				return true
			}
		}
		own := behaviors[c.kind].filter
		return own != nil && !own(x, n)
	})
	if order == "desc" {
		slices.Reverse(all)
	}
	for _, name := range []string{"after", "before"} {
		id := q.Get(c.page[name])
		if c.page[name] == "" || id == "" {
			continue
		}
		at := slices.IndexFunc(all, func(n *resource) bool { return n.id == id })
		if at < 0 {
			return nil, badRequest(c.page[name], "invalid_value", "Invalid '"+c.page[name]+"': there is no "+id)
		}
		if name == "after" {
			all = all[at+1:]
		} else {
			all = all[:at]
		}
	}
	if c.page["number"] != "" {
		number, err := strconv.Atoi(q.Get(c.page["number"]))
		if err != nil || number < 0 {
			return nil, badRequest(c.page["number"], "", c.page["number"]+" must be a number")
		}
		all = all[min(number*limit, len(all)):]
	}
	more := len(all) > limit
	all = all[:min(len(all), limit)]
	var rows []byte
	var first, last any
	for i, n := range all {
		if last = n.id; i == 0 {
			first = n.id
		} else {
			rows = append(rows, ',')
		}
		rows = append(rows, c.write(x, n)...)
	}
	return c.list.fill(nil, func(name string) json.RawMessage {
		return appendJSON(nil, map[string]any{"rows": json.RawMessage(rows), "first": first, "last": last, "more": more}[name])
	}), nil
}

// at returns the value at a path of names and indexes, separated by periods. Negative indexes
// count from the end.
func (v value) at(path string) value {
	for name := range strings.SplitSeq(path, ".") {
		if i, err := strconv.Atoi(name); err == nil {
			if i < 0 {
				i += len(v.arr)
			}
			if i < 0 || i >= len(v.arr) {
				return value{}
			}
			v = v.arr[i]
			continue
		}
		v = v.get(name)
	}
	return v
}
