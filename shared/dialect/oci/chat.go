package oci

import (
	"net/http"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// Chat is POST /{version}/actions/chat.
type Chat struct{ upstream.Errors }

var _ chat.Provider = Chat{}

// Name implements chat.Dialect.
func (Chat) Name() string { return "oci" }

// Fields of the credential that go into the body.
const (
	fieldCompartment = "oracle_compartment_id"
	fieldServing     = "oracle_serving_mode"
)

const maxToolName = 64

// EncodeRequest implements chat.RequestWriter.
func (Chat) EncodeRequest(dst []byte, r *chat.Request, t *chat.Traits, loss *chat.Loss) ([]byte, error) {
	if err := r.Rename(maxToolName); err != nil {
		return dst, err
	}
	if len(r.Messages) == 0 {
		return dst, fault.Invalid("messages", "messages must contain at least one message for this provider")
	}
	o := upstream.Begin(dst)
	o.Str("compartmentId", t.Fields[fieldCompartment])
	o.Key("servingMode")
	o.Open('{')
	if t.Fields[fieldServing] == "DEDICATED" {
		o.Str("servingType", "DEDICATED")
		o.Str("endpointId", r.Model)
	} else {
		o.Str("servingType", "ON_DEMAND")
		o.Str("modelId", r.Model)
	}
	o.Close('}')
	o.Key("chatRequest")
	o.Open('{')
	var err error
	if cohereModel(r.Model) {
		err = (&cohereEncoder{Object: o, r: r, loss: loss}).write()
	} else {
		err = (&genericEncoder{Object: o, r: r, t: t, loss: loss}).write()
	}
	if err != nil {
		return dst, err
	}
	o.Close('}')
	o.Close('}')
	return o.B, loss.Err()
}

// cohereModel reports whether a model takes the format COHERE. Endpoints of dedicated
// clusters do not show their model; they take GENERIC.
func cohereModel(model string) bool { return strings.HasPrefix(model, "cohere.") }

// stopReason reads a finishReason of both formats.
func stopReason(native string) chat.StopReason {
	switch native {
	case "stop", "COMPLETE", "completed":
		return chat.StopEnd
	case "STOP_SEQUENCE":
		return chat.StopSequence
	case "length", "MAX_TOKENS":
		return chat.StopLength
	case "ERROR_LIMIT":
		return chat.StopContext
	case "tool_calls", "TOOL_CALL":
		return chat.StopToolCalls
	case "content_filter", "ERROR_TOXIC":
		return chat.StopFilter
	}
	return chat.StopUnknown
}

// stopAfter reads the finishReason of a response with calls. The format COHERE has no
// reason separate for a response that ends in calls.
func stopAfter(native string, calls int) chat.StopReason {
	stop := stopReason(native)
	if stop == chat.StopEnd && calls > 0 {
		return chat.StopToolCalls
	}
	return stop
}

// failed reports whether a finishReason means that the response failed.
func failed(native string) bool {
	return native == "ERROR" || native == "USER_CANCEL" || native == "TIMEOUT" || native == "error"
}

func failure(native, message string) *fault.Fault {
	if message == "" {
		message = "The model ended its answer with " + native
	}
	return upstream.Failed(http.StatusBadGateway, "", message)
}

// object reads the fields of an object; anything else is skipped.
func object(d *wire.Decoder, member func(key string)) {
	if d.Kind() != wire.KindObject {
		d.Skip()
		return
	}
	for key := range d.Object {
		member(string(key))
	}
}

// list reads the elements of a list; anything else is skipped.
func list(d *wire.Decoder, element func(i int)) {
	if d.Kind() != wire.KindArray {
		d.Skip()
		return
	}
	for i := range d.Array {
		element(i)
	}
}

// reportTool reports the fields of the tool at a path that neither format has a place for.
func reportTool(t *chat.Tool, at string, loss *chat.Loss) {
	if t.Strict.Value {
		loss.Add(at+".strict", upstream.UnsupportedField)
	}
	if t.Cache != chat.NoCache {
		loss.Add(at+".cache_control", upstream.UnsupportedField)
	}
	for _, x := range t.Extra {
		loss.Add(at+"."+x.Name, upstream.UnsupportedField)
	}
}

// reportResult is reportTool for the result of a tool.
func reportResult(m *chat.Message, p *chat.Part, loss *chat.Loss) {
	if p.Cache != chat.NoCache {
		loss.Add(upstream.Path(m, nil)+".cache_control", upstream.UnsupportedField)
	}
	if p.Result.IsError {
		loss.Add(upstream.Path(m, nil)+".is_error", upstream.UnsupportedField)
	}
}
