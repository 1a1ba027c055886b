package chat

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"time"

	"gateway/shared/fault"
)

// LostField is a field that did not reach the provider or the client.
type LostField struct {
	Path     string // JSON path in the client's body, e.g. messages[2].content[1]
	Reason   string // short, without content of the request
	response bool   // the client will miss it in the response
}

// Loss reports what an encoder does not support. The zero Loss only reports.
type Loss struct {
	// Strict rejects a request that would lose anything.
	Strict bool
	// StrictResponse rejects a request that would lose something that the client expects in the
	// response (log probabilities, audio). It is set for clients that rely on the exact OpenAI
	// format.
	StrictResponse bool

	Entries    []LostField
	More       int  // losses after the first maxLost, without entries
	mustReject bool // AddResponse was called with StrictResponse

	// Response lists what the client does not receive of the provider's response, by the names of
	// the client's format. It is paid for and not a reason for a rejection.
	Response     []LostField
	MoreResponse int
}

// maxLost is the number of entries of a report.
const maxLost = 100

// Add and AddMissed are not inlined: most of their 300 callers are rarely executed.

// Add reports that path was not encoded.
//
//go:noinline
func (l *Loss) Add(path, reason string) { l.Entries = note(l.Entries, &l.More, path, reason) }

// AddMissed reports that path of the response does not reach the client.
//
//go:noinline
func (l *Loss) AddMissed(path, reason string) {
	l.Response = note(l.Response, &l.MoreResponse, path, reason)
}

// note adds a loss to a list, once per path.
func note(list []LostField, more *int, path, reason string) []LostField {
	for i := range list {
		if list[i].Path == path {
			return list
		}
	}
	if len(list) == maxLost {
		*more++
		return list
	}
	return append(list, LostField{Path: path, Reason: reason})
}

// AddResponse reports that the client will miss path in the response.
func (l *Loss) AddResponse(path, reason string) {
	l.Add(path, reason)
	for i := range l.Entries {
		if l.Entries[i].Path == path {
			l.Entries[i].response = true
		}
	}
	l.mustReject = l.mustReject || l.StrictResponse
}

// Reset clears the report for the next target.
func (l *Loss) Reset() {
	l.Entries, l.More, l.mustReject = l.Entries[:0], 0, false
	l.Response, l.MoreResponse = l.Response[:0], 0
}

// Empty reports whether nothing was lost in either direction.
func (l *Loss) Empty() bool { return len(l.Entries) == 0 && len(l.Response) == 0 }

// Err returns a 400 that names what would be lost if the report rejects the request, otherwise
// nil. It does not name losses that do not matter to the client.
func (l *Loss) Err() error {
	if len(l.Entries) == 0 || !l.Strict && !l.mustReject {
		return nil
	}
	why := l
	if !l.Strict {
		why = new(Loss)
		for _, e := range l.Entries {
			if e.response {
				why.Entries = append(why.Entries, e)
			}
		}
		if len(why.Entries) == 0 { // the reason is after the entries of the report
			why = l
		}
	}
	return fault.Newf(fault.TranslationLoss, why.Entries[0].Path, "The provider of this target cannot represent all of the request: %s", why.Header())
}

// ofResponse is the prefix of recorded paths of responses.
const ofResponse = "answer: "

// ResponsePath returns the path in the response of an entry of Paths. ok is false if the entry
// refers to the request.
func ResponsePath(lost string) (path string, ok bool) { return strings.CutPrefix(lost, ofResponse) }

// Paths returns the losses for the record: of the request, then of the response, see ResponsePath.
func (l *Loss) Paths() []string {
	if l.Empty() {
		return nil
	}
	paths := make([]string, 0, len(l.Entries)+len(l.Response))
	for i := range l.Entries {
		paths = append(paths, l.Entries[i].Path)
	}
	for i := range l.Response {
		paths = append(paths, ofResponse+l.Response[i].Path)
	}
	return paths
}

// maxHeader is the size limit of the header value in bytes.
const maxHeader = 2048

// Header returns the value of the x-gateway-translation header: "dropped=path (reason), path
// (reason)" of the request, "missed=path (reason)" of the response, separated by "; ". It is
// printable ASCII.
func (l *Loss) Header() string {
	var b strings.Builder
	header(&b, "dropped=", l.Entries, l.More)
	header(&b, "missed=", l.Response, l.MoreResponse)
	return b.String()
}

