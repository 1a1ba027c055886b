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

// steering says how to make one response and which faults it has.
type steering struct {
	status                             int
	retryAfter, errType, code, message string
	times                              int
	delay, pace, silenceFor            time.Duration
	drop, html, empty                  bool
	gzip, wrongLength                  bool
	cutAfter, cutMid, silent, garbage  int
	errorEvent                         string
	errorAfter                         int
	huge, hugeLine                     int
	splitUTF8, crlf, ping              bool
	noDone, noUsage                    bool
	finish, say                        string
	call, callArgs                     string
	reject, echo                       bool
	chunks, cached, reasoning, tools   int
	noTools, parallel, interleave      bool
	redacted, stopOnCancel             bool
}

func unsteered() steering {
	return steering{
		cutAfter: never, cutMid: never, silent: never, garbage: never, errorAfter: never,
		cached: never, reasoning: never, silenceFor: 30 * time.Second,
	}
}

// fields returns where the values of directives are stored, by name: *bool for a directive
// without a value, *int, *time.Duration and *string for the others.
func (st *steering) fields() map[string]any {
	return map[string]any{
		"drop": &st.drop, "html": &st.html, "empty": &st.empty, "gzip": &st.gzip, "wrong-length": &st.wrongLength,
		"split-utf8": &st.splitUTF8, "ping": &st.ping,
		"no-done": &st.noDone, "no-usage": &st.noUsage,
		"refuse": &st.reject, "echo": &st.echo, "no-tools": &st.noTools, "parallel": &st.parallel, "interleave": &st.interleave,
		"redacted": &st.redacted, "stop-on-cancel": &st.stopOnCancel,
		"status": &st.status, "times": &st.times, "after": &st.errorAfter, "huge": &st.huge,
		"chunks": &st.chunks, "cached": &st.cached, "reasoning": &st.reasoning, "huge-line": &st.hugeLine, "tools": &st.tools,
		"cut=after": &st.cutAfter, "cut=mid": &st.cutMid, "silence=after": &st.silent, "garbage=after": &st.garbage,
		"delay": &st.delay, "pace": &st.pace, "for": &st.silenceFor,
		"retry-after": &st.retryAfter, "type": &st.errType, "code": &st.code, "finish": &st.finish, "error-event": &st.errorEvent,
	}
}

// standard are the values of numbers that may be omitted.
var standard = map[string]string{"garbage": "after:0", "huge-line": "1048576", "tools": "1"}

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
	if !hasValue && standard[name] != "" {
		val, hasValue = standard[name], true
	}
	fields := st.fields()
	field := fields[name]
	if how, after, ok := strings.Cut(val, ":"); ok && fields[name+"="+how] != nil {
		field, val = fields[name+"="+how], after
	}
	var err error
	switch f := field.(type) {
	case *bool:
		*f = true
		if hasValue {
			field = nil
		}
	case *string:
		*f = val
	case *time.Duration:
		if *f, err = time.ParseDuration(val); err == nil && *f < 0 {
			err = strconv.ErrRange
		}
	case *int:
		if *f, err = strconv.Atoi(val); err == nil && *f < 0 {
			err = strconv.ErrRange
		}
	}
	if _, isSwitch := field.(*bool); field == nil || !hasValue && !isSwitch {
		return fmt.Errorf("mock: unknown directive %q", name)
	}
	if err != nil {
		return fmt.Errorf("mock: bad value in directive %q", name+"="+val)
	}
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

// faultFree removes the faults, and leaves how the response is made.
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
