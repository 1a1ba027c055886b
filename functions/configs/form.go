package configs

import (
	"gateway/shared/admin"
	"gateway/shared/route"
)

// configForm is the form of a config in the document. Members that it does not name are
// described in the guide.
func configForm() admin.Schema {
	within := func(kind string, least, most float64) admin.Schema {
		return admin.Schema{"type": kind, "minimum": least, "maximum": most}
	}
	open := admin.Schema{"type": "object"}
	strategy := admin.Schema{
		"type": "object", "required": []string{"mode"},
		"properties": admin.Schema{
			"mode": admin.Schema{"type": "string", "enum": []string{
				route.ModeSingle, route.ModeLoadbalance, route.ModeFallback, route.ModeConditional, route.ModeLatency, route.ModeCost, route.ModeLeastBusy,
			}},
			"on_status_codes": admin.Schema{"type": "array", "items": within("integer", 100, 599)},
			"conditions":      admin.Schema{"type": "array", "items": open},
			"default":         admin.Schema{"type": "string"},
			"sticky":          open,
			"hedge": admin.Schema{"type": "object", "properties": admin.Schema{
				"enabled":          admin.Schema{"type": "boolean"},
				"after_ms":         within("integer", 1, float64(route.MaxHedgeAfter.Milliseconds())),
				"after_percentile": within("number", route.MinHedgePercentile, route.MaxHedgePercentile),
				"max_extra_cost":   admin.Schema{"type": "number", "minimum": 0, "maximum": 1, "description": "Cost of the attempts that were not used, as a share of that of the others."},
				"stored_responses": admin.Schema{"type": "boolean"},
			}},
			"explore":          within("number", 0, route.MaxExplore),
			"min_observations": within("integer", 1, route.MaxFloor),
			"tie_break":        admin.Schema{"type": "string", "enum": []string{route.TieByWeight, route.TieByOrder}},
		},
	}
	return admin.Schema{"type": "object", "properties": admin.Schema{"strategy": strategy, "targets": admin.Schema{"type": "array", "items": open}}}
}
