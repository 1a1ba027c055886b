package observe

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
)

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
		return nil, errors.New("observe: OTEL_RESOURCE_ATTRIBUTES must be name=value pairs with commas between them")
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
