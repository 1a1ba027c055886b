package batch

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/wire"
)

// rowOptions are the headers that gateway_options may set for the rows of a batch.
var rowOptions = []string{
	"x-gateway-virtual-key", "x-gateway-provider", "x-gateway-config", "x-gateway-metadata", "x-gateway-provider-model",
	"x-gateway-aws-s3-bucket", "x-gateway-vertex-storage-bucket-name",
}

// members are the fields of a new batch.
var members = wire.NewKeySet("input_file_id", "endpoint", "completion_window", "metadata", "gateway_options", "provider_options", "output_expires_after", "role_arn", "model", "job_name", "output_data_config")

// optionsMember is the index of gateway_options among them.
const optionsMember = 4

// providerMembers are those that are forwarded to the batch at a provider.
var providerMembers = map[string]bool{"provider_options": true, "role_arn": true, "model": true, "job_name": true, "output_data_config": true}

// ReadDefinition reads the body of a new batch. The caller adds its creator.
func ReadDefinition(body []byte) (*Definition, error) {
	var w wire.Walk
	if err := members.Walk(body, &w); err != nil {
		return nil, err
	}
	text := func(i int, name string) (string, error) { return wire.ScanString(w.Spans[i].Of(body), name) }
	d := new(Definition)
	var err error
	if d.Input, err = text(0, "input_file_id"); err != nil {
		return nil, err
	}
	if d.Endpoint, err = text(1, "endpoint"); err != nil {
		return nil, err
	}
	if !KnownEndpoint(d.Endpoint) {
		return nil, fault.Invalid("endpoint", "endpoint must be %s", EndpointList)
	}
	if d.Window, err = text(2, "completion_window"); err != nil {
		return nil, err
	}
	if d.Window != Immediate && d.Window != Day {
		return nil, fault.Invalid("completion_window", "completion_window must be immediate (the gateway runs the rows) or 24h (the provider runs a batch)")
	}
	if w.Spans[3].Present(body) {
		d.Metadata = bytes.Clone(w.Spans[3].Of(body))
	}
	if w.Spans[optionsMember].Present(body) {
		if d.Options, err = readOptions(w.Spans[optionsMember].Of(body)); err != nil {
			return nil, err
		}
	}
	if d.Window == Day {
		d.Create, err = providersOwn(body, &w)
	}
	return d, err
}

// readOptions reads gateway_options: headers by name, with values that are texts, or objects for
// headers that contain JSON.
func readOptions(raw []byte) (map[string]string, error) {
	const field = "gateway_options"
	if wire.KindOf(raw) != wire.KindObject {
		return nil, fault.Invalid(field, "%s must be an object", field)
	}
	options := make(map[string]string)
	d := wire.NewDecoderAt(raw, field)
	for k := range d.Object {
		name := strings.ToLower(string(k))
		at := field + "." + fault.Clip(name, 300)
		if !slices.Contains(rowOptions, name) {
			return nil, fault.Invalid(at, "%s is not known: gateway_options may contain %s", at, strings.Join(rowOptions, ", "))
		}
		if _, twice := options[name]; twice {
			return nil, fault.Invalid(at, "%s occurs twice", at)
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

// providersOwn collects those fields.
func providersOwn(body []byte, w *wire.Walk) (json.RawMessage, error) {
	all := map[string]json.RawMessage{}
	for i, name := range members.Keys() {
		if providerMembers[name] && w.Spans[i].Present(body) {
			all[name] = bytes.Clone(w.Spans[i].Of(body))
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

// HideConfig removes the config of the options from the body of a new batch before it is logged:
// like the header, it may hold credentials. A body with ambiguous options is not logged at all
// (nil); it may be a rejected one.
func HideConfig(body []byte) []byte {
	if lower := bytes.ToLower(body); !bytes.Contains(lower, []byte("gateway_options")) && !bytes.Contains(lower, []byte(`\u`)) {
		return body
	}
	var w wire.Walk
	if members.Walk(body, &w) != nil {
		return nil
	}
	at := w.Spans[optionsMember]
	if !at.Present(body) {
		return body
	}
	shown := []byte("{")
	d := wire.NewDecoder(at.Of(body))
	for k := range d.Object {
		if len(shown) > 1 {
			shown = append(shown, ',')
		}
		shown = append(wire.AppendJSONString(shown, string(k)), ':')
		if v := d.Raw(); strings.EqualFold(string(k), "x-gateway-config") {
			shown = append(shown, `"*****"`...)
		} else {
			shown = append(shown, v...)
		}
	}
	if d.End() != nil {
		return nil
	}
	return wire.Splice(nil, body, members.SetKey(&w, optionsMember, append(shown, '}')))
}
