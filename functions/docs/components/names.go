package components

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

// nameSchemas names the schemas that have hashes as names. The name of a body consists of
// its operation and Request or Response; that of a read is its resource. A schema within
// another one has the name of that and of its field. A schema with several uses has the words
// that all of their names have. A small schema without such words is described in place.
func nameSchemas(doc map[string]any) {
	x := extraction{schemas: object(object(doc, "components"), "schemas")}
	banned := map[string]bool{}
	for {
		n := namer{schemas: x.schemas, uses: usesOf(doc), banned: banned, names: map[string]words{}, taken: map[string]string{}, fields: map[string]bool{}, unnamed: map[string]bool{}, depths: map[string]int{}}
		n.all()
		if len(n.unnamed) > 0 {
			x.inline(doc, func(ref string) bool { return n.unnamed[strings.TrimPrefix(ref, schemaRef)] })
			removeUnused(doc)
			continue
		}
		if n.ban() {
			continue
		}
		renameSchemas(doc, n.names)
		return
	}
}

// smallest is the size in bytes below which a schema without a common name is described in place.
const smallest = 200

type namer struct {
	schemas map[string]any
	uses    map[string][]use
	names   map[string]words
	taken   map[string]string // ids by name, in the singular but for the last word
	fields  map[string]bool   // names of the fields of responses, as keys of taken
	banned  map[string]bool   // id and name
	unnamed map[string]bool   // are to be described in place
	depths  map[string]int
}

// all names all schemas: the given ones first, then the bodies of one operation, other bodies, and
// their parts from the outside to the inside, those of responses before those of requests.
func (n *namer) all() {
	ranks, firsts := make(map[string]int, len(n.schemas)), make(map[string]string, len(n.schemas))
	for id := range n.schemas {
		ranks[id] = n.rank(id)
		if bodies := n.bodies(id); len(bodies) > 0 {
			firsts[id] = bodies[0].String()
		}
	}
	for _, id := range slices.SortedFunc(maps.Keys(n.schemas), func(a, b string) int {
		return cmp.Or(cmp.Compare(ranks[a], ranks[b]), cmp.Compare(len(n.uses[b]), len(n.uses[a])), strings.Compare(firsts[a], firsts[b]), strings.Compare(a, b))
	}) {
		n.name(id)
	}
}

func (n *namer) rank(id string) int {
	bodies := n.bodies(id)
	switch {
	case given(id):
		return 0
	case len(bodies) == 1:
		return 1
	case len(bodies) > 0:
		return 2
	case !n.sent(id):
		return 2 + 2*n.depth(id)
	}
	return 3 + 2*n.depth(id)
}

// depth is the length of the longest path from the body of an operation to a schema.
func (n *namer) depth(id string) int {
	if d, ok := n.depths[id]; ok {
		return d
	}
	d := 0
	for _, u := range n.uses[id] {
		if u.owner != "" {
			d = max(d, n.depth(u.owner)+1)
		}
	}
	n.depths[id] = d
	return d
}

// given reports whether a schema has a name already.
func given(id string) bool { return !strings.HasPrefix(id, unnamed) }

// name returns the name of a schema, nil for one that will be described in place.
func (n *namer) name(id string) words {
	if name, ok := n.names[id]; ok {
		return name
	}
	// What requests send in a field differs from what responses have there.
	input := len(n.bodies(id)) == 0 && n.sent(id)
	for _, name := range n.ladder(id) {
		if other, taken := n.taken[key(name)]; input && (n.fields[key(name)] || taken && !n.sent(other)) {
			name = name.and("Input")
		}
		if n.free(id, name) {
			n.names[id], n.taken[key(name)] = name, id
			if !n.sent(id) {
				n.record(id)
			}
			return name
		}
	}
	n.names[id], n.unnamed[id] = nil, true
	return nil
}

// record adds the fields of a schema of responses.
func (n *namer) record(id string) {
	subject := n.subject(id)
	within(n.schemas[id], nil, func(_ any, steps []step) {
		if len(steps) > 0 && steps[len(steps)-1].kind == property {
			n.fields[key(use{steps: steps}.follow(subject).once())] = true
		}
	})
}

func (n *namer) free(id string, name words) bool {
	_, taken := n.taken[key(name)]
	return !taken && !n.banned[id+" "+name.String()] && !endsInDigit(name.String())
}

// key is what names must not have in common: they differ by more than a plural within.
func key(name words) string {
	out := slices.Clone(name)
	for i := range len(out) - 1 {
		out[i] = singular(out[i])
	}
	return out.String()
}

func endsInDigit(name string) bool {
	return name != "" && name[len(name)-1] >= '0' && name[len(name)-1] <= '9'
}

