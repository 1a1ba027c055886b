package observe

import (
	"cmp"
	"crypto/rand"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"

	"gateway/shared/fault"
	"gateway/shared/fault/bound"
	"gateway/shared/observe/otlp"
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
	// ContentBy is who last stated the endpoint for content; empty without content, and in
	// destinations from before it was stored.
	ContentBy string `json:"content_by,omitempty"`
	// Masked is shown by reads in place of the sealed headers.
	Masked map[string]string `json:"masked,omitempty"`
}

// ContentAuthor returns the user or the key that chose where the content goes.
func (d *Destination) ContentAuthor(rec *resource.Record) string {
	return cmp.Or(d.ContentBy, rec.UpdatedBy, rec.CreatedBy)
}

// Validate returns the errors of the destination.
func (d *Destination) Validate() []fault.Detail {
	bad := bound.Check(d)
	for i, s := range d.Signals {
		if at := fmt.Sprintf("signals[%d]", i); s != Traces && s != Metrics {
			bad = append(bad, fault.Detail{Field: at, Message: "must be one of traces, metrics"})
		} else if slices.Index(d.Signals, s) < i {
			bad = append(bad, fault.Detail{Field: at, Message: "must not be listed twice"})
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
			return wrong("must be comma-separated name=value pairs, as in authorization=Bearer%20token")
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

// FromEnvironment returns the destination that the standard variables of OpenTelemetry's
// exporters name for the process, or nil without an endpoint. get returns a variable's
// value. It gets every record, and no content. Errors name the variable.
func FromEnvironment(get func(string) string) (*Target, error) {
	t := &Target{ID: "environment", addresses: map[string]string{}}
	t.Endpoint = get("OTEL_EXPORTER_OTLP_ENDPOINT")
	for signal, name := range map[string]string{Traces: "TRACES", Metrics: "METRICS"} {
		own := get("OTEL_EXPORTER_OTLP_" + name + "_ENDPOINT") // the complete URL, unlike the common one
		if own == "" && t.Endpoint == "" || get("OTEL_"+name+"_EXPORTER") == "none" {
			continue
		}
		if own == "" {
			own = t.address(signal)
		}
		u, err := url.Parse(own)
		if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil {
			return nil, fmt.Errorf("observe: the OTLP endpoint of %s must be a URL such as http://127.0.0.1:4318", signal)
		}
		t.addresses[signal] = own
		t.Signals = append(t.Signals, signal)
	}
	if len(t.Signals) == 0 || strings.EqualFold(get("OTEL_SDK_DISABLED"), "true") {
		return nil, nil
	}
	if p := get("OTEL_EXPORTER_OTLP_PROTOCOL"); p != "" && p != "http/protobuf" {
		return nil, errors.New("observe: OTEL_EXPORTER_OTLP_PROTOCOL must be http/protobuf, or be left out")
	}
	switch p := strings.ToLower(get("OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE")); p {
	case "", Delta, "lowmemory":
	case Cumulative:
		t.Temporality = Cumulative
	default:
		return nil, errors.New("observe: OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE must be delta or cumulative, or be left out")
	}
	headers, bad := ParseHeaders(get("OTEL_EXPORTER_OTLP_HEADERS"))
	if len(bad) > 0 {
		return nil, errors.New("observe: OTEL_EXPORTER_OTLP_HEADERS " + bad[0].Message)
	}
	attributes, bad := ParseHeaders(get("OTEL_RESOURCE_ATTRIBUTES")) // the same form
	if len(bad) > 0 {
		return nil, errors.New("observe: OTEL_RESOURCE_ATTRIBUTES must be comma-separated name=value pairs")
	}
	t.Headers, t.Attributes = headers, map[string]string{}
	for _, a := range attributes {
		t.Attributes[a[0]] = a[1]
	}
	if name := get("OTEL_SERVICE_NAME"); name != "" {
		t.Attributes["service.name"] = name
	}
	return t, nil
}

// Temporalities of metrics: whether points count from the point before, or from the start of
// the process.
const (
	Delta      = "delta"
	Cumulative = "cumulative"
)

// Limits of the metrics since the start of the process.
const (
	maxTotals = 1000   // destinations
	maxSeries = 10_000 // of a destination
)

// totals are the metrics of destinations with cumulative temporality, since the start of
// the process. Each process is an instance of the service with separate series.
type totals struct {
	mu       sync.Mutex
	of       map[string]map[string]otlp.Point // by destination, then by metric and attributes
	instance string
}

// add adds metrics to the totals of a destination, and returns those points that changed
// with what they count since their start. Where a limit is reached, counting begins again,
// which the starts of points show.
func (t *totals) add(destination string, metrics []otlp.Metric) []otlp.Metric {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil || t.of[destination] == nil && len(t.of) >= maxTotals {
		t.of = map[string]map[string]otlp.Point{}
	}
	series := t.of[destination]
	if series == nil || len(series) >= maxSeries {
		series = map[string]otlp.Point{}
		t.of[destination] = series
	}
	for i := range metrics {
		m := &metrics[i]
		m.Cumulative = true
		for j := range m.Points {
			p := &m.Points[j]
			key := m.Name + " " + fmt.Sprint(p.Attrs)
			if before, ok := series[key]; ok {
				p.Add(&before)
			}
			copied := *p
			copied.Buckets = slices.Clone(p.Buckets)
			series[key] = copied
		}
	}
	return metrics
}

// name returns the id of this process.
func (t *totals) name() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.instance == "" {
		t.instance = rand.Text()
	}
	return t.instance
}
