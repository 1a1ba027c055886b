package fault

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// openAI is the error object that OpenAI clients read.
type openAI struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    *string `json:"code"`
	Field   string  `json:"field,omitempty"` // same as param, for the saved-only family
	Source  Source  `json:"source,omitempty"`
	Limit   *Limit  `json:"limit,omitempty"`
}

func (f *Fault) object() openAI {
	o := openAI{Message: f.Message, Type: f.Type(), Source: f.Source, Limit: f.Limit}
	if f.Field != "" {
		o.Param, o.Field = &f.Field, f.Field
	}
	code := string(f.Code)
	o.Code = &code
	return o
}

// DataBody is the data plane's body: {"status":"failure","message",
// "error":{message,type,param,code}} and "errors" when several fields failed.
// The errors of a config are always listed, each as "path: targets,0,weight,
// message: must be at least 0". With anthropic it also carries the
// "type":"error" that Anthropic clients look for.
func (f *Fault) DataBody(anthropic bool) []byte {
	body := struct {
		Type    string   `json:"type,omitempty"`
		Status  string   `json:"status"`
		Message string   `json:"message"`
		Error   openAI   `json:"error"`
		Errors  []string `json:"errors,omitempty"`
	}{Status: "failure", Message: f.Sentence(), Error: f.object()}
	body.Error.Message = body.Message
	if anthropic {
		body.Type = "error"
	}
	switch {
	case f.Code == InvalidConfig:
		for _, d := range f.Details {
			body.Errors = append(body.Errors, "path: "+commas.Replace(d.Field)+", message: "+d.Message)
		}
	case len(f.Details) > 1:
		for _, d := range f.Details {
			body.Errors = append(body.Errors, d.Field+": "+d.Message)
		}
	}
	return must(json.Marshal(body))
}

// commas writes a JSON path as its segments: targets[0].weight becomes targets,0,weight.
var commas = strings.NewReplacer("].", ",", "][", ",", ".", ",", "[", ",", "]", "")

// AdminBody is the administration API's body: {"success":false,
// "data":{message,errorCode,errors?},"error":{...},"request_id"}.
func (f *Fault) AdminBody(requestID string) []byte {
	type fieldError struct {
		Field   string `json:"field"`
		Message string `json:"message"`
	}
	body := struct {
		Success bool `json:"success"`
		Data    struct {
			Message   string       `json:"message"`
			ErrorCode string       `json:"errorCode"`
			Errors    []fieldError `json:"errors,omitempty"`
		} `json:"data"`
		Error     openAI `json:"error"`
		RequestID string `json:"request_id,omitempty"`
	}{Error: f.object(), RequestID: requestID}
	admin := f.AdminCode()
	body.Data.Message, body.Data.ErrorCode = f.Sentence(), admin
	body.Error.Message, body.Error.Code = body.Data.Message, &admin
	for _, d := range f.Details {
		body.Data.Errors = append(body.Data.Errors, fieldError(d))
	}
	return must(json.Marshal(body))
}

// Sentence returns the message. If it only makes sense with its field ("is required"), the field
// comes first, because many clients show only the message and some formats have no field.
func (f *Fault) Sentence() string {
	verb, _, _ := strings.Cut(f.Message, " ")
	switch verb {
	case "must", "may", "is", "are", "was", "has", "needs", "takes", "cannot", "stands", "ended", "names", "does", "goes", "covers", "gives", "includes", "opens", "reaches", "differs":
		if f.Field != "" {
			return f.Field + ": " + f.Message
		}
	}
	return f.Message
}

// ShouldRetry is the header by which the SDKs of OpenAI and Anthropic decide whether they
// send a request again, whatever its status is.
const ShouldRetry = "X-Should-Retry"

// SetHeaders writes what the fault states about retrying.
func (f *Fault) SetHeaders(h http.Header) {
	if f.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(f.RetryAfter.Seconds()))))
	}
	if f.Limit != nil {
		f.Limit.setHeaders(h, f.RetryAfter)
	}
	if f.Final() {
		h.Set(ShouldRetry, "false")
	}
}

// must encodes values for which that cannot fail (strings and string slices).
func must(b []byte, err error) []byte {
	if err != nil {
		panic("fault: " + err.Error())
	}
	return b
}

// Limit describes the limit that rejected the request, and its state: the numbers that a read
// of that limit shows.
type Limit struct {
	Subject string `json:"subject"` // key, token, workspace, policy, integration, provider
	ID      string `json:"id"`
	Name    string `json:"name"`
	Entity  string `json:"value_key,omitempty"` // of a policy: which of its counters
	Type    string `json:"type"`                // cost, tokens or requests

	// For a budget: dollars, tokens or requests.
	CreditLimit json.Number `json:"credit_limit,omitempty"`
	Raised      json.Number `json:"temporary_raise,omitempty"` // one that applies now
	Usage       json.Number `json:"current_usage,omitempty"`
	Reserved    json.Number `json:"reserved_usage,omitempty"`
	Available   json.Number `json:"available,omitempty"`

	// For a rate.
	Unit  string `json:"unit,omitempty"`
	Value *int64 `json:"value,omitempty"`

	Fallback string `json:"-"` // the place where the request may go instead: @provider/model
	Needed   int64  `json:"-"` // the least that the request needed there: nano-dollars, tokens or requests

	ResetsAt *time.Time `json:"resets_at"` // nil: never
}

// setHeaders writes the state of a rate in the headers that clients of OpenAI read.
func (l *Limit) setHeaders(h http.Header, wait time.Duration) {
	if l.Value == nil {
		return
	}
	h.Set("X-Ratelimit-Limit-"+l.Type, strconv.FormatInt(*l.Value, 10))
	h.Set("X-Ratelimit-Remaining-"+l.Type, "0")
	h.Set("X-Ratelimit-Reset-"+l.Type, strconv.Itoa(int(math.Ceil(wait.Seconds())))+"s")
}
