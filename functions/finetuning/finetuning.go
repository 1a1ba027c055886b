// Package finetuning is the family of fine-tuning jobs. Their events and
// checkpoints are passed through.
package finetuning

import (
	"gateway/shared/dialect/openai"
	"gateway/shared/provider"
	"gateway/shared/relay"
)

// Routes are the family's routes.
func Routes() []relay.Route {
	return []relay.Route{
		{
			Method: "POST", Path: "/fine_tuning/jobs", Endpoint: "createFinetune", BodyMode: relay.Unified, Scope: "completions.write",
			Operation: provider.FinetuneCreate, Check: openai.CheckFineTune, NoOutput: true,
		},
		resource("GET", "/fine_tuning/jobs", "listFinetunes", provider.FinetuneList),
		resource("GET", "/fine_tuning/jobs/{id}", "retrieveFinetune", provider.FinetuneGet),
		resource("POST", "/fine_tuning/jobs/{id}/cancel", "cancelFinetune", provider.FinetuneCancel),
	}
}

func resource(method, path, endpoint string, op provider.Operation) relay.Route {
	return relay.Route{
		Method: method, Path: path, Endpoint: endpoint, BodyMode: relay.Resource, Scope: "completions.write",
		Operation: op, NoModel: true, Free: true, NoOutput: true,
	}
}
