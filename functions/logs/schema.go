package logs

import (
	"maps"
	"strings"

	"gateway/shared/admin"
)

var (
	text     = admin.Schema{"type": "string"}
	maybe    = admin.Schema{"type": []string{"string", "null"}}
	number   = admin.Schema{"type": "number"}
	integer  = admin.Schema{"type": "integer"}
	boolean  = admin.Schema{"type": "boolean"}
	datetime = admin.Schema{"type": "string", "format": "date-time"}
	texts    = admin.Schema{"type": "array", "items": text}
	headers  = admin.Schema{"type": "object", "additionalProperties": text}
	counts   = admin.Schema{"type": "object", "additionalProperties": integer, "description": "Units by class."}
	payload  = admin.Schema{"description": "JSON, or text; base64 where body_encoding says so."}
)

// metricsSchema describes row. Cost is in US cents, times are in milliseconds.
func metricsSchema(more map[string]admin.Schema) admin.Schema {
	members := map[string]admin.Schema{}
	maps.Copy(members, more)
	for _, m := range metrics {
		kind, nullable := strings.CutSuffix(m.kind, "?")
		s := admin.Schema{"type": kind}
		switch {
		case nullable:
			s["type"] = []string{kind, "null"}
		case kind == "array":
			s["items"] = text
		}
		members[m.name] = s
	}
	for _, name := range unrecorded {
		members[name] = maybe
	}
	members["organisation_name"], members["config_version_id"] = text, maybe
	return strict(members)
}

// strict is an object without other members.
func strict(members map[string]admin.Schema) admin.Schema {
	s := admin.ObjectSchema(members)
	s["additionalProperties"] = false
	return s
}

func describedTexts(doc string) admin.Schema {
	return admin.Schema{"type": "array", "items": text, "description": doc}
}

func list(of admin.Schema) admin.Schema { return admin.Schema{"type": "array", "items": of} }

var listSchema = strict(map[string]admin.Schema{
	"object": {"type": "string", "const": "list"},
	"total":  {"type": "integer", "description": "Logs over all pages, counted up to 10,000."}, "total_is_lower_bound": {"type": "boolean", "description": "There are more than total."},
	"next_cursor": {"type": "string", "description": "Absent on the last page."},
	"data":        list(metricsSchema(map[string]admin.Schema{"created_at": datetime, "object": {"type": "string", "const": "log"}})),
})

// part is a message of a log with further members.
func part(more map[string]admin.Schema) admin.Schema {
	members := map[string]admin.Schema{"headers": headers, "body": payload, "body_encoding": {"type": "string", "const": "base64"}}
	maps.Copy(members, more)
	return strict(members)
}

var logSchema = strict(map[string]admin.Schema{
	"_id": text, "object": {"type": "string", "const": "log"}, "organisation_id": text, "created_at": datetime,
	"request":            part(map[string]admin.Schema{"url": text, "method": text, "gatewayHeaders": headers}),
	"response":           part(map[string]admin.Schema{"status": integer, "responseTime": number, "lastUsedOptionJsonPath": maybe}),
	"transformedRequest": part(map[string]admin.Schema{"method": text}), "originalResponse": part(nil),
	"metrics": metricsSchema(nil), "usage": counts,
	"attempts": list(strict(map[string]admin.Schema{
		"ai_org": text, "virtual_key": maybe, "ai_model": text, "option": maybe, "response_status_code": {"type": "integer", "description": "0: no answer."},
		"provider_request_id": maybe, "error_code": maybe, "start": number, "latency": number, "usage": counts, "cost": number,
		"retry": {"type": "integer", "description": "0: the first call of its target."}, "wait": number, "wait_reason": maybe,
	})),
	"decision": strict(map[string]admin.Schema{
		"draws":    list(strict(map[string]admin.Schema{"path": text, "number": number, "chosen": integer, "sticky": maybe})),
		"breakers": list(strict(map[string]admin.Schema{"path": text, "open": boolean, "probe": boolean})),
		"matches":  list(strict(map[string]admin.Schema{"path": text, "condition": {"type": "integer", "description": "-1: the default."}, "chosen": integer})),
		"skips":    list(strict(map[string]admin.Schema{"path": text, "reason": text, "code": maybe, "status": integer})),
		"losses":   describedTexts("Of the request: what the provider was not told."),
		"missed":   describedTexts("Of the provider's answer: what the client's shape has no place for."),
	}),
	"feedback":   {"type": "array"},
	"bodies_cut": {"type": "boolean", "description": "A body was longer than logs keep."}, "bodies_unreadable": boolean,
})
