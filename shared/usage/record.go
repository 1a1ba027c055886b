package usage

import (
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"gateway/shared/pricing"
)

// Record is the usage record of one data-plane request: created once by the relay after
// the last byte was sent, then immutable. A request that tried several targets has one
// record with several Attempts.
type Record struct {
	ID    string    // ULID created at arrival; the log id and the event id. Its time is Start
	Start time.Time // arrival

	// Identity.
	Org, Workspace         string // ids
	WorkspaceSlug          string
	KeyID, KeyType         string // organization-service, workspace-service, workspace-user, jwt
	KeyName                string // for metrics of the same process: it is not stored
	UserID                 string
	EndUser                string            // metadata _user
	Metadata               map[string]string // effective metadata after the merge
	TraceID, SpanID        string
	ParentSpanID, SpanName string
	Agent                  Agent

	// Request.
	Endpoint      string // request type: chatComplete, complete, embed, messages, proxy, ...
	Method        string
	Path          string // as called, without query
	RequestModel  string // as named by the client, without @slug/
	Stream        bool
	RequestBytes  int64
	ResponseBytes int64
	ClientStatus  int // status sent to the client
	ClientGone    bool

	// Decision inputs, for explain.
	ConfigID, ConfigSlug string
	ConfigVersion        int64
	Mode                 string     // single, loadbalance, fallback, conditional; empty without a config
	Draws                []Draw     // random draws, in order
	Measured             []Measured // choices by figures, in order
	Breakers             []Breaker
	Matches              []Match // conditional strategies, in order
	Skips                []Skip  // targets not called, in order
	Guards               []Guard // guardrails that ran, in order
	PromptID, PromptSlug string  // see SetPrompt

	Reported bool // reported by another system's telemetry: the request did not pass through the gateway

	Call *Call // of a protocol without models; nil otherwise

	// Outcome.
	Provider       string // type name, e.g. openai
	ProviderSlug   string // saved provider, without @; empty for direct credentials
	IntegrationID  string
	Model          string // reported by the provider, else as sent
	OptionIndex    string // config.targets[1].targets[0]; "config" for a flat one
	RetryCount     int    // value of x-gateway-retry-attempt-count
	CacheStatus    string // HIT, SEMANTIC HIT, MISS, SEMANTIC MISS, REFRESH, DISABLED
	FinishReason   string // in the provider's terms
	Losses         []string
	ErrorCode      string // fault code or the provider's code
	ErrorMessage   string
	Refusal        *Refusal // the limit that rejected the request; nil if none did
	Unconfirmed    bool     // settled by repair, not by a response
	Cost           pricing.NanoDollars
	Priced         bool                // false if a price is unknown and Cost omits it
	Book           string              // version of the price list; empty without Tariff
	Tariff         string              // price list entries used for Cost, separated by "; "
	CacheSaved     pricing.NanoDollars // provider cost avoided by a cache hit
	Running        pricing.NanoDollars // cost of running the gateway; 0 if not counted per request
	Usage          pricing.Usage       // sum over the attempts
	Attempts       []Attempt
	SettleSubjects []Settle // budgets reserved by this request; the worker repeats the settlement

	// Timing, from arrival.
	TimeToFirstByte time.Duration // to the first byte sent to the client
	Duration        time.Duration // to the last byte
	UpstreamLatency time.Duration // of the responding attempt: dispatch to response head
	GatewayTime     time.Duration // Duration minus the time spent waiting for the provider

	// Bodies, sealed by the relay before they leave the request. Larger than
	// MaxInlineBody: in Blob.
	Bodies []byte
	Blob   string // key in the bucket if Bodies is empty
	// Pack locates the bodies in a journal's file if both are empty. It is not part of
	// the event.
	Pack Pack
}

// EndpointSpan is the endpoint of records of stored trace spans that are not requests;
// analytics ignore them.
const EndpointSpan = "span"

// Pack is a byte range of an object in the bucket.
type Pack struct {
	Key            string // "" if none
	Offset, Length int64
}

// Success reports whether the client received a status from 200 to 299, or a session,
// with status 101. A truncated response has the status of its failure.
func (r *Record) Success() bool {
	return r.ClientStatus >= 200 && r.ClientStatus <= 299 || r.ClientStatus == http.StatusSwitchingProtocols
}

// AnsweringModel returns the model that responded, or the requested one if unknown.
func (r *Record) AnsweringModel() string {
	if r.Model == "" {
		return r.RequestModel
	}
	return r.Model
}

// Fallback reports whether a later target of a fallback responded: the last index of the
// option path is not the first one. The earlier targets failed or were skipped.
func (r *Record) Fallback() bool {
	if r.Mode != "fallback" || !r.Success() {
		return false
	}
	_, last, ok := strings.Cut(r.OptionIndex[strings.LastIndexByte(r.OptionIndex, '.')+1:], "[")
	return ok && last != "0]"
}

// MaxInlineBody is the maximum size of sealed bodies inside an event.
const MaxInlineBody = 256 << 10

// Attempt is one call to a provider.
type Attempt struct {
	Provider, ProviderSlug, Model, OptionIndex string
	Status                                     int // 0 without a response
	RequestID                                  string
	ErrorCode                                  string
	Start                                      time.Duration // from arrival
	Latency                                    time.Duration // to the response head
	Usage                                      pricing.Usage
	Cost                                       pricing.NanoDollars
	Retry                                      int           // 0 the first call of the target, n its nth retry
	Wait                                       time.Duration // delay before this call; 0 for a first one
	WaitReason                                 string        // WaitBackoff, WaitNamed or WaitHedge; empty for a first call
	Credential                                 string        // label of the credential; empty if there is only one
	Server                                     string        // host of the provider, with a port that is not 443; empty if it was not called
}

