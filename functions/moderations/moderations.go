// Package moderations is the family of moderations in the OpenAI shape.
package moderations

import (
	"gateway/shared/dialect/openai"
	"gateway/shared/provider"
	"gateway/shared/relay"
)

// Routes are the family's routes.
func Routes() []relay.Route {
	return []relay.Route{{
		Method: "POST", Path: "/moderations", Endpoint: "moderate", BodyMode: relay.Unified, Scope: "completions.write",
		Operation: provider.Moderations, Check: openai.CheckModeration, Meter: openai.MeterModeration, NoOutput: true,
		DefaultModel: "text-moderation-latest", UnitsOf: demand, CustomHost: true,
	}}
}

// demand: providers do not charge for moderations and report no usage.
func demand(relay.Get, int64) (d relay.Units) { return d }
