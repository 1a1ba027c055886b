package s3vectors

// matches applies a filter: nothing, $and and $or of filters, or fields with
// their operators.
func matches(meta map[string]any, filter any) (bool, error) {
	if filter == nil {
		return true, nil
	}
	f, ok := filter.(map[string]any)
	if !ok || len(f) == 0 {
		return false, invalid("the filter is %v", filter)
	}
	all := true
	for name, cond := range f {
		ok, err := false, error(nil)
		if name == "$and" || name == "$or" {
			ok, err = matchesList(meta, name == "$and", cond)
		} else {
			ok, err = matchesField(meta[name], cond)
		}
		if err != nil {
			return false, err
		}
		all = all && ok
	}
	return all, nil
}

func matchesList(meta map[string]any, every bool, cond any) (bool, error) {
	list, _ := cond.([]any)
	if len(list) == 0 {
		return false, invalid("an empty list of filters")
	}
	all, some := true, false
	for _, e := range list {
		ok, err := matches(meta, e)
		if err != nil {
			return false, err
		}
		all, some = all && ok, some || ok
	}
	return every && all || !every && some, nil
}

func matchesField(have, cond any) (bool, error) {
	ops, ok := cond.(map[string]any)
	if !ok {
		ops = map[string]any{"$eq": cond}
	}
	all := true
	for op, want := range ops {
		number, isNumber := want.(float64)
		value, _ := have.(float64)
		switch op {
		case "$eq", "$ne":
			switch want.(type) {
			case string, float64, bool:
			default:
				return false, invalid("%s takes no %T", op, want)
			}
			all = all && (have == want) == (op == "$eq")
		case "$gt", "$gte", "$lt", "$lte":
			if !isNumber {
				return false, invalid("%s takes numbers", op)
			}
			holds := map[string]bool{"$gt": value > number, "$gte": value >= number, "$lt": value < number, "$lte": value <= number}[op]
			all = all && have != nil && holds
		default:
			return false, invalid("unknown operator %s", op)
		}
	}
	return all, nil
}