// CallsServer records the host that is called. The port is omitted where it is 443.
func (a *Attempt) CallsServer(u *url.URL) {
	switch a.Server = u.Host; {
	case u.Scheme != "https" && u.Scheme != "wss" && u.Port() == "":
		a.Server += ":80"
	case u.Port() == "443":
		a.Server = strings.TrimSuffix(u.Host, ":443")
	}
}

// At sets the server that was called.
func (a *Attempt) At(server string) { a.Server = server }

// ServerAddress splits Server into the address and the port.
func (a *Attempt) ServerAddress() (address string, port int64) {
	if host, text, err := net.SplitHostPort(a.Server); err == nil {
		if port, err = strconv.ParseInt(text, 10, 32); err == nil {
			return host, port
		}
	}
	return strings.Trim(a.Server, "[]"), 443
}

// End records how the call ended: the status of the response (zero if there was none), the code of
// the error, and the time to the response head.
func (a *Attempt) End(status int, code string, latency time.Duration) {
	a.Status, a.ErrorCode, a.Latency = status, code, latency
}

// Identify records the provider's id of the call.
func (a *Attempt) Identify(id string) { a.RequestID = id }

// Repeats records that the call is the nth retry, how long it waited, and why.
func (a *Attempt) Repeats(n int, waited time.Duration, reason string) {
	a.Retry, a.Wait, a.WaitReason = n, waited, reason
}

// Reasons for a retry's delay.
const (
	WaitBackoff = "backoff"     // doubling from one second
	WaitNamed   = "retry_after" // requested by the provider, in this response or an earlier one
	WaitHedge   = "hedge"       // for the first target, which was slow: the second attempt of a hedge
)

// Superseded is the error code of an attempt that was ended because another one of the same
// request had responded.
const Superseded = "superseded"

// Draw is one weighted choice: its path, the number drawn from [0,1) in parts per 2^32,
// and the selected index.
type Draw struct {
	Path   string
	Number uint32
	Index  int
	Sticky string // StickyHash or StickyReused; "" if drawn at random
}

// How a sticky rule selected.
const (
	StickyHash   = "hash" // from the hash Number of the rule's field values
	StickyReused = "kept" // an earlier request with the same values used this target; Number is 0
)

// Breaker is the state of a circuit breaker at routing time. Probe means that the
// cooldown has passed and one request at a time may try the target.
type Breaker struct {
	Path  string
	Open  bool
	Probe bool
}

// Match is the choice of one conditional strategy: Condition is the index of the first
// condition that matched, or -1 for the default, Chosen the index of the target.
type Match struct {
	Path      string
	Condition int
	Index     int
}

// Skip is a target that was not called although it was a candidate.
type Skip struct {
	Path   string
	Reason string // SkipOpen, SkipProbe or SkipRejected
	Code   string // fault code of a rejection
	Status int    // its status
}

// Reasons for a skip.
const (
	SkipOpen     = "breaker_open"
	SkipProbe    = "breaker_probe_taken" // another request is trying it
	SkipRejected = "refused"             // rejected by the gateway: limits, credentials, an unknown provider
)

// Guard is the result of one guardrail, for the request or for the response of one
// target.
type Guard struct {
	Hook    string
	Phase   string // GuardBefore or GuardAfter
	Path    string // of the target
	Verdict bool
	Denied  bool // it failed and is configured to deny
	Async   bool // it ran in parallel with the request
	// Transformed: it changed the body.
	Transformed     bool
	LatencyMS       int64
	Failed, Errored []string // ids of checks
	Feedback        *GuardFeedback
}

// GuardFeedback is the feedback that a guardrail's actions record for a response.
type GuardFeedback struct {
	Value    int64 // -10 to 10
	Weight   float64
	Metadata string // an object as JSON
}

// Phases of guardrails.
const (
	GuardBefore = "before"
	GuardAfter  = "after"
)

// Call describes a request of the Model Context Protocol or of a similar protocol.
type Call struct {
	Protocol  string // mcp
	Server    string // id of the server; its slug is the record's ProviderSlug
	Method    string // of the protocol, such as tools/call
	Name      string // of the tool or prompt, or the address of the resource
	Auth      string // how the caller authenticated: api_key or Bearer
	Decision  string // CallAllowed, or the reason for the denial
	Refreshed bool   // the credentials for the server were renewed
	Code      int64  // protocol error code sent to the client; 0 if none
	Version   string // protocol version of the client
	Failed    bool   // the tool reported a failure
	Virtual   string // id of the virtual server that the client called, of which Server is a part
	Gateway   string // version of the gateway; "" from versions that did not record it
	Scope     string // the caller's scopes, separated by spaces; "" if none
}

// Refusal is the limit that rejected a request and the amount that the request needed.
type Refusal struct {
	Subject string // kind of the limited subject: key, workspace, policy, ...
	ID      string // of the subject
	Entity  string // of a policy: the counter, such as metadata.team:red
	Type    string // cost, tokens or requests
	Unit    string // of a rate limit, such as rpm; "" for a budget
	Needed  int64  // nano-dollars, tokens or requests; 0 if unknown
}

// CallAllowed is the decision for an admitted call.
const CallAllowed = "allowed"

// Settle is one budget reservation of the request with its settled amount.
type Settle struct {
	PK     string // partition of the subject's spend row, see ledger
	Entry  string // id of the open entry
	Amount int64  // nano-dollars; tokens and requests are part of Entry
}
