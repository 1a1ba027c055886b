package usage

import (
	"encoding/binary"
	"slices"
	"strconv"

	"gateway/shared/pricing"
)

// Agent locates a request within a coding agent's work, as reported by its client.
type Agent struct {
	Session, ID, Parent string
}

// Numbers of the notes of version 6. A number is never reused, and readers ignore unknown
// numbers, so a new note needs no new version.
const (
	notedSession = iota + 1
	notedAgent
	notedParentAgent
	notedCall      // encoded by Call.append
	notedRunning   // in decimal
	notedRejection // encoded by Refusal.append
	notedReported
	notedMeasured    // encoded by appendMeasured
	notedCredentials // encoded by appendCredentials
	notedServers     // encoded by appendServers
)

// notes returns the text notes, indexed by number.
func (r *Record) notes() [notedParentAgent]*string {
	return [...]*string{&r.Agent.Session, &r.Agent.ID, &r.Agent.Parent}
}

// needsNotes reports whether only version 6 can represent the record.
func (r *Record) needsNotes() bool {
	return r.Agent != Agent{} || r.Call != nil || r.Running != 0 || r.Refusal != nil || r.Reported || len(r.Measured) > 0 || r.namesCredentials() || r.namesServers()
}

// appendNotes appends the part of version 6: numbers, each with its text.
func (r *Record) appendNotes(b []byte) []byte {
	n := uint64(0)
	for _, text := range r.notes() {
		if *text != "" {
			n++
		}
	}
	if r.Call != nil {
		n++
	}
	if r.Running != 0 {
		n++
	}
	if r.Refusal != nil {
		n++
	}
	if r.Reported {
		n++
	}
	if len(r.Measured) > 0 {
		n++
	}
	if r.namesCredentials() {
		n++
	}
	if r.namesServers() {
		n++
	}
	b = binary.AppendUvarint(b, n)
	for i, text := range r.notes() {
		if *text != "" {
			b = appendString(binary.AppendUvarint(b, uint64(i+1)), *text)
		}
	}
	if r.Call != nil {
		b = appendString(binary.AppendUvarint(b, notedCall), string(r.Call.append(nil)))
	}
	if r.Running != 0 {
		b = appendString(binary.AppendUvarint(b, notedRunning), strconv.FormatInt(int64(r.Running), 10))
	}
	if r.Refusal != nil {
		b = appendString(binary.AppendUvarint(b, notedRejection), string(r.Refusal.append(nil)))
	}
	if r.Reported {
		b = appendString(binary.AppendUvarint(b, notedReported), "")
	}
	if len(r.Measured) > 0 {
		b = appendString(binary.AppendUvarint(b, notedMeasured), string(appendMeasured(nil, r.Measured)))
	}
	if r.namesCredentials() {
		b = appendString(binary.AppendUvarint(b, notedCredentials), string(appendCredentials(nil, r.Attempts)))
	}
	if r.namesServers() {
		b = appendServers(binary.AppendUvarint(b, notedServers), r.Attempts)
	}
	return b
}

// namesCredentials reports whether an attempt used one of several credentials.
func (r *Record) namesCredentials() bool {
	for i := range r.Attempts {
		if r.Attempts[i].Credential != "" {
			return true
		}
	}
	return false
}

// appendCredentials appends the label of the credential of each attempt.
func appendCredentials(b []byte, list []Attempt) []byte {
	for i := range list {
		b = appendString(b, list[i].Credential)
	}
	return b
}

// credentials reads the output of appendCredentials.
func (c *cursor) credentials(r *Record) {
	for i := range r.Attempts {
		r.Attempts[i].Credential = c.str()
	}
}

// namesServers reports whether an attempt called a server.
func (r *Record) namesServers() bool {
	return slices.ContainsFunc(r.Attempts, func(a Attempt) bool { return a.Server != "" })
}

// appendServers appends the server of each attempt, as one text.
func appendServers(b []byte, list []Attempt) []byte {
	if len(list) == 1 && len(list[0].Server) < 127 { // the usual record needs no second buffer
		return appendString(append(b, byte(len(list[0].Server)+1)), list[0].Server)
	}
	var all []byte
	for i := range list {
		all = appendString(all, list[i].Server)
	}
	return appendString(b, string(all))
}

