package configs

import (
	"time"

	"gateway/shared/admin"
	"gateway/shared/route"
)

// configForm is the form of a config in the document. Besides, a config and its targets may have
// the credential fields of providers, and targets have targets of their own.
func configForm() admin.Schema {
	form := nodeForm()
	target := nodeForm()
	target["properties"].(admin.Schema)["targets"] = listOf(openForm())
	target["description"] = "A target: a provider, or targets of its own with a strategy. It may have the credential fields of its provider."
	form["properties"].(admin.Schema)["targets"] = listOf(target)
	return form
}

func listOf(items admin.Schema) admin.Schema { return admin.Schema{"type": "array", "items": items} }

func openForm() admin.Schema { return admin.Schema{"type": "object", "additionalProperties": true} }

func between(kind string, least, most float64) admin.Schema {
	return admin.Schema{"type": kind, "minimum": least, "maximum": most}
}

func plain(kind, doc string) admin.Schema { return admin.Schema{"type": kind, "description": doc} }

func oneOf(words ...string) admin.Schema { return admin.Schema{"type": "string", "enum": words} }

// nodeForm is the form of what a config and a target have in common.
func nodeForm() admin.Schema {
	wait := func(most time.Duration) admin.Schema { return between("integer", 0, float64(most.Milliseconds())) }
	statuses := listOf(between("integer", 100, 599))
	guardrails := admin.Schema{"type": "array", "items": admin.Schema{"anyOf": []any{admin.Schema{"type": "string"}, openForm()}}, "description": "Slugs of guardrails, or guardrails in place."}
	return admin.Schema{"type": "object", "additionalProperties": true, "properties": admin.Schema{
		"name":                      plain("string", "By which conditions name a target."),
		"provider":                  plain("string", "@ and the slug of a saved provider, or the name of a provider."),
		"virtual_key":               plain("string", "Slug of a saved provider; the older name of provider."),
		"api_key":                   plain("string", "Credential of the provider, in place of a saved one."),
		"custom_host":               plain("string", "Base URL of the provider."),
		"custom_headers":            admin.Schema{"description": "Headers of the request to the provider: an object, or its JSON text."},
		"forward_headers":           listOf(admin.Schema{"type": "string"}),
		"passthrough":               plain("boolean", "Take the provider from the request."),
		"prompt_id":                 plain("string", "Saved prompt that the target renders."),
		"weight":                    admin.Schema{"type": "number", "minimum": 0, "description": "Share of the requests with the mode loadbalance."},
		"override_params":           openForm(),
		"default_params":            openForm(),
		"drop_params":               listOf(admin.Schema{"type": "string"}),
		"strict_open_ai_compliance": admin.Schema{"type": "boolean"},
		"fetch_integrated_models":   admin.Schema{"type": "boolean"},
		"refusals":                  oneOf("event"),
		"request_timeout":           admin.Schema{"type": "integer", "minimum": 0, "description": "Milliseconds."},
		"first_token_timeout":       wait(route.MaxStreamTimeout),
		"stream_idle_timeout":       wait(route.MaxStreamTimeout),
		"first_event_hold_ms":       wait(route.MaxHold),
		"retry": admin.Schema{"type": "object", "required": []string{"attempts"}, "properties": admin.Schema{
			"attempts": between("integer", 0, route.MaxRetryAttempts), "on_status_codes": statuses, "use_retry_after_headers": admin.Schema{"type": "boolean"},
		}},
		"cache": admin.Schema{"anyOf": []any{oneOf("simple", "semantic"), admin.Schema{"type": "object", "required": []string{"mode"}, "properties": admin.Schema{
			"mode": oneOf("simple", "semantic"), "max_age": plain("integer", "Seconds."), "threshold": between("number", route.MinCacheThreshold, 1),
			"embedder": admin.Schema{"type": "object", "required": []string{"provider", "model"}, "properties": admin.Schema{"provider": admin.Schema{"type": "string"}, "model": admin.Schema{"type": "string"}}},
		}}}},
		"prompt_cache":         admin.Schema{"type": "object", "properties": admin.Schema{"mode": oneOf("auto", "off", ""), "ttl": oneOf("5m", "1h", "")}},
		"before_request_hooks": guardrails, "after_request_hooks": guardrails, "input_guardrails": guardrails, "output_guardrails": guardrails, "input_mutators": guardrails, "output_mutators": guardrails,
		"cb_config": admin.Schema{"type": "object", "required": []string{"cooldown_interval"}, "description": "Circuit breaker.", "properties": admin.Schema{
			"failure_threshold": admin.Schema{"type": "integer", "minimum": 1}, "failure_threshold_percentage": between("number", 0, 100), "minimum_requests": admin.Schema{"type": "integer", "minimum": 1},
			"cooldown_interval": admin.Schema{"type": "integer", "minimum": route.MinCooldown.Milliseconds(), "description": "Milliseconds."}, "failure_status_codes": statuses,
		}},
		"strategy": strategyForm(statuses),
	}}
}

func strategyForm(statuses admin.Schema) admin.Schema {
	return admin.Schema{"type": "object", "required": []string{"mode"}, "properties": admin.Schema{
		"mode":            oneOf(route.ModeSingle, route.ModeLoadbalance, route.ModeFallback, route.ModeConditional, route.ModeLatency, route.ModeCost, route.ModeLeastBusy),
		"on_status_codes": statuses,
		"conditions": listOf(admin.Schema{"type": "object", "required": []string{"query", "then"}, "properties": admin.Schema{
			"query": openForm(), "then": plain("string", "Name of a target."),
		}}),
		"default": plain("string", "Name of the target if no condition holds."),
		"sticky": admin.Schema{"type": "object", "properties": admin.Schema{
			"enabled": admin.Schema{"type": "boolean"}, "hash_fields": listOf(admin.Schema{"type": "string"}), "ttl": between("integer", 1, route.MaxStickyTTL.Seconds()),
		}},
		"hedge": admin.Schema{"type": "object", "properties": admin.Schema{
			"enabled":          admin.Schema{"type": "boolean"},
			"after_ms":         between("integer", 1, float64(route.MaxHedgeAfter.Milliseconds())),
			"after_percentile": between("number", route.MinHedgePercentile, route.MaxHedgePercentile),
			"max_extra_cost":   admin.Schema{"type": "number", "minimum": 0, "maximum": 1, "description": "Cost of the unused attempts as a share of the cost of the others."},
			"stored_responses": admin.Schema{"type": "boolean"},
		}},
		"explore":          between("number", 0, route.MaxExplore),
		"min_observations": between("integer", 1, route.MaxFloor),
		"tie_break":        oneOf(route.TieByWeight, route.TieByOrder),
	}}
}
