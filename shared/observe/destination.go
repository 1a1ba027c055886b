package observe

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/fault/bound"
	"gateway/shared/resource"
	"gateway/shared/store"
)

// KindDestination is the resource kind of destinations, which are in the scope of the
// organization or of a workspace.
const KindDestination resource.Kind = "TELEMETRY"

// SecretHeaders is the name under which a destination's headers are sealed, in the form of
// ParseHeaders.
const SecretHeaders = "headers"

// States of a destination.
const (
	StatusActive   = "active"
	StatusDisabled = "disabled"
)

// Signals that a destination can get.
const (
	Traces  = "traces"
	Metrics = "metrics"
)

// Destination is the stored form of a place where telemetry is sent.
type Destination struct {
	// Endpoint is the base of the collector's addresses, which are /v1/traces and /v1/metrics
	// below it.
	Endpoint    string            `json:"endpoint" min:"1" max:"2048"`
	Signals     []string          `json:"signals,omitempty" max:"2" each:"max=16"` // none: all
	Content     bool              `json:"include_content,omitempty"`
	OptIn       string            `json:"semconv_stability_opt_in,omitempty" max:"255"`
	Temporality string            `json:"metrics_temporality,omitempty" max:"16"` // Delta or Cumulative; "" for Delta
	Attributes  map[string]string `json:"resource_attributes,omitempty" max:"64" each:"max=255"`
	// Masked is shown by reads in place of the sealed headers.
	Masked map[string]string `json:"masked,omitempty"`
}

// Validate returns the errors of the destination.
func (d *Destination) Validate() []fault.Detail {
	bad := bound.Check(d)
	for i, s := range d.Signals {
		if at := fmt.Sprintf("signals[%d]", i); s != Traces && s != Metrics {
			bad = append(bad, fault.Detail{Field: at, Message: "must be one of traces, metrics"})
		} else if slices.Index(d.Signals, s) < i {
			bad = append(bad, fault.Detail{Field: at, Message: "is named twice"})
		}
	}
	if d.Temporality != "" && d.Temporality != Delta && d.Temporality != Cumulative {
		bad = append(bad, fault.Detail{Field: "metrics_temporality", Message: "must be one of delta, cumulative"})
	}
	return bad
}

func (d *Destination) gets(signal string) bool {
	return len(d.Signals) == 0 || slices.Contains(d.Signals, signal)
}

// newest reports whether a list of opt-ins contains the newer names.
func newest(list string) bool {
	return slices.ContainsFunc(strings.Split(list, ","), func(word string) bool { return strings.TrimSpace(word) == Newest })
}

// maxHeaders bounds the headers of a destination.
const maxHeaders = 32

// owned are the headers that belong to the request itself.
var owned = []string{"content-type", "content-length", "content-encoding", "host", "connection", "transfer-encoding", "te", "upgrade", "trailer", "user-agent"}

// ParseHeaders reads headers in the form of OTEL_EXPORTER_OTLP_HEADERS: name=value,
// separated by commas, with values percent-encoded where necessary.
func ParseHeaders(list string) (headers [][2]string, bad []fault.Detail) {
	wrong := func(message string) ([][2]string, []fault.Detail) {
		return nil, []fault.Detail{{Field: SecretHeaders, Message: message}}
	}
	for _, pair := range strings.Split(list, ",") {
		if strings.TrimSpace(pair) == "" {
			continue
		}
		name, value, ok := strings.Cut(pair, "=")
		name = strings.ToLower(strings.TrimSpace(name))
		if !ok || name == "" || strings.ContainsFunc(name, func(r rune) bool { return !isToken(r) }) {
			return wrong("must be name=value pairs with commas between them, as in authorization=Bearer%20token")
		}
		plain, err := url.PathUnescape(strings.TrimSpace(value))
		if err != nil || strings.ContainsFunc(plain, func(r rune) bool { return r != '\t' && r < ' ' || r > '~' }) {
			return wrong("has a value that no header can have; use visible ASCII, percent-encoded where it has commas")
		}
		if slices.Contains(owned, name) {
			return wrong("must not set " + name)
		}
		headers = append(headers, [2]string{name, plain})
	}
	if len(headers) > maxHeaders {
		return wrong(fmt.Sprintf("must have at most %d headers", maxHeaders))
	}
	return headers, nil
}

// isToken reports whether a character may be in a header's name, in lower case.
func isToken(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r < 0x80 && strings.ContainsRune("!#$%&'*+-.^_`|~", r)
}

// Target is a destination in the form that sending needs.
type Target struct {
	Scope   store.Scope // the organization's, or of one workspace
	ID      string
	Rev     int64 // changes with the destination
	Headers [][2]string
	Destination
	addresses map[string]string // of signals that have one of their own
}

// address is where requests with a signal are sent.
func (t *Target) address(signal string) string {
	if own := t.addresses[signal]; own != "" {
		return own
	}
	return strings.TrimRight(t.Endpoint, "/") + "/v1/" + signal
}
