package route

import (
	"context"
	"slices"

	"gateway/shared/resource"
	"gateway/shared/store"
)

// RefersField is the list field of saved configs that name guardrails or prompts:
// "1" where they do. Who looks for users of those reads no other config.
const RefersField = "refers"

// Users are the saved configs of the scopes that name a record, archived ones too.
// pick says which references count.
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
				if rows[i].Fields[RefersField] != "" {
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
