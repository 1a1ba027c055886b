package fault

import (
	"encoding/json"
	"math"
	"net/http"
	"strconv"
	"time"
)

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
