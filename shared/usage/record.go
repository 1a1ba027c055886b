package usage

import (
	"net/http"
	"strings"
	"time"

	"gateway/shared/pricing"
)

// Record is what one data-plane request leaves behind: made once by the relay
// when the last byte has gone out, never changed afterwards. A request that
// tried several targets has one record with several Attempts.
type Record struct {
	ID    string    // ULID made at arrival; the log id and the event id. Its time part is Start
	Start time.Time // arrival

	// Identity.
	Org, Workspace         string // ids
	WorkspaceSlug          string
	KeyID, KeyType         string // organisation-service, workspace-service, workspace-user, jwt
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
	RequestModel  string // as the client named it, without @slug/
	Stream        bool
	RequestBytes  int64
	ResponseBytes int64
	ClientStatus  int // status the client got
	ClientGone    bool

	// Decision inputs, for explain.
	ConfigID, ConfigSlug string
	ConfigVersion        int64
	Mode                 string     // single, loadbalance, fallback, conditional; empty without a config
	Draws                []Draw     // random draws, in order
	Measured             []Measured // choices by figures, in order
	Breakers             []Breaker
	Matches              []Match // conditional strategies, in order
	Skips                []Skip  // targets that were passed over, in order
	Guards               []Guard // guardrails that were run, in order
	PromptID, PromptSlug string  // see SetPrompt

	Reported bool // by telemetry of another sender: the request did not pass through the gateway

	Call *Call // of a protocol that asks no model; nil for all others

	// Outcome.
	Provider       string // type name, e.g. openai
	ProviderSlug   string // saved provider, without @; empty for direct credentials
	IntegrationID  string
	Model          string // as the provider reported it, else as sent
	OptionIndex    string // config.targets[1].targets[0]; "config" for a flat one
	RetryCount     int    // value of x-gateway-retry-attempt-count
	CacheStatus    string // HIT, SEMANTIC HIT, MISS, SEMANTIC MISS, REFRESH, DISABLED
	FinishReason   string // in the provider's own word
	Losses         []string
	ErrorCode      string // fault code or the provider's code
	ErrorMessage   string
	Refusal        *Refusal // the limit that refused the request; nil: none did
	Unconfirmed    bool     // settled by repair, not by an answer
	Cost           pricing.NanoDollars
	Priced         bool                // false: a price is not known, and Cost is without it
	Book           string              // version of the price list; empty without Tariff
	Tariff         string              // lines of it that Cost was made of, with "; " between them
	CacheSaved     pricing.NanoDollars // what a cache hit would have cost at the provider
	Running        pricing.NanoDollars // what the gateway itself cost; 0: not counted for each request
	Usage          pricing.Usage       // sum over the attempts
	Attempts       []Attempt
	SettleSubjects []Settle // budgets that this request reserved; the worker repeats the settle

	// Timing, from arrival.
	TimeToFirstByte time.Duration // to the first byte sent to the client
	Duration        time.Duration // to the last byte
	UpstreamLatency time.Duration // of the answering attempt: dispatch to response head
	GatewayTime     time.Duration // Duration less the time waited for the provider

	// Bodies, sealed by the relay before they leave the request (observability.md
	// 1.3 says which are kept). Larger than MaxInlineBody: in Blob.
	Bodies []byte
	Blob   string // key in the bucket, when Bodies is empty
	// Pack is where a journal left the bodies, when both are empty. It is not
	// part of the event.
	Pack Pack
}

// EndpointSpan is the type of records of spans that are stored for their trace: they are no
// requests, and analytics do not count them.
const EndpointSpan = "span"

// Pack is a stretch of an object in the bucket.
type Pack struct {
	Key            string // empty: none
	Offset, Length int64
}

// Success reports whether the client got a status from 200 to 299, or a session, whose
// status is 101. A response that broke off has the status of its failure.
func (r *Record) Success() bool {
	return r.ClientStatus >= 200 && r.ClientStatus <= 299 || r.ClientStatus == http.StatusSwitchingProtocols
}

// AnsweringModel is the model that answered, else the one that was asked for.
func (r *Record) AnsweringModel() string {
	if r.Model == "" {
		return r.RequestModel
	}
	return r.Model
}

// Fallback reports whether a later target of a fallback answered: the last
// index of the option path is not the first one.
func (r *Record) Fallback() bool {
	if r.Mode != "fallback" || !r.Success() {
		return false
	}
	_, last, ok := strings.Cut(r.OptionIndex[strings.LastIndexByte(r.OptionIndex, '.')+1:], "[")
	return ok && last != "0]"
}

