package declare

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// deletions plans the deletion of resources that are not declared.
func (b *planner) deletions(d *Document, live *state, spaces []*space) {
	if !b.o.Prune {
		return
	}
	drop := func(sections map[string][]*Resource, items []*item, workspace string) {
		for _, k := range slices.Backward(kinds) {
			list, declared := sections[k.section]
			if !declared {
				continue
			}
			for _, it := range slices.Backward(items) {
				if it.kind == k && !it.builtIn && !slices.ContainsFunc(list, func(r *Resource) bool { return findItem(k, r.Fields, items) == it }) {
					b.Steps = append(b.Steps, &Step{Action: Delete, Noun: k.noun, Name: it.name(), Workspace: workspace, run: func(ctx context.Context, p *Plan) error {
						_, err := call(ctx, p.api, "DELETE", it.path(""), nil)
						return err
					}})
				}
			}
		}
	}
	for i, w := range d.Workspaces {
		if spaces[i] != nil {
			drop(w.Sections, spaces[i].items, spaces[i].name)
		}
	}
	for _, sp := range live.spaces {
		if d.listsWorkspaces && !slices.Contains(spaces, sp) && !sp.isDefault {
			b.Steps = append(b.Steps, &Step{Action: Delete, Noun: nounWorkspace, Name: sp.name, run: func(ctx context.Context, p *Plan) error {
				_, err := call(ctx, p.api, "DELETE", "/admin/workspaces/"+sp.slug, map[string]any{"name": sp.name, "force_delete": true})
				return err
			}})
		}
	}
	if d.Organization != nil {
		drop(d.Organization.Sections, live.items, "")
	}
}

// Check returns an error if the plan cannot be carried out: it lacks secrets, or has a change
// that the gateway does not make.
func (p *Plan) Check() error {
	if missing := p.Missing(); len(missing) > 0 {
		return fmt.Errorf("no value for %s: set them in the environment; nothing was written", strings.Join(missing, ", "))
	}
	for _, s := range p.Steps {
		if s.refused != "" {
			return fmt.Errorf("%s: %s; nothing was written", s, s.refused)
		}
	}
	return nil
}

// Apply carries out a plan. It stops at the first step that fails; a further plan continues
// from there. done is called after each step. Nothing is written if Check fails.
func (p *Plan) Apply(ctx context.Context, done func(*Step)) error {
	if err := p.Check(); err != nil {
		return err
	}
	for i, s := range p.Steps {
		if err := s.run(ctx, p); err != nil {
			return fmt.Errorf("%s: %w (%d of %d steps are done; run the command again to go on)", s, err, i, len(p.Steps))
		}
		done(s)
	}
	return nil
}
