package components

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// HeaderPrefix is the beginning of the names of the gateway's headers, which the names of their
// components omit.
const HeaderPrefix = "x-gateway-"

const responseRef = "#/components/responses/"

// shareResponses replaces repeated responses of operations, and repeated headers within them, by
// references.
func shareResponses(paths, all map[string]any) {
	headers, seen := object(all, "headers"), map[string]int{}
	each(paths, func(op map[string]any) { count(op, seen) })
	responses(paths, func(_ map[string]any, _ string, response map[string]any) {
		of, _ := response["headers"].(map[string]any)
		for header, description := range of {
			name := strings.TrimPrefix(header, HeaderPrefix)
			if known, ok := headers[name]; seen[canonical(description)] > 1 && (!ok || canonical(known) == canonical(description)) {
				headers[name] = description
				of[header] = map[string]any{"$ref": "#/components/headers/" + name}
			}
		}
	})
	groups := map[string][]words{} // names of operations, by content
	responses(paths, func(op map[string]any, _ string, response map[string]any) {
		if text := canonical(response); len(text) >= repeated {
			groups[text] = append(groups[text], operationName(op))
		}
	})
	shared, names := object(all, "responses"), map[string]string{}
	responses(paths, func(op map[string]any, status string, response map[string]any) {
		text := canonical(response)
		if len(groups[text]) < 2 {
			return
		}
		name, ok := names[text]
		if !ok {
			for _, possible := range responseNames(status, response, distinct(slices.Clone(groups[text]))) {
				if shared[possible] == nil {
					name, shared[possible] = possible, response
					break
				}
			}
			names[text] = name // empty where each is taken: the response stays in place
		}
		if name != "" {
			op["responses"].(map[string]any)[status] = map[string]any{"$ref": responseRef + name}
		}
	})
}

// responses calls f with every response that is described in place.
func responses(paths map[string]any, f func(op map[string]any, status string, response map[string]any)) {
	each(paths, func(op map[string]any) {
		of, _ := op["responses"].(map[string]any)
		for _, status := range slices.Sorted(maps.Keys(of)) {
			if response, ok := of[status].(map[string]any); ok && refOf(response) == "" {
				f(op, status, response)
			}
		}
	})
}

// responseNames are possible names of a response that operations share, the best first.
func responseNames(status string, response map[string]any, operations []words) []string {
	if status[0] != '2' {
		return rejectionNames(status, response)
	}
	var out []string
	if name := schemaName(response); name != "" {
		out = append(out, name)
	}
	shared := common(operations)
	switch {
	case shared.named() || len(shared) > 0 && len(operations) > 2 && slices.Contains(verbs, shared[0]):
		operations = append([]words{shared}, operations...)
	case len(operations) > 1:
		out = append(out, forms(response)+responseRole)
	}
	for _, name := range operations {
		name = trim(name, responseRole)
		out = append(out, name.and(responseRole).String(), name.and(statusWords[status], responseRole).String())
	}
	return out
}

// schemaName is the name of the schema of a successful JSON response without alternatives.
func schemaName(response map[string]any) string {
	content, _ := response["content"].(map[string]any)
	media, _ := content["application/json"].(map[string]any)
	if len(content) != 1 || media["example"] == nil {
		return ""
	}
	return strings.TrimPrefix(refOf(media["schema"]), schemaRef)
}

// statusWords are the statuses in names of responses.
var statusWords = map[string]string{
	"202": "Accepted", "204": "NoContent", "302": "Redirect", "303": "Redirect", "304": "NotModified",
	"400": "BadRequest", "401": "Unauthorized", "402": "PaymentRequired", "403": "Forbidden", "404": "NotFound", "405": "MethodNotAllowed", "406": "NotAcceptable", "408": "Timeout", "409": "Conflict",
	"412": "PreconditionFailed", "413": "TooLarge", "415": "UnsupportedMediaType", "429": "RateLimited", "446": "Denied",
	"500": "Internal", "501": "NotImplemented", "502": "BadGateway", "503": "Unavailable",
}

// usualStatuses are those of which names of errors do not speak where all of a line are there: of
// every route, of a key, and of requests to models.
var usualStatuses = map[string][][]string{"4": {{"400", "429"}, {"401", "403"}, {"408", "412", "413", "446"}}, "5": {{"500", "503"}, {"502"}}}

// rejectionNames are possible names of an error, the best first. They consist of the name of its
// schema and the statuses besides the usual ones: ErrorOrNotFound, and PublicError without
// those of a key.
func rejectionNames(status string, response map[string]any) []string {
	var statuses []string
	for _, s := range list(response[statusList]) {
		statuses = append(statuses, fmt.Sprint(s))
	}
	if len(statuses) == 0 {
		statuses = []string{status}
	}
	name := strings.TrimSuffix(forms(response), rejectionRole)
	switch has := func(s string) bool { return slices.Contains(statuses, s) }; {
	case status[0] == '5':
		name += "Server" + rejectionRole
	case status[0] == '4' && !has("401") && !has("403"):
		name = "Public" + name + rejectionRole
	case status[0] == '4':
		name += rejectionRole
	}
	short, full := name, name
	for _, s := range statuses {
		full += "Or" + statusWords[s]
		usual := slices.ContainsFunc(usualStatuses[status[:1]], func(group []string) bool {
			return slices.Contains(group, s) && !slices.ContainsFunc(group, func(other string) bool { return !slices.Contains(statuses, other) })
		})
		if !usual {
			short += "Or" + statusWords[s]
		}
	}
	return []string{short, full}
}

// forms names a body after the schemas of its media types.
func forms(response map[string]any) string {
	content, _ := response["content"].(map[string]any)
	var name string
	for _, media := range slices.Sorted(maps.Keys(content)) {
		of, _ := content[media].(map[string]any)
		switch {
		case refOf(of["schema"]) != "":
			name += strings.TrimSuffix(strings.TrimPrefix(refOf(of["schema"]), schemaRef), rejectionRole)
		case strings.HasPrefix(media, "text/html"):
			name += "Page"
		case media == "*/*":
			name += "Any"
		default:
			name += camel(strings.TrimPrefix(media[strings.LastIndexByte(media, '/')+1:], "x-"))
		}
	}
	return name
}
