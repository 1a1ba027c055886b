// Package batches is the family of batches that providers run, or the gateway
// itself: with x-gateway-provider: gateway, or where nothing names a provider.
package batches

import (
	"gateway/shared/dialect/openai"
	"gateway/shared/provider"
	"gateway/shared/relay"
)

// Routes are the family's routes.
func Routes() []relay.Route {
	return []relay.Route{
		{
			Method: "POST", Path: "/batches", Endpoint: "createBatch", BodyMode: relay.Unified, Scope: "completions.write",
			Operation: provider.BatchesCreate, Check: openai.CheckBatch, NoModel: true, AnyModel: true, NoOutput: true, BuiltIn: true,
		},
		resource("GET", "/batches", "listBatches", provider.BatchesList),
		resource("GET", "/batches/{id}", "retrieveBatch", provider.BatchesGet),
		resource("POST", "/batches/{id}/cancel", "cancelBatch", provider.BatchesCancel),
		resource("GET", "/batches/{id}/output", "getBatchOutput", provider.BatchesOutput),
	}
}

func resource(method, path, endpoint string, op provider.Operation) relay.Route {
	return relay.Route{
		Method: method, Path: path, Endpoint: endpoint, BodyMode: relay.Resource, Scope: "completions.write",
		Operation: op, NoModel: true, Free: true, NoOutput: true, BuiltIn: true,
	}
}
