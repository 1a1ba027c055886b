package mockprovider

import (
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"
)

// never means that a fault is not wanted; 0 would mean "at once".
const never = -1

// steering says how to make one answer and which faults it has.
type steering struct {
	status                              int
	retryAfter, errType, code, message  string
	times                               int
	delay, pace, silenceFor             time.Duration
	drop, html, empty                   bool
	gzip, wrongLength                   bool
	cutAfter, cutMid, silent, garbage   int
	errorEvent                          string
	errorAfter                          int
	huge, hugeLine, dribble             int
	splitUTF8, crlf, bom, ping          bool
	multiData, noFinalBlank, noDone     bool
	noUsage, noRestate                  bool
	finish, say                         string
	call, callArgs                      string
	refuse, echo                        bool
	chunks, cached, reasoning, tools    int
	noTools, parallel, interleave       bool
	emptyArgs, redacted, reasoningShown bool
	stopOnCancel, strictFields          bool
}

func unsteered() steering {
	return steering{
		cutAfter: never, cutMid: never, silent: never, garbage: never, errorAfter: never,
		cached: never, reasoning: never, silenceFor: 30 * time.Second,
	}
}

// switches are the directives that have no value.
func (st *steering) switches(name string) *bool {
	switch name {
	case "drop":
		return &st.drop
	case "html":
		return &st.html
	case "empty":
		return &st.empty
	case "gzip":
		return &st.gzip
	case "wrong-length":
		return &st.wrongLength
	case "split-utf8":
		return &st.splitUTF8
	case "crlf":
		return &st.crlf
	case "bom":
		return &st.bom
	case "ping":
		return &st.ping
	case "multi-data":
		return &st.multiData
	case "no-final-blank":
		return &st.noFinalBlank
	case "no-done":
		return &st.noDone
	case "no-usage":
		return &st.noUsage
	case "no-restate":
		return &st.noRestate
	case "refuse":
		return &st.refuse
	case "echo":
		return &st.echo
	case "no-tools":
		return &st.noTools
	case "parallel":
		return &st.parallel
	case "interleave":
		return &st.interleave
	case "empty-args":
		return &st.emptyArgs
	case "redacted":
		return &st.redacted
	case "reasoning-content":
		return &st.reasoningShown
	case "stop-on-cancel":
		return &st.stopOnCancel
	case "strict-fields":
		return &st.strictFields
	}
	return nil
}

// number and duration return the field of a directive with such a value.
func (st *steering) number(name string) *int {
	switch name {
	case "status":
		return &st.status
	case "times":
		return &st.times
	case "after":
		return &st.errorAfter
	case "huge":
		return &st.huge
	case "dribble":
		return &st.dribble
	case "chunks":
		return &st.chunks
	case "cached":
		return &st.cached
	case "reasoning":
		return &st.reasoning
	case "huge-line":
		return &st.hugeLine
	case "tools":
		return &st.tools
	}
	return nil
}

func (st *steering) duration(name string) *time.Duration {
	switch name {
	case "delay":
		return &st.delay
	case "pace":
		return &st.pace
	case "for":
		return &st.silenceFor
	}
	return nil
}

func (st *steering) word(name string) *string {
	switch name {
	case "retry-after":
		return &st.retryAfter
	case "type":
		return &st.errType
	case "code":
		return &st.code
	case "finish":
		return &st.finish
	case "error-event":
		return &st.errorEvent
	}
	return nil
}

// read reads the directives of one line, without its "mock:".
func (st *steering) read(line string) error {
	for line = strings.TrimSpace(line); line != ""; line = strings.TrimSpace(line) {
		var token string
		if rest, ok := strings.CutPrefix(line, "say="); ok {
			st.say = rest
			return nil
		}
		if rest, ok := strings.CutPrefix(line, "call="); ok {
			st.call, st.callArgs, _ = strings.Cut(rest, " ")
			return nil
		}
		if rest, ok := strings.CutPrefix(line, "message="); ok {
			st.message = rest
			return nil
		}
		token, line, _ = strings.Cut(line, " ")
		name, val, hasValue := strings.Cut(token, "=")
		if err := st.set(name, val, hasValue); err != nil {
			return err
		}
	}
	return nil
}