func header(b *strings.Builder, word string, list []LostField, more int) {
	if len(list) == 0 {
		return
	}
	if b.Len() > 0 {
		b.WriteString("; ")
	}
	b.WriteString(word)
	for i, e := range list {
		if b.Len()+len(e.Path)+len(e.Reason) > maxHeader {
			b.WriteString(", ...")
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		appendPrintable(b, e.Path)
		b.WriteString(" (")
		appendPrintable(b, e.Reason)
		b.WriteByte(')')
	}
	if more > 0 {
		b.WriteString(", and ")
		b.WriteString(strconv.Itoa(more))
		b.WriteString(" more")
	}
}

func appendPrintable(b *strings.Builder, s string) {
	for i := range len(s) {
		if c := s[i]; c >= 0x20 && c < 0x7f {
			b.WriteByte(c)
		} else {
			b.WriteByte('?')
		}
	}
}

// EffortOf returns the effort that corresponds to a budget of thinking tokens.
func EffortOf(budget int64) string {
	switch {
	case budget <= 2048:
		return "low"
	case budget <= 8192:
		return "medium"
	}
	return "high"
}

// FitBudget returns the budget of thinking tokens between least and most that is nearest to
// requested, and reports a change. Clients of other formats cannot know the limits of the target,
// so they get the nearest value instead of an error.
func FitBudget(requested, least, most int64, loss *Loss) int64 {
	fit := min(max(requested, least), most)
	if fit != requested {
		loss.Add("thinking.budget_tokens", "fitted to "+strconv.FormatInt(fit, 10)+" for this model")
	}
	return fit
}

// efforts are ordered from lowest to highest.
var efforts = [...]string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}

// EffortRank returns the position of an effort; unknown efforts come last.
func EffortRank(effort string) int {
	for i, w := range efforts {
		if w == effort {
			return i
		}
	}
	return len(efforts)
}

// Codes of provider errors that clients recognize, in addition to those of package fault. Their
// status is always set on the fault.
const (
	Overloaded        fault.Code = "overloaded"
	InsufficientQuota fault.Code = "insufficient_quota"
	ContextLength     fault.Code = "context_length_exceeded"
	ContentFilter     fault.Code = "content_filter"
)

// ProviderError is a provider's description of a failure. It is the cause of the fault that
// DecodeError returns.
type ProviderError struct {
	Status  int
	Type    string
	Param   string
	Code    string
	Message string
	Inner   json.RawMessage // further details that a client may need (innererror)
}

// Error is for logs. It omits the message, which may quote the request.
func (e *ProviderError) Error() string {
	return "provider responded with " + strconv.Itoa(e.Status) + " " + e.Type + " " + e.Code
}

// ProviderErrorOf returns the provider's error in err, or nil if the gateway created err.
func ProviderErrorOf(err error) *ProviderError {
	var p *ProviderError
	if errors.As(err, &p) {
		return p
	}
	return nil
}

// maxWait limits the wait that clients are told.
const maxWait = 24 * time.Hour

// CompleteFault completes the fault of an error response. Its status is the provider's, regardless of
// the error text, because configs and breakers list the statuses that the provider sends. A
// wait in the headers takes precedence over one in the text.
func CompleteFault(f *fault.Fault, status int, h http.Header) *fault.Fault {
	f.Source, f.StatusCode = fault.SourceProvider, ErrorStatus(status)
	if wait, _ := fault.ParseRetryAfter(h, time.Now(), maxWait); wait > 0 {
		f.RetryAfter = wait
	}
	return f
}

// ErrorStatus returns the status for a response that is not a success: the response's status if
// it is an error status, otherwise bad gateway.
func ErrorStatus(status int) int {
	if status >= 400 && status <= 599 {
		return status
	}
	return http.StatusBadGateway
}

// NotJSON returns the fault for an error response that is not JSON, from a proxy or the host's
// load balancer.
func NotJSON(status int, h http.Header) *fault.Fault {
	f := fault.New(fault.InvalidProviderResponse, "", "The provider responded with an error that is not JSON (status "+strconv.Itoa(status)+")")
	return CompleteFault(f, status, h)
}
