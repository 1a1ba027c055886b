package prompts

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"gateway/shared/admin"
	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/prompt"
	"gateway/shared/resource"
	"gateway/shared/store"
)

// trial and trialChange are an experiment and what happens to it.
type (
	trial       = admin.Item[prompt.Experiment]
	trialChange = admin.Change[prompt.Experiment]
)

func (f *family) describeExperiments() *admin.Collection[prompt.Experiment] {
	return &admin.Collection[prompt.Experiment]{
		Kind: prompt.KindExperiment, Object: "prompt-experiment", Path: "/prompts/{promptId}/experiments", Param: "experimentId", UUIDOnly: true,
		WriteRole: admin.Manager, Parent: f.prompts.AsParent(),
		Fields: []admin.Field{
			admin.NameField(prompt.MaxName), {Name: "description"},
			{Name: "variants", Type: admin.Array, Required: true, Min: 2, Max: 10, Doc: "Versions that share the requests by weight; the others are compared with the first. They must exist when the experiment starts.",
				Example: []any{map[string]any{"version": 1, "weight": 50}, map[string]any{"version": 2, "weight": 50}},
				Of: &admin.Field{Type: admin.Object, Fields: []admin.Field{
					{Name: "version", Type: admin.Integer, Required: true, Min: 1, Max: 999_999_999},
					{Name: "weight", Type: admin.Integer, Required: true, Max: 1_000_000, Doc: "Share of the sum of the weights; 0: none."},
				}}},
			{Name: "sticky_by", Doc: "Metadata key that identifies a user, who always gets the same version; default _user, or the body's user."},
		},
		Computed: []admin.ComputedField[prompt.Experiment]{
			{Field: admin.Field{Name: "status", Type: admin.String, Enum: []string{prompt.Draft, prompt.Running, prompt.Stopped}, Required: true}, Value: func(_ *admin.Call, it trial) any { return it.Status }},
			{Field: admin.Field{Name: "prompt_id", Type: admin.String, Required: true}, Value: func(c *admin.Call, _ trial) any { return c.ParentRecord().ID }},
			{Field: admin.Field{Name: "started_at", Type: admin.Timestamp}, Value: func(_ *admin.Call, it trial) any { return timeOrNull(it.Form.Started) }},
			{Field: admin.Field{Name: "stopped_at", Type: admin.Timestamp}, Value: func(_ *admin.Call, it trial) any { return timeOrNull(it.Form.Ended) }},
			{Field: admin.Field{Name: "promoted_version", Type: admin.Integer, Doc: "Version that was published as the winner."}, Value: func(_ *admin.Call, it trial) any {
				if it.Form.Promoted == 0 {
					return nil
				}
				return it.Form.Promoted
			}},
		},
		Before: beforeExperiment, Retire: retireExperiment,
		Created: &admin.Reply{Members: []string{"id", "status", "object"}},
	}
}

// beforeExperiment rejects changes of a running experiment after which its results would be
// about other users or other versions.
func beforeExperiment(_ *admin.Call, _ *resource.Tx, ch *trialChange) error {
	if ch.Creates() {
		ch.Rec.Status = prompt.Draft
	}
	var bad []fault.Detail
	if ch.Rec.Status != prompt.Draft {
		if ch.Form.StickyBy != ch.OldForm.StickyBy {
			bad = append(bad, fault.Detail{Field: "sticky_by", Message: "cannot be changed once the experiment has started"})
		}
		same := func(a, b prompt.Variant) bool { return a.Version == b.Version }
		if !slices.EqualFunc(ch.Form.Variants, ch.OldForm.Variants, same) {
			bad = append(bad, fault.Detail{Field: "variants", Message: "must name the same versions in the same order once the experiment has started; weights may change while it runs"})
		} else if ch.Rec.Status == prompt.Stopped && !slices.Equal(ch.Form.Variants, ch.OldForm.Variants) {
			bad = append(bad, fault.Detail{Field: "variants", Message: "cannot be changed once the experiment was stopped"})
		}
	}
	if refused := fault.Invalids(bad); refused != nil {
		return refused
	}
	return nil
}

