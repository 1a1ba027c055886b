package instrumentation

import (
	"slices"
	"strconv"
	"strings"

	"gateway/shared/pricing"
)

// field is what an attribute states about a request.
type field uint8

const (
	_ field = iota

	operation // of the conventions
	kind      // the sender's own word for the operation
	provider
	system // provider, in names that frameworks use for themselves as well
	requestedModel
	model
	finish
	response // id
	tier
	cost // in dollars

	input
	output
	total
	cacheRead
	cacheWrite
	cacheWrite5m
	cacheWrite1h
	reasoning
	textIn
	textOut
	audioIn
	audioCacheRead
	audioOut
	imageIn
	imageOut

	session
	user
	agent
	url
	stream
	first       // seconds to the first chunk
	firstMillis // the same in milliseconds
	firstAt     // time of the first chunk
	status
	errType
	errText
	level
	ours // log of the gateway

	question
	reply
	calls
	instructions
	tools
	metadataObject

	numFields
)

// Fields of names that have the same beginning.
const (
	questions field = numFields + iota
	replies
	toolList
	metadata
)

// slot is a field, and how good a name for it is: 0 is the best.
type slot struct {
	field field
	rank  uint16
}

// prefix is a beginning of names.
type prefix struct {
	text  string
	field field
}

// sender is a row in the form in which spans are read.
type sender struct {
	*row
	slots    map[string]slot
	objects  map[string]bool // attributes with JSON, and fields of it, that are parsed
	prefixes []prefix
}

// compiled has a reader for each row; the last one is for unknown senders.
var compiled = func() (all []sender) {
	for i := range table {
		all = append(all, compile(&table[i]))
	}
	return append(all, compile(&conventions))
}()

// compile makes the reader of a row: its own names come first, then those of the
// conventions, then those of all others.
func compile(of *row) sender {
	s := sender{row: of, slots: map[string]slot{}, objects: map[string]bool{}}
	var rank [numFields]uint16
	add := func(r *row) {
		for f := range numFields {
			for _, name := range r.names[f] {
				if _, known := s.slots[name]; known {
					continue
				}
				s.slots[name] = slot{f, rank[f]}
				rank[f]++
				if object, member, ok := strings.Cut(name, "#"); ok {
					s.objects[object] = true
					if outer, _, nested := strings.Cut(member, "."); nested {
						s.objects[object+"#"+outer] = true
					}
				}
			}
		}
		for _, f := range []field{questions, replies, toolList, metadata} {
			for _, text := range r.names[f] {
				if p := (prefix{text, f}); !slices.Contains(s.prefixes, p) {
					s.prefixes = append(s.prefixes, p)
				}
			}
		}
	}
	// Whom a request was for has the same precedence everywhere, by the conventions.
	common := row{names: map[field][]string{session: conventions.names[session][:1], user: conventions.names[user][:1]}}
	add(&common)
	add(of)
	add(&conventions)
	for i := range table {
		add(&table[i])
	}
	return s
}

// senderOf returns the sender of a span: that of its scope, else that of an attribute which
// only it uses, else the conventions.
func senderOf(scope string, has func(mark string) bool) *sender {
	best, length := -1, 0
	for i := range table {
		for _, of := range table[i].scopes {
			// A scope is a name or begins with it: "ai" does not identify "airflow".
			if rest, ok := strings.CutPrefix(scope, of); ok && len(of) > length && (rest == "" || strings.HasSuffix(of, "/") || strings.HasSuffix(of, ".") || strings.IndexByte("-._/", rest[0]) >= 0) {
				best, length = i, len(of)
			}
		}
	}
	if best >= 0 {
		return &compiled[best]
	}
	for i := range table {
		if slices.ContainsFunc(table[i].marks, has) {
			return &compiled[i]
		}
	}
	return &compiled[len(table)]
}

// allKinds are the kinds of all rows.
var allKinds = func() map[string]string {
	all := map[string]string{}
	for i := range table {
		for word, endpoint := range table[i].kinds {
			all[word] = endpoint
		}
	}
	return all
}()

// maxCount is the largest valid count; a larger one is ignored.
const maxCount = 1 << 40