// servers reads the output of appendServers.
func (c *cursor) servers(r *Record) {
	for i := range r.Attempts {
		r.Attempts[i].Server = c.str()
	}
}

// append appends the fields of a rejection. New fields must be appended after them.
func (f *Refusal) append(b []byte) []byte {
	for _, s := range [...]string{f.Subject, f.ID, f.Entity, f.Type, f.Unit} {
		b = appendString(b, s)
	}
	return binary.AppendVarint(b, f.Needed)
}

// rejection reads the output of append.
func (c *cursor) rejection(r *Record) {
	f := new(Refusal)
	for _, s := range [...]*string{&f.Subject, &f.ID, &f.Entity, &f.Type, &f.Unit} {
		*s = c.str()
	}
	f.Needed, r.Refusal = c.int(), f
}

// notes reads the output of appendNotes.
func (c *cursor) notes(r *Record) {
	to := r.notes()
	for range c.count(2) {
		number, text := c.uint(), c.str()
		switch {
		case number >= 1 && number <= uint64(len(to)):
			*to[number-1] = text
		case number == notedCall:
			within := cursor{rest: text}
			within.call(r)
			c.bad = c.bad || within.bad
		case number == notedRejection:
			within := cursor{rest: text}
			within.rejection(r)
			c.bad = c.bad || within.bad
		case number == notedMeasured:
			within := cursor{rest: text}
			within.measured(r)
			c.bad = c.bad || within.bad
		case number == notedCredentials:
			within := cursor{rest: text}
			within.credentials(r)
			c.bad = c.bad || within.bad
		case number == notedServers:
			within := cursor{rest: text}
			within.servers(r)
			c.bad = c.bad || within.bad
		case number == notedReported:
			r.Reported = true
		case number == notedRunning:
			n, err := strconv.ParseInt(text, 10, 64)
			r.Running, c.bad = pricing.NanoDollars(n), c.bad || err != nil || n == 0
		}
	}
}

// append appends the fields of a call. New fields must be appended after them.
func (c *Call) append(b []byte) []byte {
	for _, s := range [...]string{c.Protocol, c.Server, c.Method, c.Name, c.Auth, c.Decision} {
		b = appendString(b, s)
	}
	b = binary.AppendVarint(append(b, flags(c.Refreshed, false, false, false)), c.Code)
	b = append(appendString(b, c.Version), flags(c.Failed, false, false, false))
	later := [...]string{c.Virtual, c.Gateway, c.Scope}
	count := len(later)
	for count > 0 && later[count-1] == "" {
		count--
	}
	for _, s := range later[:count] {
		b = appendString(b, s)
	}
	return b
}

// call reads the output of append.
func (c *cursor) call(r *Record) {
	r.Call = new(Call)
	for _, s := range [...]*string{&r.Call.Protocol, &r.Call.Server, &r.Call.Method, &r.Call.Name, &r.Call.Auth, &r.Call.Decision} {
		*s = c.str()
	}
	c.flags(&r.Call.Refreshed)
	r.Call.Code = c.int()
	if c.rest == "" { // an older version without the remaining fields
		return
	}
	r.Call.Version = c.str()
	c.flags(&r.Call.Failed)
	for _, s := range [...]*string{&r.Call.Virtual, &r.Call.Gateway, &r.Call.Scope} {
		if c.rest == "" || c.bad {
			break
		}
		*s = c.str()
	}
}

// What a strategy compares.
const (
	ByLatency = "latency"
	ByCost    = "cost"
	ByLoad    = "least_busy"
)

// Why a strategy that compares figures chose a target.
const (
	ReasonBest       = "lowest"
	ReasonTie        = "tie"              // one of several equals
	ReasonExplore    = "explore"          // to measure it again
	ReasonTooFew     = "too_few_observed" // to have enough observations
	ReasonUnknown    = "no_figures"       // nothing was known of any target
	ReasonAllFailing = "all_failing"      // all targets were failing
	ReasonSticky     = "sticky"           // an earlier request with the same values went there
	ReasonRecorded   = "as_recorded"      // a simulation repeats the choice
)

