package fault

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"strings"
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

// SetHeaders writes what the fault says about retrying.
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
