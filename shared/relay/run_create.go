package relay

import (
	"bytes"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/provider"
	"gateway/shared/relay/asked"
	"gateway/shared/relay/managed"
	"gateway/shared/wire"
)

// runOptions are the headers that gateway_options may set for the rows of a batch.
var runOptions = []string{
	"x-gateway-virtual-key", "x-gateway-provider", "x-gateway-config", "x-gateway-metadata", "x-gateway-provider-model",
	"x-gateway-aws-s3-bucket", "x-gateway-vertex-storage-bucket-name",
}

// runMembers are the members of a new batch.
var runMembers = wire.NewKeySet("input_file_id", "endpoint", "completion_window", "metadata", "gateway_options", "provider_options", "output_expires_after", "role_arn", "model", "job_name", "output_data_config")

// runOptionsMember is the place of gateway_options among them.
const runOptionsMember = 4

// providerMembers are those that a provider's own batch is made with.
var providerMembers = map[string]bool{"provider_options": true, "role_arn": true, "model": true, "job_name": true, "output_data_config": true}

// createRun makes a batch. The route has checked the bounds of the body.
func (mr *managedRuns) createRun() (*chat.JobAnswer, error) {
	if mr.Runs == nil || mr.Bucket == nil {
		return nil, fault.New(fault.UnsupportedOperation, "x-gateway-provider", "This installation runs no batches of its own; name a provider that does")
	}
	d, err := mr.readRun()
	if err != nil {
		return nil, err
	}
	f, err := mr.rooms.Own(mr.who.Scope).File(mr.ctx, d.Input)
	if err != nil {
		return nil, err
	}
	if f == nil {
		return nil, fault.Newf(fault.NotFound, "input_file_id", "There is no file with the id %q: upload it to /files with x-gateway-provider: gateway", clipText(d.Input))
	}
	if f.Purpose != "batch" {
		return nil, fault.Invalid("input_file_id", "input_file_id must be a file with the purpose batch")
	}
	if err := mr.tryOptions(d); err != nil {
		return nil, err
	}
	b, err := mr.batches.Create(mr.ctx, mr.who.Scope, *d)
	if err != nil {
		return nil, err
	}
	mr.wake(mr.who.Scope, b)
	return chat.JobJSON(b.Append(nil, false)), nil
}

// hideConfig takes the config of the options out of the body of a new batch, as
// the log is to show it: like the header, it may hold credentials. A body with
// options that cannot be read in one way only is not shown at all, for it may be
// one that was refused.
func (l *logbook) hideConfig() {
	if lower := bytes.ToLower(l.in); !bytes.Contains(lower, []byte("gateway_options")) && !bytes.Contains(lower, []byte(`\u`)) {
		return
	}
	var w wire.Walk
	if runMembers.Walk(l.in, &w) != nil {
		l.in = nil
		return
	}
	at := w.Spans[runOptionsMember]
	if !at.Present(l.in) {
		return
	}
	shown := []byte("{")
	d := wire.NewDecoder(at.Of(l.in))
	for k := range d.Object {
		if len(shown) > 1 {
			shown = append(shown, ',')
		}
		shown = append(wire.AppendJSONString(shown, string(k)), ':')
		if v := d.Raw(); strings.EqualFold(string(k), asked.Config) {
			shown = append(shown, `"*****"`...)
		} else {
			shown = append(shown, v...)
		}
	}
	if d.End() != nil {
		l.in = nil
		return
	}
	l.in = wire.Splice(nil, l.in, runMembers.SetKey(&w, runOptionsMember, append(shown, '}')))
}

// readRun reads the body of a new batch.
func (mr *managedRuns) readRun() (*managed.Definition, error) {
	var w wire.Walk
	if err := runMembers.Walk(mr.in, &w); err != nil {
		return nil, err
	}
	text := func(i int, name string) (string, error) { return wire.ScanString(w.Spans[i].Of(mr.in), name) }
	d := &managed.Definition{Key: mr.keyHash(), Maker: managed.Maker{
		KeyID: mr.who.KeyID, Type: string(mr.who.Type), User: mr.who.UserID, Slug: mr.who.WorkspaceSlug,
	}}
	var err error
	if d.Input, err = text(0, "input_file_id"); err != nil {
		return nil, err
	}
	if d.Endpoint, err = text(1, "endpoint"); err != nil {
		return nil, err
	}
	if !managed.KnownEndpoint(d.Endpoint) {
		return nil, fault.Invalid("endpoint", "endpoint must be %s", managed.EndpointList)
	}
	if d.Window, err = text(2, "completion_window"); err != nil {
		return nil, err
	}
	if d.Window != managed.Immediate && d.Window != managed.Day {
		return nil, fault.Invalid("completion_window", "completion_window must be immediate, for rows that the gateway runs, or 24h, for a batch of the provider")
	}
	if w.Spans[3].Present(mr.in) {
		d.Metadata = bytes.Clone(w.Spans[3].Of(mr.in))
	}
	if w.Spans[runOptionsMember].Present(mr.in) {
		if d.Options, err = readRunOptions(w.Spans[runOptionsMember].Of(mr.in)); err != nil {
			return nil, err
		}
	}
	if d.Window == managed.Day {
		d.Create, err = mr.providersOwn(&w)
	}
	return d, err
}