// MaxInlineBody is the size up to which sealed bodies ride in the event.
const MaxInlineBody = 256 << 10

// Attempt is one call to a provider.
type Attempt struct {
	Provider, ProviderSlug, Model, OptionIndex string
	Status                                     int // 0: no answer
	RequestID                                  string
	ErrorCode                                  string
	Start                                      time.Duration // from arrival
	Latency                                    time.Duration // to the response head
	Usage                                      pricing.Usage
	Cost                                       pricing.NanoDollars
	Retry                                      int           // 0 the first call of the target, n its nth retry
	Wait                                       time.Duration // waited before this call; 0 for a first one
	WaitReason                                 string        // WaitBackoff or WaitNamed; empty for a first call
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

// Why a retry waited as long as it did.
const (
	WaitBackoff = "backoff"     // doubling from one second
	WaitNamed   = "retry_after" // as the provider asked, in this answer or an earlier one
)

// Draw is one decision by weight: where, the number drawn in [0,1) as parts per
// 2^32, and the index chosen.
type Draw struct {
	Path   string
	Number uint32
	Chosen int
	Sticky string // StickyHash or StickyKept; empty: drawn at random
}

// How a sticky rule decided.
const (
	StickyHash = "hash" // the values of the rule's fields gave Number; it alone decides
	StickyKept = "kept" // an earlier request with the same values went there; Number is 0
)

// Breaker is the state of a circuit breaker as the routing saw it. Probe: the
// cooldown is over, and one request at a time may try the target.
type Breaker struct {
	Path  string
	Open  bool
	Probe bool
}

// Match is the choice of one conditional strategy: Condition is the index of
// the first one that held, -1 for the default, Chosen the index of the target.
// The conditions before it were false.
type Match struct {
	Path      string
	Condition int
	Chosen    int
}

// Skip is a target that was not called, though its turn had come or might have.
type Skip struct {
	Path   string
	Reason string // SkipOpen, SkipProbe or SkipRefused
	Code   string // fault code of a refusal
	Status int    // its status
}

// Why a target was passed over.
const (
	SkipOpen    = "breaker_open"
	SkipProbe   = "breaker_probe_taken" // another request is trying it
	SkipRefused = "refused"             // the gateway itself refused it: limits, credentials, an unknown provider
)

// Guard is what one guardrail said of the request or of an answer, of each target that
// was tried.
type Guard struct {
	Hook    string
	Phase   string // GuardBefore or GuardAfter
	Path    string // of the target
	Verdict bool
	Denied  bool // it has failed and denies
	Async   bool // it ran beside the request
	// Transformed: it changed the body.
	Transformed     bool
	TookMS          int64
	Failed, Errored []string // ids of checks
	Feedback        *GuardFeedback
}

// GuardFeedback is what a guardrail records of the answer, as its actions ask for.
type GuardFeedback struct {
	Value    int64 // -10 to 10
	Weight   float64
	Metadata string // an object as JSON
}

// When guardrails run.
const (
	GuardBefore = "before"
	GuardAfter  = "after"
)

// Call is what is told of a request of the Model Context Protocol or of a like one.
type Call struct {
	Protocol  string // mcp
	Server    string // id of the server; its slug is the record's ProviderSlug
	Method    string // of the protocol, such as tools/call
	Name      string // of the tool or prompt, or the address of the resource
	Auth      string // how the caller signed in: api_key or Bearer
	Decision  string // CallAllowed, or what did not allow it
	Refreshed bool   // the credentials towards the server were fetched anew
	Code      int64  // error code that the client was told in the protocol; 0: none
	Version   string // of the protocol, as the client speaks it
	Failed    bool   // the tool said that it failed
	Virtual   string // id of the virtual server that the client called, where Server is a member of it
	Gateway   string // version of the gateway; "": of one that did not tell it
	Scope     string // what the caller was let in by: scopes with spaces between them; "": none
}

// Refusal is the limit that refused a request, and what the request had to find there.
type Refusal struct {
	Subject string // kind of what is limited: key, workspace, policy, ...
	ID      string // of what is limited
	Entity  string // of a policy: the counter, such as metadata.team:red
	Type    string // cost, tokens or requests
	Unit    string // of a rate, such as rpm; empty: a budget
	Needed  int64  // nano-dollars, tokens or requests; 0: not known
}

// CallAllowed is the decision on a call that may be made.
const CallAllowed = "allowed"

// Settle names one budget reservation of the request and what it settled at.
type Settle struct {
	PK     string // partition of the subject's spend row, see ledger
	Entry  string // id of the open entry
	Amount int64  // nano-dollars; tokens and requests are part of Entry
}