func retireExperiment(_ *admin.Call, _ *resource.Tx, it trial) error {
	if it.Status == prompt.Running {
		return fault.New(fault.Conflict, "", "this experiment is running; stop it first")
	}
	return nil
}

// experimentRoutes start and stop experiments, and end them with a winner.
func (f *family) experimentRoutes() []admin.Route {
	const at = "/prompts/{promptId}/experiments/{experimentId}"
	answer := admin.Closed(map[string]admin.Schema{"id": {"type": "string"}, "status": {"type": "string"}, "object": {"type": "string", "const": "prompt-experiment"}})
	route := func(word, name, doc string, action string, body []admin.Field, do func(*admin.Call, *resource.Tx, item, trial) error) admin.Route {
		r := admin.Route{
			Method: "POST", Path: at + "/" + word, Name: name, Doc: doc, Action: action, Body: body, Response: answer, Errors: []int{409},
			Do: f.experiments.WithItem("update", func(c *admin.Call) (any, error) { return f.turn(c, do) }),
		}
		if body == nil {
			r.BodyMode = admin.OptionalBody
		}
		return r
	}
	routes := f.experiments.ItemRoutes(
		route("start", "startPromptExperiment", "Start the experiment: its versions share the requests that name no version. A prompt has at most one running experiment.", audit.Update, nil, f.start),
		route("stop", "stopPromptExperiment", "End the experiment: requests get the published version again.", audit.Update, nil, f.stop),
		route("promote", "promotePromptExperiment", "End the experiment and publish one of its versions.", audit.Publish,
			[]admin.Field{{Name: "version", Type: admin.Integer, Required: true, Min: 1, Max: 999_999_999}}, f.promote),
	)
	for i := range routes {
		routes[i].Scopes = []string{"prompts.publish"} // each changes what requests get
	}
	return routes
}

// turn changes the state of the experiment that the path names, and of its prompt.
func (f *family) turn(c *admin.Call, do func(*admin.Call, *resource.Tx, item, trial) error) (any, error) {
	var out admin.Members
	err := c.Change(func(tx *resource.Tx) error {
		of, err := f.prompts.FindIn(c, tx)
		if err != nil {
			return err
		}
		it, err := f.experiments.FindIn(c, tx)
		if err != nil {
			return err
		}
		if err := do(c, tx, of, it); err != nil {
			return err
		}
		if it.Body, err = json.Marshal(it.Form); err != nil {
			return fmt.Errorf("prompts: encode: %w", err)
		}
		it.UpdatedBy = c.Actor()
		out = admin.Members{"id": it.ID, "status": it.Status, "object": "prompt-experiment"}
		return tx.Update(it.Record)
	})
	return out, err
}

func (f *family) start(c *admin.Call, tx *resource.Tx, of item, it trial) error {
	if it.Status != prompt.Draft {
		return fault.Newf(fault.Conflict, "", "this experiment is %s and cannot be started again; create another one", it.Status)
	}
	if running := of.Fields[prompt.FieldExperiment]; running != "" {
		return fault.Newf(fault.Conflict, "", "the experiment %s of this prompt is already running; stop it first", running)
	}
	for i, v := range it.Form.Variants {
		if v.Version > of.Latest {
			return fault.Newf(fault.Conflict, fmt.Sprintf("variants[%d].version", i), "variants[%d].version: this prompt has no version %d yet; it has 1 to %d", i, v.Version, of.Latest)
		}
		if err := f.prompts.CheckPublish(c, of, v.Version); err != nil {
			return err
		}
	}
	now := tx.Now().UTC()
	it.Status, it.Form.Started = prompt.Running, &now
	if of.Fields == nil {
		of.Fields = map[string]string{}
	}
	of.Fields[prompt.FieldExperiment] = it.ID
	return tx.Update(of.Record)
}

