package route

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"gateway/shared/resource"
	"gateway/shared/store"
)

// RefersField is the list field of saved configs that name saved resources: it has their
// Marks. When the users of a resource are looked for, configs that cannot name it are not
// read.
const RefersField = "refers"

const (
	// mostMarks bounds the field, because every list row has it.
	mostMarks = 32
	// manyMarks replaces more marks than that: such a config is always read.
	manyMarks = "*"
)

// Marks is the value of RefersField for a config with these references: a short hash
// of each name, with spaces between them; "" without any.
func Marks(refs Refs) string {
	var marks []string
	for _, ref := range slices.Concat(refs.Providers, refs.Guardrails, refs.Prompts) {
		marks = append(marks, mark(ref.Name))
	}
	slices.Sort(marks)
	if marks = slices.Compact(marks); len(marks) > mostMarks {
		return manyMarks
	}
	return strings.Join(marks, " ")
}

func mark(name string) string {
	h := fnv.New32a()
	h.Write([]byte(name))
	return fmt.Sprintf("%08x", h.Sum32())
}

// marked reports whether a config with these marks may name the record.
func marked(marks string, of *resource.Record) bool {
	return marks == manyMarks || strings.Contains(marks, mark(of.ID)) || of.Slug != "" && strings.Contains(marks, mark(of.Slug))
}

// Users are the saved configs of the scopes that name a record, archived ones too. pick
// chooses the references that count.
func Users(ctx context.Context, r *resource.Resources, in []store.Scope, of *resource.Record, pick func(Refs) []Ref) ([]resource.Ref, error) {
	var out []resource.Ref
	for _, archived := range []bool{false, true} {
		lists, err := r.ListMany(ctx, in, KindConfig, archived)
		if err != nil {
			return nil, err
		}
		for n, rows := range lists {
			var ids []string
			for i := range rows {
				if marked(rows[i].Fields[RefersField], of) {
					ids = append(ids, rows[i].ID)
				}
			}
			recs, err := r.GetMany(ctx, in[n], KindConfig, ids)
			if err != nil {
				return nil, err
			}
			for i := range recs {
				cfg, bad := ParseSaved(recs[i].Body)
				if len(bad) == 0 && slices.ContainsFunc(pick(cfg.Refs()), func(ref Ref) bool { return ref.Name == of.ID || ref.Name == of.Slug }) {
					out = append(out, recs[i].Ref())
				}
			}
		}
	}
	return out, nil
}
