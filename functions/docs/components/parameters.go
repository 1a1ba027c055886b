package components

import (
	"cmp"
	"maps"
	"slices"
	"strings"
)

const parameterRef = "#/components/parameters/"

// parameter is one that several operations describe equally.
type parameter struct {
	name, text string
	value      any
	uses       []parameterUse
}

type parameterUse struct {
	operation words
	tag       string
	put       func(ref map[string]any)
}

// tags is the number of tags of the operations with a parameter.
func (p *parameter) tags() int {
	tags := map[string]bool{}
	for _, u := range p.uses {
		tags[u.tag] = true
	}
	return len(tags)
}

// shareParameters replaces repeated parameters of operations by references. The form of a
// parameter that operations of most tags use has the name of the parameter. Another form also has
// that of the resource of its operations, or is shared by the operations of a tag.
func shareParameters(paths, all map[string]any) {
	shared := object(all, "parameters")
	known := map[string]string{} // names by content
	for name, value := range shared {
		known[canonical(value)] = name
	}
	forms := map[string]*parameter{}
	each(paths, func(op map[string]any) {
		var tag string
		if tags := list(op["tags"]); len(tags) > 0 {
			tag, _ = tags[0].(string)
		}
		of := list(op["parameters"])
		for i, value := range of {
			p, _ := value.(map[string]any)
			name, ok := p["name"].(string)
			text := canonical(p)
			if name, ok := known[text]; ok {
				of[i] = map[string]any{"$ref": parameterRef + name}
				continue
			}
			if !ok || len(text) < repeated {
				continue
			}
			if forms[text] == nil {
				forms[text] = &parameter{name: name, text: text, value: value}
			}
			forms[text].uses = append(forms[text].uses, parameterUse{operationName(op), tag, func(ref map[string]any) { of[i] = ref }})
		}
	})
	order := slices.SortedFunc(maps.Values(forms), func(a, b *parameter) int {
		return cmp.Or(cmp.Compare(b.tags(), a.tags()), cmp.Compare(len(b.uses), len(a.uses)), strings.Compare(a.text, b.text))
	})
	for _, p := range order {
		p.share(shared)
	}
}

// share names a parameter, or describes it in place.
func (p *parameter) share(shared map[string]any) {
	if p.add(shared, p.name, p.uses) || p.add(shared, p.qualified(p.uses), p.uses) {
		return
	}
	tags := map[string][]parameterUse{}
	for _, u := range p.uses {
		tags[u.tag] = append(tags[u.tag], u)
	}
	for _, tag := range slices.Sorted(maps.Keys(tags)) {
		_ = p.add(shared, p.qualified(tags[tag]), tags[tag]) || p.add(shared, snake(split(tag).and(p.name)), tags[tag])
	}
}

// add adds a component if the name is free and several operations use it.
func (p *parameter) add(shared map[string]any, name string, uses []parameterUse) bool {
	if len(uses) < 2 || name == "" || shared[name] != nil {
		return false
	}
	shared[name] = p.value
	for _, u := range uses {
		u.put(map[string]any{"$ref": parameterRef + name})
	}
	return true
}

// qualified is the name of the parameter after that of the resource of its operations.
func (p *parameter) qualified(uses []parameterUse) string {
	var resources []words
	for _, u := range uses {
		resources = append(resources, u.operation.resource())
	}
	resource := common(distinct(resources))
	if !resource.named() {
		return ""
	}
	return snake(resource.and(p.name))
}

// snake spells a name like most parameters: policy_entities_cursor.
func snake(name words) string {
	for i := range len(name) - 1 {
		name[i] = strings.ToLower(name[i])
	}
	return strings.Join(name, "_")
}