// count is a field that counts something.
func (r *reader) count(f field) (n int64, known bool) {
	switch v := r.values[f].(type) {
	case int64:
		n = v
	case float64:
		n = int64(min(max(v, -1), maxCount+1))
	case string:
		var err error
		if n, err = strconv.ParseInt(v, 10, 64); err != nil {
			return 0, false
		}
	default:
		return 0, false
	}
	if n < 0 || n > maxCount {
		return 0, false
	}
	return n, true
}

// counted reports whether any tokens are counted.
func (r *reader) counted() bool {
	for f := input; f <= imageOut; f++ {
		if n, _ := r.count(f); n > 0 {
			return true
		}
	}
	return false
}

// usage splits the counts into the gateway's classes, which do not overlap.
func (r *reader) usage(endpoint string) (u pricing.Usage) {
	in, knowsIn := r.count(input)
	out, knowsOut := r.count(output)
	sum, knowsSum := r.count(total)
	read, knowsRead := r.count(cacheRead)
	written, hour := r.written()
	thought, knowsThought := r.count(reasoning)
	switch {
	case !knowsIn && !knowsOut && knowsSum && endpoint == operations["embeddings"]:
		in, knowsIn = sum, true
	case !knowsIn && !knowsOut && !knowsRead && written == 0 && !knowsThought:
		return u
	}
	cached := read + written
	besideCache, besideReasoning := r.besideCache, r.besideReasoning
	if knowsSum && r.row.total && knowsIn && knowsOut {
		besideCache, besideReasoning = bySum(in, cached, out, thought, sum, besideCache, besideReasoning)
	}
	// A part is never larger than the total.
	besideCache = besideCache || cached > in
	besideReasoning = besideReasoning || thought > out
	if !besideCache {
		in -= cached
	}
	if !besideReasoning {
		out -= thought
	}
	set := func(c pricing.Class, n int64) {
		if n > 0 {
			u.Set(c, n)
		}
	}
	// Kinds of tokens are parts of the rest, as far as there is one.
	part := func(c pricing.Class, f field, rest *int64) {
		n, _ := r.count(f)
		n = min(n, *rest)
		*rest -= n
		set(c, n)
	}
	part(pricing.AudioIn, audioIn, &in)
	part(pricing.ImageIn, imageIn, &in)
	part(pricing.AudioOut, audioOut, &out)
	part(pricing.ImageOut, imageOut, &out)
	u.Set(pricing.Input, in)
	u.Set(pricing.Output, out)
	part(pricing.AudioCacheRead, audioCacheRead, &read)
	set(pricing.CacheRead, read)
	set(pricing.CacheWrite5m, written-hour)
	set(pricing.CacheWrite1h, hour)
	set(pricing.Reasoning, thought)
	return u.Bounded()
}

// written are all tokens that were written to a cache, and those of them for an hour.
func (r *reader) written() (all, hour int64) {
	all, _ = r.count(cacheWrite)
	short, _ := r.count(cacheWrite5m)
	hour, _ = r.count(cacheWrite1h)
	return max(all, short+hour), hour
}

// bySum decides by the total whether parts are beside the counts: if the total is not what
// the sender's rule gives, but what one other rule gives, that one holds.
func bySum(in, cached, out, thought, sum int64, besideCache, besideReasoning bool) (cache, reasoning bool) {
	with := func(cache, reasoning bool) int64 {
		n := in + out
		if cache {
			n += cached
		}
		if reasoning {
			n += thought
		}
		return n
	}
	if with(besideCache, besideReasoning) == sum {
		return besideCache, besideReasoning
	}
	found := 0
	for _, c := range []bool{false, true} {
		for _, t := range []bool{false, true} {
			possible := (c || cached <= in) && (t || thought <= out)
			distinct := (cached > 0 || c == besideCache) && (thought > 0 || t == besideReasoning)
			if possible && distinct && with(c, t) == sum {
				cache, reasoning = c, t
				found++
			}
		}
	}
	if found == 1 {
		return cache, reasoning
	}
	return besideCache, besideReasoning
}
