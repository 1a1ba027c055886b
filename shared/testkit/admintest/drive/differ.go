package drive

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"
)

// Differences returns the fields of sent that differ in read, by the schema of the body.
// Write-only fields are skipped. names resolves the names that a reference may be returned as.
func Differences(body Schema, sent, read map[string]any, names func(collection, name string) []string) (out []string) {
	properties := object(body["properties"])
	for _, name := range slices.Sorted(maps.Keys(sent)) {
		s := object(properties[name])
		if s["writeOnly"] == true || name == workspaceID {
			continue
		}
		got, there := read[name]
		if !there {
			out = append(out, name+" is not read back, and the document does not say so")
			continue
		}
		d := differ{names}
		d.compare(name, s, sent[name], got, &out)
	}
	return out
}

const workspaceID = "workspace_id"

type differ struct {
	names func(collection, name string) []string
}

func (d differ) compare(at string, s Schema, sent, got any, out *[]string) {
	if collection := text(s[RefersTo]); collection != "" && sent != nil {
		one := got
		if o := object(got); o != nil {
			one = o["id"]
		}
		if !slices.Contains(d.names(collection, text(sent)), text(one)) {
			*out = append(*out, fmt.Sprintf("%s is %v, sent %v", at, got, sent))
		}
		return
	}
	s = branch(s, sent)
	switch x := sent.(type) {
	case map[string]any:
		o := object(got)
		if a := list(got); len(a) == 1 {
			o = object(a[0]) // the single schema of a list that allows several
		}
		for _, k := range slices.Sorted(maps.Keys(x)) {
			below := object(object(s["properties"])[k])
			if below["writeOnly"] == true {
				continue
			}
			if below == nil {
				below = object(s["additionalProperties"])
			}
			d.compare(at+"."+k, below, x[k], o[k], out)
		}
		return
	case []any:
		a := list(got)
		if len(a) != len(x) {
			*out = append(*out, fmt.Sprintf("%s has %d entries, sent %d", at, len(a), len(x)))
			return
		}
		for i := range x {
			d.compare(fmt.Sprintf("%s[%d]", at, i), object(s["items"]), x[i], a[i], out)
		}
		return
	}
	if !same(sent, got) {
		*out = append(*out, fmt.Sprintf("%s is %v, sent %v", at, got, sent))
	}
}

// same compares plain values: times as times, truth as JSON and as 0 and 1.
func same(a, b any) bool {
	if reflect.DeepEqual(a, b) {
		return true
	}
	if x, ok := a.(bool); ok {
		n, isNumber := b.(float64)
		return isNumber && (n == 1) == x
	}
	t, errA := time.Parse(time.RFC3339Nano, text(a))
	u, errB := time.Parse(time.RFC3339Nano, text(b))
	return errA == nil && errB == nil && t.Equal(u)
}