func (f *family) stop(_ *admin.Call, tx *resource.Tx, of item, it trial) error {
	if err := end(tx, of, it); err != nil {
		return err
	}
	return tx.Update(of.Record)
}

// end takes the experiment from its prompt.
func end(tx *resource.Tx, of item, it trial) error {
	if it.Status != prompt.Running {
		return fault.Newf(fault.Conflict, "", "this experiment is %s, not running", it.Status)
	}
	now := tx.Now().UTC()
	it.Status, it.Form.Ended = prompt.Stopped, &now
	delete(of.Fields, prompt.FieldExperiment)
	return nil
}

// promote publishes a version of an experiment, which ends where it still runs.
func (f *family) promote(c *admin.Call, tx *resource.Tx, of item, it trial) error {
	n := c.Body.Int("version")
	if !slices.ContainsFunc(it.Form.Variants, func(v prompt.Variant) bool { return v.Version == n }) {
		return fault.Invalid("version", "must be a version that took part in the experiment")
	}
	if it.Status == prompt.Draft {
		return fault.New(fault.Conflict, "", "this experiment has not been started")
	}
	if it.Status == prompt.Running {
		if err := end(tx, of, it); err != nil {
			return err
		}
	}
	it.Form.Promoted = n
	return f.prompts.Publish(c, tx, of, n)
}

func timeOrNull(t *time.Time) any {
	if t == nil {
		return nil
	}
	return admin.FormatTime(*t)
}

var forkSchema = admin.Closed(map[string]admin.Schema{
	"id": {"type": "string"}, "slug": {"type": "string"}, "version_id": {"type": "string"}, "object": {"type": "string", "const": "prompt"},
})

// forkTries is how often a made slug that is taken is replaced by another.
const forkTries = 4

// fork copies the published version of a prompt into the workspace of the call.
func (f *family) fork(c *admin.Call) (any, error) {
	it, err := f.prompts.Find(c)
	if err != nil {
		return nil, err
	}
	if from, moved := c.Value(fromKey).(store.Scope); moved {
		c.Scope = from
	}
	form := *it.Form
	if c.Body.HasValue("virtual_key") {
		form.VirtualKey = c.Body.Text("virtual_key")
	}
	if form.CollectionID = c.Body.Text("collection_id"); form.CollectionID == "" {
		if form.CollectionID, err = prompt.DefaultCollection(c.Context, c.Resources, c.Scope); err != nil {
			return nil, err
		}
	}
	name := it.Name
	if c.Body.HasValue("name") {
		name = c.Body.Text("name")
	}
	var rec *resource.Record
	for range forkTries {
		if rec, err = f.copy(c, name, form); !fault.Is(err, fault.Conflict) {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	return admin.Members{"id": rec.ID, "slug": rec.Slug, "version_id": rec.VersionID, "object": "prompt"}, nil
}

// copy makes a prompt of a form.
func (f *family) copy(c *admin.Call, name string, form prompt.Prompt) (*resource.Record, error) {
	rec := &resource.Record{}
	err := c.Change(func(tx *resource.Tx) error {
		*rec = resource.Record{
			Scope: c.Scope, Kind: prompt.KindPrompt, ID: resource.NewID(), Slug: slugs.Make(name), Name: name, Status: "active",
			CreatedBy: c.Actor(), UpdatedBy: c.Actor(),
		}
		c.SetResource(rec.ID)
		own := form
		ch := change{OldForm: new(prompt.Prompt), Rec: rec, Form: &own}
		if err := f.before(c, tx, &ch); err != nil {
			return err
		}
		var err error
		if rec.Body, err = json.Marshal(ch.Form); err != nil {
			return fmt.Errorf("prompts: encode: %w", err)
		}
		if err := tx.Create(rec); err != nil {
			return err
		}
		tx.FirstVersion(rec)
		return nil
	})
	return rec, err
}
