package components

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Error statuses of an operation with responses of one content are one response for their range,
// such as 4XX, that lists them in the extension statusList and in its description.
const statusList = "x-gateway-statuses"

// fold replaces responses of one content for several error statuses by one for their range.
func fold(op map[string]any) {
	responses, _ := op["responses"].(map[string]any)
	for _, class := range []string{"4", "5"} {
		equal := map[string][]string{}
		var most []string
		for _, status := range slices.Sorted(maps.Keys(responses)) {
			if response, ok := responses[status].(map[string]any); ok && strings.HasPrefix(status, class) && response["description"] != nil {
				response = maps.Clone(response)
				delete(response, "description")
				text := canonical(response)
				if equal[text] = append(equal[text], status); len(equal[text]) > len(most) {
					most = equal[text]
				}
			}
		}
		if len(most) < 2 {
			continue
		}
		shared := maps.Clone(responses[most[0]].(map[string]any))
		statuses, lines := make([]any, len(most)), make([]string, len(most))
		for i, status := range most {
			statuses[i] = status
			lines[i] = fmt.Sprint(status, ": ", responses[status].(map[string]any)["description"])
			delete(responses, status)
		}
		shared["description"] = strings.Join(lines, " ")
		shared[statusList] = statuses
		responses[class+"XX"] = shared
	}
}

// unfold undoes fold.
func unfold(op map[string]any) {
	responses, _ := op["responses"].(map[string]any)
	for _, class := range []string{"4XX", "5XX"} {
		shared, _ := responses[class].(map[string]any)
		statuses := list(shared[statusList])
		if len(statuses) == 0 {
			continue
		}
		delete(responses, class)
		rest, _ := shared["description"].(string)
		for i, of := range statuses {
			one := maps.Clone(shared)
			delete(one, statusList)
			text, status := strings.TrimPrefix(rest, fmt.Sprint(of, ": ")), fmt.Sprint(of)
			if i+1 < len(statuses) {
				text, rest, _ = strings.Cut(text, fmt.Sprint(" ", statuses[i+1], ": "))
			}
			one["description"] = text
			responses[status] = one
		}
	}
}

// shareSecurity makes the security of most operations that of the document.
func shareSecurity(doc, paths map[string]any) {
	uses, common := map[string]int{}, ""
	each(paths, func(op map[string]any) {
		if len(list(op["security"])) > 0 {
			text := canonical(op["security"])
			if uses[text]++; uses[text] > uses[common] {
				common = text
			}
		}
	})
	if common == "" {
		return
	}
	each(paths, func(op map[string]any) {
		if op["security"] == nil { // that of the document does not apply
			op["security"] = []any{}
		}
		if canonical(op["security"]) == common {
			doc["security"] = op["security"]
			delete(op, "security")
		}
	})
}