// keyHash names the caller's key without telling it.
func (q *request) keyHash() string {
	if q.behalf != nil {
		return q.behalf.Key
	}
	return identity.HashToken(q.token)
}

// readRunOptions reads gateway_options: headers by name, whose values are texts,
// or objects where the header holds JSON.
func readRunOptions(raw []byte) (map[string]string, error) {
	const field = "gateway_options"
	if wire.KindOf(raw) != wire.KindObject {
		return nil, fault.Invalid(field, "%s must be an object", field)
	}
	options := make(map[string]string)
	d := wire.NewDecoderAt(raw, field)
	for k := range d.Object {
		name := strings.ToLower(string(k))
		at := field + "." + clipText(name)
		if !slices.Contains(runOptions, name) {
			return nil, fault.Invalid(at, "%s is not known: gateway_options may have %s", at, strings.Join(runOptions, ", "))
		}
		if _, twice := options[name]; twice {
			return nil, fault.Invalid(at, "%s stands twice", at)
		}
		var v string
		switch {
		case d.Null():
			continue
		case d.Kind() == wire.KindObject && (name == "x-gateway-config" || name == "x-gateway-metadata"):
			var b bytes.Buffer
			if json.Compact(&b, d.Raw()) == nil {
				v = b.String()
			}
		default:
			v = d.Str()
		}
		if strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r == 0x7f }) {
			return nil, fault.Invalid(at, "%s must not contain control characters", at)
		}
		options[name] = v
	}
	return options, d.End()
}

// providersOwn gathers the members that only the provider's batch is made with.
func (mr *managedRuns) providersOwn(w *wire.Walk) (json.RawMessage, error) {
	all := map[string]json.RawMessage{}
	for i, name := range runMembers.Keys() {
		if providerMembers[name] && w.Spans[i].Present(mr.in) {
			all[name] = bytes.Clone(w.Spans[i].Of(mr.in))
		}
	}
	if len(all) == 0 {
		return nil, nil
	}
	b, err := json.Marshal(all)
	if err != nil {
		return nil, fault.Invalid("provider_options", "provider_options must be JSON")
	}
	return b, nil
}

// tryOptions resolves the route that the rows will take, so that what is wrong
// with it is told at once, as one of gateway_options.
func (mr *managedRuns) tryOptions(d *managed.Definition) error {
	err := mr.rowsRoute(d)
	if err == nil {
		return nil
	}
	f := fault.From(err)
	if f.Status() >= 500 || strings.HasPrefix(f.Field, "gateway_options") {
		return err
	}
	at := fault.New(f.Code, "gateway_options", "gateway_options: "+f.Message)
	at.Details = f.Details
	return at
}

// rowsRoute resolves the route of the rows.
func (mr *managedRuns) rowsRoute(d *managed.Definition) error {
	h := managed.Headers(d.Options)
	var ask asked.Headers
	if err := ask.Read(h); err != nil {
		return err
	}
	switch {
	case ask.Provider == ownProvider:
		return fault.Invalid("x-gateway-provider", "x-gateway-provider must name who answers the rows")
	case d.Window == managed.Day && ask.Provider == "" && ask.VirtualKey == "":
		return fault.Invalid("gateway_options", "gateway_options must name the provider that runs the batch, by x-gateway-virtual-key or x-gateway-provider")
	case d.Window == managed.Day && ask.Config != "":
		return fault.Invalid("gateway_options.x-gateway-config", "gateway_options.x-gateway-config is for rows that the gateway runs: use completion_window immediate")
	}
	if err := mr.resolveAs(ask, h); err != nil {
		return err
	}
	slug, saved := strings.CutPrefix(ask.Provider, "@")
	switch {
	case saved:
	case ask.VirtualKey != "":
		slug = strings.TrimPrefix(ask.VirtualKey, "@")
	case ask.Provider == "":
		return nil
	default:
		if _, known := provider.ByID(ask.Provider); !known {
			return fault.Newf(fault.UnknownProvider, "x-gateway-provider", "Invalid provider passed: %q is not a provider of this gateway", clipText(ask.Provider))
		}
		return nil
	}
	_, err := mr.loadSaved(slug)
	return err
}

// resolveAs resolves the route that a request of the same caller with other headers
// would take.
func (p *plan) resolveAs(ask asked.Headers, h http.Header) error {
	other := plan{clientBody: p.clientBody}
	req, rt := *p.req, *p.rt
	req.Header, rt.Own = h, false
	other.ask, other.req, other.rt = ask, &req, &rt
	other.params = nil // of the body of this one
	return other.resolve()
}
