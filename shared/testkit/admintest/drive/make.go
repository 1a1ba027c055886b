package drive

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
)

// tries is how often a body is mended by what its rejection names.
const tries = 6

// Create creates a resource. Where the schema is incomplete, as with fields that only some types
// require, the error response names the missing or superfluous field.
func (w *Resources) Create(create *Operation, place Place, enums map[string]string) (*Resource, error) {
	path, err := w.Path(create, place, enums)
	if err != nil {
		return nil, err
	}
	path, _, _ = strings.Cut(path, "?") // the body names the workspace
	body, err := w.Body(create, place)
	if err != nil {
		return nil, err
	}
	answer, err := w.persist(create, path, body, place)
	if err != nil {
		return nil, err
	}
	t := &Resource{Create: create, Place: place, Sent: body, Variables: map[string]string{}, Answer: answer}
	values, _ := w.Values(create, place, enums)
	for name, expression := range create.Links["read"].Variables {
		v, err := evaluate(expression, values, body, answer)
		if err != nil {
			return nil, err
		}
		if v != "" {
			t.Variables[name] = v
		}
	}
	read := w.Doc.Linked(create, "read")
	vs := Variables(read.Path)
	t.Key = t.Variables[vs[len(vs)-1]]
	t.Names = []string{t.Key}
	w.name(t, Collection(read.Path), answer)
	if got, err := w.Get(t); err == nil {
		w.name(t, Collection(read.Path), got)
	}
	return t, nil
}

// persist sends a body until it is taken.
func (w *Resources) persist(op *Operation, path string, body map[string]any, place Place) (map[string]any, error) {
	added := map[string]bool{}
	for n := 0; ; n++ {
		answer, err := w.Call(op, path, body)
		var refused *RejectedError
		if err == nil || !errors.As(err, &refused) || refused.Status != 400 || n == tries {
			return answer, err
		}
		repaired, failed := w.repair(op, refused, body, added, place)
		if failed != nil || !repaired {
			return nil, errors.Join(err, failed)
		}
	}
}

// repair adds what a rejection misses and takes out what it does not want.
func (w *Resources) repair(op *Operation, refused *RejectedError, body map[string]any, added map[string]bool, place Place) (repaired bool, err error) {
	for field := range refused.Fields() {
		top, _, _ := strings.Cut(field, ".")
		top, _, _ = strings.Cut(top, "[")
		s := w.takes(op, top)
		_, sent := body[top]
		switch {
		case s == nil || added[top]:
		case !sent && top == workspaceID:
			return false, nil
		case !sent:
			if body[top], err = w.filled(s, top, Sample(s, top, w.made), place); err != nil {
				return false, err
			}
			added[top], repaired = true, true
		case top == field && !contains(texts(op.Body["required"]), top) && top != workspaceID:
			delete(body, top)
			added[top], repaired = true, true
		}
	}
	return repaired, nil
}

func contains(all []string, one string) bool {
	for _, s := range all {
		if s == one {
			return true
		}
	}
	return false
}

// Call sends a body and reads the response.
func (w *Resources) Call(op *Operation, path string, body any) (map[string]any, error) {
	var raw []byte
	if body != nil {
		var err error
		if raw, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	status, answer := w.Send(op.Method, path, raw)
	if status != 200 {
		return nil, &RejectedError{op, path, status, answer, raw}
	}
	var out map[string]any
	if err := json.Unmarshal(answer, &out); err != nil {
		return nil, fmt.Errorf("%s %s: %w: %s", op.Method, path, err, answer)
	}
	return out, nil
}

// Get reads a thing, out of its envelope.
func (w *Resources) Get(t *Resource) (map[string]any, error) {
	read := w.Doc.Linked(t.Create, "read")
	path, err := w.Path(read, t.Place, t.Variables)
	if err != nil {
		return nil, err
	}
	got, err := w.Call(read, path, nil)
	if data := object(got["data"]); data != nil && got["success"] == true {
		return data, err
	}
	return got, err
}

// Update changes a thing.
func (w *Resources) Update(t *Resource, body map[string]any) error {
	update := w.Doc.Linked(t.Create, "update")
	path, err := w.Path(update, t.Place, t.Variables)
	if err != nil {
		return err
	}
	if t.Variables["version"] == "" {
		_, err = w.Call(update, path, body)
		var refused *RejectedError
		if !errors.As(err, &refused) || refused.Status != 400 {
			return err
		}
	}
	whole := w.FullUpdate(update, t) // what belongs together, as in a version, is sent together
	maps.Copy(whole, body)
	_, err = w.Call(update, path, whole)
	return err
}

// FullUpdate returns an update body with every field that was sent for the resource.
func (w *Resources) FullUpdate(update *Operation, t *Resource) map[string]any {
	whole := map[string]any{}
	for name := range object(update.Body["properties"]) {
		if v, ok := t.Sent[name]; ok && (name != workspaceID || t.Place == Workspace) {
			whole[name] = v
		}
	}
	return whole
}

// Delete removes a thing. The members that the body of the delete needs get the values that
// the thing has: that is how a client confirms.
func (w *Resources) Delete(t *Resource) error {
	op := w.Doc.Linked(t.Create, "delete")
	path, err := w.Path(op, t.Place, t.Variables)
	if err != nil {
		return err
	}
	var body any
	if op.BodyRequired || len(texts(op.Body["required"])) > 0 {
		b, err := w.Confirm(op, t)
		if err != nil {
			return err
		}
		body = b
	}
	_, err = w.Call(op, path, body)
	if err == nil {
		w.Invalidate(t)
	}
	return err
}

// Confirm is the body of a delete.
func (w *Resources) Confirm(op *Operation, t *Resource) (map[string]any, error) {
	got, err := w.Get(t)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	for name := range maps.Keys(object(op.Body["properties"])) {
		if v, ok := got[name]; ok && contains(required(op), name) {
			out[name] = v
		}
	}
	return out, nil
}

// required returns the required fields: those that the schema lists and those of the example,
// which is complete.
func required(op *Operation) []string {
	out := texts(op.Body["required"])
	for name := range object(op.Example) {
		out = append(out, name)
	}
	return out
}

// evaluate reads a runtime expression of the document.
func evaluate(expression string, path map[string]string, sent, answer map[string]any) (string, error) {
	if name, ok := strings.CutPrefix(expression, "$request.path."); ok {
		return path[name], nil
	}
	if !strings.HasPrefix(expression, "$") {
		return expression, nil // a constant
	}
	from := sent
	pointer, ok := strings.CutPrefix(expression, "$request.body#/")
	if !ok {
		if pointer, ok = strings.CutPrefix(expression, "$response.body#/"); !ok {
			return "", fmt.Errorf("drive: the expression %s is not known", expression)
		}
		from = answer
	}
	var v any = from
	for seg := range strings.SplitSeq(pointer, "/") {
		switch x := v.(type) {
		case map[string]any:
			v = x[seg]
		case []any:
			var i int
			if _, err := fmt.Sscan(seg, &i); err != nil || i >= len(x) {
				return "", fmt.Errorf("drive: %s points at nothing", expression)
			}
			v = x[i]
		}
	}
	return text(v), nil
}
