// Package responses is the family of conversations in the shape of OpenAI's
// responses.
package responses

import (
	"strconv"

	"gateway/shared/chat"
	"gateway/shared/dialect/responses"
	"gateway/shared/provider"
	"gateway/shared/relay"
	"gateway/shared/relay/response"
)

// Routes are the family's routes, without the loop of package tools.
func Routes() []relay.Route {
	return append([]relay.Route{
		{
			Method: "POST", Path: "/responses", Endpoint: "createModelResponse", BodyMode: relay.Unified, Scope: "completions.write",
			Client: responses.Responses{}, Operation: provider.ResponsesCreate,
		},
		of("/responses/compact", "compactModelResponse", provider.ResponsesCompact, meter),
		count(),
		of("/decisions", "createDecision", provider.Decisions, meter),
	}, stored()...)
}

// of returns a route to an operation other than a conversation. It is forwarded unchanged to
// providers that have this operation.
func of(path, name string, op provider.Operation, m func([]byte) chat.Meter) relay.Route {
	return relay.Route{
		Method: "POST", Path: path, Name: name, Endpoint: "proxy", BodyMode: relay.Unified, Scope: "completions.write",
		Operation: op, Meter: m, CustomHost: true,
	}
}

// count is the route that counts the tokens that a response would take. Nothing is charged
// for it.
func count() relay.Route {
	rt := of("/responses/input_tokens", "countResponseInputTokens", provider.ResponsesCount, nil)
	rt.Free, rt.NoOutput, rt.Local = true, true, estimate
	rt.UnitsOf = func(relay.Get, int64) (d relay.Units) { return d }
	return rt
}

// estimate counts for providers that cannot, and reports it.
func estimate(body []byte) ([]byte, error) {
	r, err := responses.Responses{}.DecodeRequest(body)
	if err != nil {
		return nil, err
	}
	out := strconv.AppendInt([]byte(`{"object":"response.input_tokens","input_tokens":`), response.EstimateTokens(r), 10)
	return append(out, `,"estimated":true}`...), nil
}

// meter reads the usage of a response that reports it like the Responses API.
func meter(answer []byte) chat.Meter { return responses.Responses{}.MeterResponse(answer) }

// stored are the routes to stored responses, for providers that implement the Responses API.
func stored() []relay.Route {
	read := one("GET", "/responses/{id}", "getModelResponse", provider.ResponsesGet)
	read.EarlierResponse = &relay.EarlierResponse{Endpoint: "createModelResponse", Client: responses.Responses{}}
	return []relay.Route{
		read,
		one("DELETE", "/responses/{id}", "deleteModelResponse", provider.ResponsesDelete),
		one("GET", "/responses/{id}/input_items", "listResponseInputItems", provider.ResponsesInputItems),
		cancel(),
	}
}

// cancel ends a response that is made in the background. What it has used by then is
// booked, as when it is read.
func cancel() relay.Route {
	rt := one("POST", "/responses/{id}/cancel", "proxy", provider.ResponsesCancel)
	rt.Name = "cancelModelResponse"
	rt.EarlierResponse = &relay.EarlierResponse{Endpoint: "createModelResponse", Client: responses.Responses{}}
	return rt
}

func one(method, path, endpoint string, op provider.Operation) relay.Route {
	return relay.Route{
		Method: method, Path: path, Endpoint: endpoint, BodyMode: relay.Resource, Scope: "completions.write",
		Operation: op, NoModel: true, Free: true, NoOutput: true, Media: true,
	}
}
