package ownership

import (
	"encoding/json"
	"slices"
	"strings"

	"gateway/shared/dialect/reference"
	"gateway/shared/fault"
	"gateway/shared/relay/form"
)

// maxIDs limits the ids of objects that one body may name.
const maxIDs = 1000

// Named is an id and the field that holds it.
type Named struct {
	Field, ID string
	Kind      reference.Kind // of a body's; "" otherwise
	// Published: an id without an ownership row may be used by all. It is that of a tuned model,
	// which an administrator may have created for all workspaces, or of an object that belongs
	// to a session.
	Published bool
}

// IDsIn finds the ids of stored objects in a JSON body.
func IDsIn(body []byte) ([]Named, error) {
	found, err := reference.Find(body)
	if err != nil {
		return nil, err
	}
	return named(found)
}

// IDsInRow finds the ids of stored objects in a row of a batch, with the body of a request.
func IDsInRow(line []byte) ([]Named, error) {
	if !reference.MayNameObjects(line) {
		return nil, nil
	}
	ids, err := IDsIn(line)
	if err != nil {
		return nil, err
	}
	var row struct {
		Body json.RawMessage `json:"body"`
	}
	if err := json.Unmarshal(line, &row); err != nil {
		return nil, fault.Invalid("body", "is not a row of a batch")
	}
	more, err := IDsIn(row.Body)
	return append(ids, more...), err
}

// IDsInForm finds the ids of stored objects in the fields of a form. A value that starts like
// JSON but is not JSON names none.
func IDsInForm(f *form.Form) ([]Named, error) {
	var all []reference.Reference
	for name, value := range f.Fields() {
		if found, err := reference.FindInField(name, []byte(value)); err == nil {
			all = append(all, found...)
		}
	}
	return named(all)
}

func named(found []reference.Reference) ([]Named, error) {
	var ids []Named
	for i := range found {
		switch r := &found[i]; {
		case r.TooLong:
			return nil, fault.Invalid(r.Field, "must have at most %d bytes: the owner of a longer one is unknown", reference.MaxToken)
		case r.Object():
			ids = append(ids, Named{Field: r.Field, ID: r.ID, Kind: r.Kind})
		case r.Kind == reference.Model && Tuned(r.ID):
			ids = append(ids, Named{Field: r.Field, ID: r.ID, Kind: r.Kind, Published: true})
		}
	}
	if len(ids) > maxIDs || len(found) >= reference.Max {
		return nil, fault.Invalid(found[0].Field, "names more than %d stored objects", maxIDs)
	}
	return ids, nil
}

// Tuned reports whether a model is one that an account has tuned.
func Tuned(model string) bool {
	return strings.HasPrefix(model, "ft:") || strings.Contains(model, "tunedModels/")
}

// Files returns those of the ids that are of files: the only ones that a translated conversation
// still names.
func Files(ids []Named) []Named {
	return slices.DeleteFunc(ids, func(n Named) bool { return n.Kind != reference.File && n.Kind != reference.Storage })
}
