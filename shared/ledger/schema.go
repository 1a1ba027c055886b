package ledger

// JSON schemas of the limits of a place, for the administration's API document: they are
// beside the parser because they must match it.

type schema = map[string]any

// smallest is the minimum amount: a nano-dollar.
const smallest = 1e-9

// UsageSchema describes usage_limits in requests and responses.
func (p Place) UsageSchema() map[string]any {
	measures := []Measure{Cost, Tokens}
	if p.requests {
		measures = append(measures, Requests)
	}
	one := schema{
		"type": "object", "required": []string{"credit_limit"}, "additionalProperties": false,
		"properties": schema{
			"type":                schema{"type": "string", "enum": measures, "default": Cost},
			"credit_limit":        schema{"type": "number", "minimum": smallest, "description": "US dollars with at most 9 decimal places, greater than 0; or tokens, at least 100."},
			"alert_threshold":     schema{"type": []string{"number", "null"}, "minimum": smallest, "description": "In the unit of credit_limit, and less than it."},
			"periodic_reset":      schema{"type": []string{"string", "null"}, "enum": []any{Weekly, Monthly, nil}},
			"periodic_reset_days": schema{"type": []string{"integer", "null"}, "minimum": 1, "maximum": 365, "description": "Instead of periodic_reset."},
			"next_usage_reset_at": schema{"type": []string{"string", "null"}, "description": "It takes effect at 00:00 UTC of its day. Reads return it as it was sent."},
			"next_reset_at":       schema{"type": []string{"string", "null"}, "format": "date-time", "readOnly": true, "description": "When the budget starts again; null if never."},
			"on_exceeded":         schema{"type": []string{"string", "null"}, "enum": []any{Deny, Audit, Fallback, nil}, "description": "Action when the budget is insufficient: audit admits and charges the requests, fallback sends them to fallback_model and charges its cost, deny (default) rejects them."},
			"fallback_model":      schema{"type": []string{"string", "null"}, "example": "@provider/model", "description": "For on_exceeded fallback: @provider/model."},
			"temporary_raise": schema{"type": []string{"object", "null"}, "required": []string{"amount", "expires_at"}, "additionalProperties": false, "description": "Adds to credit_limit until it expires.", "properties": schema{
				"amount": schema{"type": "number", "minimum": smallest, "description": "In the unit of credit_limit."}, "expires_at": schema{"type": "string", "format": "date-time"},
			}},
			"current_usage":            schema{"type": "number", "readOnly": true, "description": "Settled in this period, in the unit of credit_limit. Read-only fields are ignored in requests."},
			"reserved_usage":           schema{"type": "number", "readOnly": true, "description": "Reserved by requests in progress, in the unit of credit_limit."},
			"available":                schema{"type": "number", "readOnly": true, "description": "In the unit of credit_limit: credit_limit less current_usage and reserved_usage."},
			"status":                   schema{"type": "string", "enum": []string{"active", Exhausted}, "readOnly": true, "description": "exhausted: nothing is left, or a request was rejected and less is left than the last admitted request needed."},
			"last_reset_at":            schema{"type": []string{"string", "null"}, "format": "date-time", "readOnly": true},
			"is_threshold_alerts_sent": schema{"type": "boolean", "readOnly": true},
			"is_exhausted_alerts_sent": schema{"type": "boolean", "readOnly": true},
		},
	}
	if p.typed {
		one["required"] = []string{"type", "credit_limit"}
		delete(one["properties"].(schema)["type"].(schema), "default")
	}
	if p.usageArray {
		return listOf(one, p.maxUsage)
	}
	one["type"] = []string{"object", "null"}
	return one
}

// RateSchema describes rate_limits in requests and responses.
func (p Place) RateSchema() map[string]any {
	units := []Unit{PerMinute, PerHour, PerDay, PerWeek}
	if p.perSecond {
		units = append(units, PerSecond)
	}
	one := schema{
		"type": "object", "required": []string{"type", "unit", "value"}, "additionalProperties": false,
		"properties": schema{
			"type":  schema{"type": "string", "enum": []Measure{Requests, Tokens}},
			"unit":  schema{"type": "string", "enum": units},
			"value": schema{"type": "integer", "minimum": p.minRate, "maximum": int64(maxCount)},
		},
	}
	list := listOf(one, p.maxRates)
	if p.rateObject {
		return schema{"anyOf": []any{list, one}}
	}
	return list
}

func listOf(one schema, most int) schema {
	return schema{"type": []string{"array", "null"}, "maxItems": most, "items": one}
}
