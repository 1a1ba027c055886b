package webhooks

import (
	"encoding/json"

	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/observe"
	"gateway/shared/resource"
	"gateway/shared/tenant"
)

// telemetryPath is the path of destinations to which each request is exported by OTLP.
const telemetryPath = "/telemetry-destinations"

// maxDestinations is how many destinations the organisation may have, and each workspace.
// Every request is reported to all of them.
const maxDestinations = 200

type destination = admin.Change[observe.Destination]

// telemetry are the destinations of telemetry.
func (f *family) telemetry() *admin.Collection[observe.Destination] {
	return &admin.Collection[observe.Destination]{
		Kind: observe.KindDestination, Object: "telemetry-destination", Path: telemetryPath, Param: "destinationId", UUIDOnly: true, Resource: "telemetry",
		ReadRole: admin.Manager, WriteRole: admin.Manager,
		Levels: &admin.Levels[observe.Destination]{Organisation: "organisation_telemetry", Workspace: "workspace_telemetry", Filter: true},
		Fields: []admin.Field{
			admin.NameField(255),
			{Name: "endpoint", Required: true, Address: true, Example: "https://collector.example.com/otlp", Doc: "Base address of a collector: spans go to /v1/traces and metrics to /v1/metrics below it, as OTLP in protobuf."},
			{Name: "headers", Type: admin.String, Secret: true, Max: 8192, Check: checkHeaders, Example: "authorization=Bearer%20token",
				Doc: "Headers of the export requests, in the format of OTEL_EXPORTER_OTLP_HEADERS: comma-separated name=value, values percent-encoded."},
			{Name: "signals", Of: &admin.Field{Type: admin.String, Enum: []string{observe.Traces, observe.Metrics}}, Absent: []any{}, Doc: "What is exported; default: both."},
			{Name: "include_content", Absent: false, Doc: "Whether spans contain messages, instructions, tools and parameters of requests, if logs store bodies."},
			{Name: "semconv_stability_opt_in", Absent: "", Example: observe.Newest, Doc: "gen_ai_latest_experimental: only the newer names of the gen_ai conventions. A list in the format of OTEL_SEMCONV_STABILITY_OPT_IN; empty: the installation's setting."},
			{Name: "metrics_temporality", Type: admin.String, Enum: []string{observe.Delta, observe.Cumulative}, Absent: observe.Delta, Doc: "Whether metric points count from the previous point (delta) or from the start of the process (cumulative), as Prometheus requires."},
			{Name: "resource_attributes", Doc: "Further attributes of the resource, such as service.name and deployment.environment.name."},
			{Name: "status", Type: admin.String, Enum: []string{observe.StatusActive, observe.StatusDisabled}, Column: true, UpdateOnly: true, Doc: "Nothing is sent while it is disabled."},
		},
		Before:  f.beforeDestination,
		Created: &admin.Reply{Members: []string{"id"}},
	}
}

func checkHeaders(raw json.RawMessage) []fault.Detail {
	var list string
	if json.Unmarshal(raw, &list) != nil {
		return nil // the check of the type reports it
	}
	_, bad := observe.ParseHeaders(list)
	for i := range bad {
		bad[i].Field = ""
	}
	return bad
}

// readsLogs are the scopes that read logs with their bodies.
var readsLogs = []string{"logs.read", "logs.view"}

// mayShowContent returns a 403 if a destination would receive the bodies of requests that
// its author may not read: those of all users. It applies to every change that leaves an
// active destination with content, so that whoever changed it last may read them.
func mayShowContent(c *admin.Call, ch *destination) error {
	if !ch.Form.Content || ch.Rec.Status == observe.StatusDisabled {
		return nil
	}
	allowed := c.Caller.HasAny(readsLogs)
	for _, part := range []string{tenant.SeeBodies, tenant.SeeOthers} {
		sees, err := c.Sees(part)
		if err != nil {
			return err
		}
		allowed = allowed && sees
	}
	if allowed {
		return nil
	}
	return fault.New(fault.NotAllowed, "include_content", "include_content requires the right to read the logs of all users with their bodies; set it to false")
}

func (f *family) beforeDestination(c *admin.Call, _ *resource.Tx, ch *destination) error {
	if c.Body.Given("endpoint") {
		u, err := f.CheckURL(ch.Form.Endpoint, "endpoint")
		if err != nil {
			return err
		}
		if u.RawQuery != "" || u.Fragment != "" {
			return fault.Invalid("endpoint", "must have neither a query nor a fragment: paths are added to it")
		}
		ch.Form.Endpoint = u.String()
	}
	if err := mayShowContent(c, ch); err != nil || !ch.Creates() {
		return err
	}
	there, err := c.Resources.List(c.Context, ch.Rec.Scope, observe.KindDestination)
	if err != nil {
		return err
	}
	if len(there) >= maxDestinations {
		return fault.Newf(fault.QuotaReached, "", "this place has at most %d destinations of telemetry; delete one first", maxDestinations)
	}
	ch.Rec.Status = observe.StatusActive
	return nil
}