// Measured is one choice by figures: Path is the place of the strategy, By what it
// compares, Chosen the index of the target.
type Measured struct {
	Path, By string
	Index    int
	Reason   string
	Figures  []Figure
}

// Figure is the measured value of one target. Value is the compared number: nanoseconds
// of latency, nano-dollars or requests in flight; -1 if unknown.
type Figure struct {
	Index    int
	Value    int64
	Observed int // latencies of the request's class
	InFlight int
	Avoided  bool // it had failed
}

// appendMeasured appends choices by figures. New fields must be appended after them.
func appendMeasured(b []byte, list []Measured) []byte {
	b = binary.AppendUvarint(b, uint64(len(list)))
	for i := range list {
		m := &list[i]
		b = binary.AppendVarint(appendString(appendString(appendString(b, m.Path), m.By), m.Reason), int64(m.Index))
		b = binary.AppendUvarint(b, uint64(len(m.Figures)))
		for j := range m.Figures {
			f := &m.Figures[j]
			b = binary.AppendVarint(binary.AppendVarint(b, int64(f.Index)), f.Value)
			b = append(binary.AppendVarint(binary.AppendVarint(b, int64(f.Observed)), int64(f.InFlight)), flags(f.Avoided, false, false, false))
		}
	}
	return b
}

// measured reads what appendMeasured wrote.
func (c *cursor) measured(r *Record) {
	n := c.count(5)
	if n == 0 {
		return
	}
	r.Measured = make([]Measured, n)
	for i := range r.Measured {
		m := &r.Measured[i]
		m.Path, m.By, m.Reason, m.Index = c.str(), c.str(), c.str(), int(c.int())
		if n := c.count(5); n > 0 {
			m.Figures = make([]Figure, n)
		}
		for j := range m.Figures {
			f := &m.Figures[j]
			f.Index, f.Value, f.Observed, f.InFlight = int(c.int()), c.int(), int(c.int()), int(c.int())
			c.flags(&f.Avoided)
		}
	}
}

// MeasuredShown is a choice by figures as the API shows it.
type MeasuredShown struct {
	Path     string        `json:"path"`
	Strategy string        `json:"strategy" enum:"latency,cost,least_busy"`
	Index    int           `json:"chosen"`
	Reason   string        `json:"reason" enum:"lowest,tie,explore,too_few_observed,no_figures,all_failing,sticky,as_recorded"`
	Figures  []FigureShown `json:"figures" doc:"Figures of up to 10 targets."`
}

// FigureShown is what a choice knew of one target.
type FigureShown struct {
	Index    int      `json:"index"`
	Value    *float64 `json:"value" doc:"The compared figure; null: unknown."`
	Unit     string   `json:"unit" enum:"ms,cents,requests"`
	Observed int      `json:"observations" doc:"Latencies of requests of this size."`
	InFlight int      `json:"in_flight"`
	Avoided  bool     `json:"avoided" doc:"It was avoided because it had failed recently."`
}

// DescribeMeasured shows choices by figures.
func DescribeMeasured(list []Measured) []MeasuredShown {
	out := make([]MeasuredShown, len(list))
	for i := range list {
		m := &list[i]
		out[i] = MeasuredShown{Path: m.Path, Strategy: m.By, Index: m.Index, Reason: m.Reason, Figures: make([]FigureShown, len(m.Figures))}
		for j := range m.Figures {
			out[i].Figures[j] = m.Figures[j].Describe(m.By)
		}
	}
	return out
}

// Describe shows one figure of what a strategy compares.
func (f Figure) Describe(by string) FigureShown {
	out := FigureShown{Index: f.Index, Unit: "requests", Observed: f.Observed, InFlight: f.InFlight, Avoided: f.Avoided}
	scale := 1.0
	switch by {
	case ByLatency:
		out.Unit, scale = "ms", 1e6
	case ByCost:
		out.Unit, scale = "cents", 1e7
	}
	if f.Value >= 0 {
		v := float64(f.Value) / scale
		out.Value = &v
	}
	return out
}