func (st *steering) set(name, val string, hasValue bool) error {
	bad := fmt.Errorf("mock: bad value in directive %q", name+"="+val)
	if !hasValue {
		switch name {
		case "garbage":
			st.garbage = 0
			return nil
		case "huge-line":
			st.hugeLine = 1 << 20
			return nil
		case "tools":
			st.tools = 1
			return nil
		}
		if f := st.switches(name); f != nil {
			*f = true
			return nil
		}
		return fmt.Errorf("mock: unknown directive %q", name)
	}
	if f := st.word(name); f != nil {
		*f = val
		return nil
	}
	if f := st.duration(name); f != nil {
		d, err := time.ParseDuration(val)
		if err != nil || d < 0 {
			return bad
		}
		*f = d
		return nil
	}
	f := st.number(name)
	switch how, after, _ := strings.Cut(val, ":"); {
	case name == "cut" && how == "after":
		f, val = &st.cutAfter, after
	case name == "cut" && how == "mid":
		f, val = &st.cutMid, after
	case name == "silence" && how == "after":
		f, val = &st.silent, after
	case name == "garbage" && how == "after":
		f, val = &st.garbage, after
	}
	if f == nil {
		return fmt.Errorf("mock: unknown directive %q", name)
	}
	n, err := strconv.Atoi(val)
	if err != nil || n < 0 {
		return bad
	}
	*f = n
	return nil
}

// readText reads the directives of a message: the lines that begin with "mock:".
func (st *steering) readText(s string) error {
	for {
		i := strings.Index(s, "mock:")
		if i < 0 {
			return nil
		}
		atLineStart := strings.TrimLeft(s[strings.LastIndexByte(s[:i], '\n')+1:i], " \t") == ""
		s = s[i+len("mock:"):]
		if atLineStart {
			line, _, _ := strings.Cut(s, "\n")
			if err := st.read(line); err != nil {
				return err
			}
		}
	}
}

// withoutDirectives removes the steering lines from a text.
func withoutDirectives(s string) string {
	if !strings.Contains(s, "mock:") {
		return s
	}
	var keep []string
	for line := range strings.SplitSeq(s, "\n") {
		if !strings.HasPrefix(strings.TrimLeft(line, " \t"), "mock:") {
			keep = append(keep, line)
		}
	}
	return strings.Join(keep, "\n")
}

// splitModel separates a model's name from the directives after a question mark.
func splitModel(model string, st *steering) (string, error) {
	name, query, ok := strings.Cut(model, "?")
	if !ok {
		return model, nil
	}
	return name, st.read(strings.ReplaceAll(query, "&", " "))
}

// faultFree removes the faults, and leaves how the answer is made.
func (st *steering) faultFree() {
	clean := unsteered()
	st.status, st.delay, st.drop, st.html, st.empty = 0, 0, false, false, false
	st.gzip, st.wrongLength, st.errorEvent, st.errorAfter = false, false, "", never
	st.cutAfter, st.cutMid, st.silent, st.garbage = never, never, never, never
	st.huge, st.hugeLine, st.noDone, st.noUsage = 0, 0, false, false
	st.silenceFor = clean.silenceFor
}

// queuedFault waits for matching requests.
type queuedFault struct {
	Next       int    `json:"next"`
	Directives string `json:"directives"`
	Path       string `json:"path,omitempty"`
	Model      string `json:"model,omitempty"`
}

// faultQueue holds the faults that were ordered at /__mock/faults. It also counts how often
// a conversation with "times" has come.
type faultQueue struct {
	mu     sync.Mutex
	queued []queuedFault
	seen   map[uint64]int
}

func (q *faultQueue) add(f queuedFault) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queued = append(q.queued, f)
}

func (q *faultQueue) list() []queuedFault {
	q.mu.Lock()
	defer q.mu.Unlock()
	return append([]queuedFault{}, q.queued...)
}

func (q *faultQueue) reset() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.queued, q.seen = nil, nil
}

// take returns the directives for a request and counts them as used.
func (q *faultQueue) take(path, model string) string {
	q.mu.Lock()
	defer q.mu.Unlock()
	for i := range q.queued {
		f := &q.queued[i]
		if f.Path != "" && f.Path != path || f.Model != "" && f.Model != model {
			continue
		}
		directives := f.Directives
		if f.Next--; f.Next <= 0 {
			q.queued = append(q.queued[:i], q.queued[i+1:]...)
		}
		return directives
	}
	return ""
}

// maxSeen limits the conversations with requests counted for "times".
const maxSeen = 10_000

// spent reports whether a conversation's faults have occurred often enough.
func (q *faultQueue) spent(conversation uint64, times int) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.seen == nil || len(q.seen) >= maxSeen {
		q.seen = make(map[uint64]int)
	}
	q.seen[conversation]++
	return q.seen[conversation] > times
}