// ladder returns possible names of a schema, the best first.
func (n *namer) ladder(id string) []words {
	if given(id) {
		return []words{{id}, {id, "Value"}}
	}
	bodies := n.bodies(id)
	names := bodies
	if len(names) == 0 || !n.read(id) {
		for _, u := range n.uses[id] {
			if u.owner != "" {
				names = append(names, n.within(u, id))
			}
		}
		names = distinct(names)
	}
	small := len(bodies) == 0 && len(canonical(n.schemas[id])) < smallest && !n.value(id)
	var out []words
	if shared := common(names).once(); len(names) > 1 && n.describes(shared, id, len(names), small) {
		out = append(out, shared)
		if schema, _ := n.schemas[id].(map[string]any); schema["type"] == "array" {
			out = append(out, shared.and("List"))
		}
	}
	if len(names) > 1 && small {
		return out
	}
	out = append(out, names...)
	if len(bodies) > 0 {
		return append(out, out[0].and("Body"))
	}
	for _, u := range n.uses[id] {
		out = append(out, u.follow(n.name(u.owner)).once())
	}
	return append(out, out[0].and("Value"))
}

// within names a schema after a use within another one. A plain value of a field with the name of
// a resource has both names, as it is not the resource.
func (n *namer) within(u use, id string) words {
	name := u.follow(n.subject(u.owner))
	once := name.once()
	schema, _ := n.schemas[id].(map[string]any)
	if other, taken := n.taken[key(once)]; taken && other != id && schema["properties"] == nil && len(once) < len(name) {
		return name
	}
	return once
}

// distinct returns the names in the order of their length, without repetitions.
func distinct(names []words) []words {
	slices.SortFunc(names, byLength)
	return slices.CompactFunc(names, slices.Equal)
}

// bodies are the names of the bodies of operations with a schema. Reads of one have the
// name of the resource, and precede others.
func (n *namer) bodies(id string) []words {
	var reads, others []words
	for _, u := range n.uses[id] {
		switch {
		case u.operation == nil:
		case u.reads():
			reads = append(reads, u.operation.resource())
		default:
			others = append(others, u.operation.and(u.role))
		}
	}
	if len(reads) > 0 {
		return distinct(reads)
	}
	return distinct(others)
}

// reads reports whether the schema is that of a resource.
func (u use) reads() bool {
	return u.role == responseRole && u.operation.verb() >= 0 && u.operation[u.operation.verb()] == "Get"
}

func (n *namer) read(id string) bool { return slices.ContainsFunc(n.uses[id], use.reads) }

// describes reports whether the common words of the names of several uses are a name: they say
// what is used, and those of a small schema say in which field.
func (n *namer) describes(shared words, id string, names int, small bool) bool {
	bodies := len(n.bodies(id)) > 0
	switch {
	case len(shared) == 0:
		return false
	case bodies && !shared.named():
		return names > 2 && slices.Contains(verbs, shared[0]) // all delete
	case bodies:
		return len(shared) > 2 || shared[len(shared)-1] != requestRole
	case !shared.named():
		return false
	}
	last := shared[len(shared)-1]
	for _, u := range n.uses[id] {
		field := u.field()
		if len(field) == 0 {
			field = n.subject(u.owner)
		}
		if len(shared) == 1 && (names < 3 || len(field) > 1) || small && !slices.ContainsFunc(field, func(word string) bool { return same(word, last) }) {
			return false
		}
	}
	return true
}

// subject is the beginning of the names of schemas within a schema.
func (n *namer) subject(id string) words {
	name := n.name(id)
	if len(n.bodies(id)) == 0 || n.read(id) || given(id) {
		return trim(name, "Input")
	}
	for _, role := range []string{requestRole, responseRole, rejectionRole} {
		name = trim(name, role)
	}
	return name.resource()
}

func trim(name words, last string) words {
	if len(name) > 1 && name[len(name)-1] == last {
		return name[:len(name)-1]
	}
	return name
}

// sent reports whether a schema is only in requests.
func (n *namer) sent(id string) bool {
	return !slices.ContainsFunc(n.uses[id], func(u use) bool {
		return u.owner == "" && u.role != requestRole || u.owner != "" && !n.sent(u.owner)
	})
}

// value reports whether a schema is that of values of a list that is one of several schemas.
func (n *namer) value(id string) bool {
	return slices.ContainsFunc(n.uses[id], func(u use) bool {
		return len(u.steps) > 0 && u.steps[len(u.steps)-1].kind == value
	})
}

// renameSchemas replaces the names of schemas.
func renameSchemas(doc map[string]any, names map[string]words) {
	schemas := object(object(doc, "components"), "schemas")
	replaceRefs(doc, func(ref map[string]any) any {
		if id, ok := strings.CutPrefix(refOf(ref), schemaRef); ok && names[id] != nil {
			ref["$ref"] = schemaRef + names[id].String()
		}
		return ref
	})
	renamed := make(map[string]any, len(schemas))
	for id, schema := range schemas {
		renamed[names[id].String()] = schema
	}
	doc["components"].(map[string]any)["schemas"] = renamed
}
