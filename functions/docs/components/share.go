package components

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Error statuses of an operation with equal responses are one response for their range, such as
// 4XX, that lists them in the extension statusList and in its description.
const (
	statusList = "x-gateway-statuses"
	statusText = " Statuses: "
)

// fold replaces equal responses for several error statuses by one for their range.
func fold(op map[string]any) {
	responses, _ := op["responses"].(map[string]any)
	for _, class := range []string{"4", "5"} {
		equal := map[string][]string{}
		var most []string
		for _, status := range slices.Sorted(maps.Keys(responses)) {
			if response, ok := responses[status].(map[string]any); ok && strings.HasPrefix(status, class) && response["description"] != nil {
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
		statuses := make([]any, len(most))
		for i, status := range most {
			statuses[i] = status
			delete(responses, status)
		}
		shared["description"] = fmt.Sprint(shared["description"], statusText, strings.Join(most, ", "), ".")
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
		one := maps.Clone(shared)
		delete(one, statusList)
		description, _ := one["description"].(string)
		one["description"], _, _ = strings.Cut(description, statusText)
		delete(responses, class)
		for _, status := range statuses {
			if status, ok := status.(string); ok {
				responses[status] = one
			}
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
