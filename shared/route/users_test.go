package route

import (
	"fmt"
	"testing"

	"gateway/shared/resource"
)

func TestMarksMissNoName(t *testing.T) {
	one := &resource.Record{ID: "id-of-one", Slug: "one"}
	for n := range 60 {
		var refs Refs
		for i := range n {
			refs.Guardrails = append(refs.Guardrails, Ref{Name: fmt.Sprintf("guardrail-%d", i)})
		}
		if marked(Marks(refs), one) != (n > mostMarks) {
			t.Errorf("%d other names: %q", n, Marks(refs))
		}
		for _, name := range []string{one.ID, one.Slug} {
			for _, with := range []Refs{
				{Guardrails: append(refs.Guardrails, Ref{Name: name})},
				{Guardrails: refs.Guardrails, Providers: []Ref{{Name: name}}},
				{Guardrails: refs.Guardrails, Prompts: []Ref{{Name: name}, {Name: name}}},
			} {
				got := Marks(with)
				if !marked(got, one) {
					t.Errorf("%d names and %s: %q", n, name, got)
				}
				if len(got) > 9*mostMarks {
					t.Errorf("%d bytes of marks", len(got))
				}
			}
		}
	}
	if marked("", one) || marked(Marks(Refs{}), &resource.Record{ID: "x"}) {
		t.Error("a config without names may name something")
	}
}
