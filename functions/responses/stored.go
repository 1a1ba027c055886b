package responses

import (
	"gateway/shared/dialect/responses"
	"gateway/shared/provider"
	"gateway/shared/relay"
)

// stored are the routes to stored responses, for providers that implement the Responses API.
func stored() []relay.Route {
	read := one("GET", "/responses/{id}", "getModelResponse", provider.ResponsesGet)
	read.Retold = &relay.Retold{Endpoint: "createModelResponse", Client: responses.Responses{}}
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
	rt.Retold = &relay.Retold{Endpoint: "createModelResponse", Client: responses.Responses{}}
	return rt
}

func one(method, path, endpoint string, op provider.Operation) relay.Route {
	return relay.Route{
		Method: method, Path: path, Endpoint: endpoint, Shape: relay.Resource, Scope: "completions.write",
		Operation: op, NoModel: true, Free: true, NoOutput: true, Media: true,
	}
}
